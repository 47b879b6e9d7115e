/** What the schema lets through, for the code behind it. Kept by hand: the inferred type is slow to check and to read. */
import type { ClassInput, ConfigInput, ModelInput, NodeInput, TenantInput } from '../../core/config/index.ts';
import type { ModelOffer } from '../../core/request/needs.ts';

export interface SecretRef {
  readonly env?: string;
  readonly file?: string;
}

export interface FileKey extends SecretRef {
  readonly id: string;
  readonly sha256?: string;
}

export interface FileTenant extends Omit<TenantInput, 'keys'> {
  readonly keys?: readonly FileKey[];
}

export interface FileNode extends Omit<NodeInput, 'models' | 'headers' | 'key'> {
  readonly models?: readonly (string | ModelOffer)[];
  readonly headers?: Readonly<Record<string, string | SecretRef>>;
  readonly key?: SecretRef;
}

export type FileTracing = Omit<NonNullable<ConfigInput['tracing']>, 'headers'> & {
  readonly headers?: Readonly<Record<string, string | SecretRef>>;
};

export interface FileConfig
  extends Omit<ConfigInput, 'classes' | 'models' | 'tenants' | 'nodes' | 'tracing'> {
  readonly tracing?: FileTracing;
  readonly classes?: readonly (ClassInput | undefined)[];
  readonly models?: readonly (ModelInput | undefined)[];
  readonly tenants?: readonly (FileTenant | undefined)[];
  readonly nodes?: readonly (FileNode | undefined)[];
  readonly keysFile?: string;
}
