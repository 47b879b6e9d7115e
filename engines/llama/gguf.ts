/**
 * Writes GGUF version 3 files, as the public specification lays them out: header, typed metadata, tensor table,
 * padding, tensor data, all little-endian. Only what a small model needs: float32 tensors of one or two dimensions.
 */

export type MetadataValue =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'uint32' | 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'float32s' | 'int32s'; readonly value: readonly number[] };

export interface Tensor {
  readonly name: string;
  /** Fastest-varying dimension first, as GGUF counts them. */
  readonly dimensions: readonly number[];
  /** As many values as the product of the dimensions. */
  readonly values: Float32Array;
}

const VERSION = 3;
const ALIGNMENT_BYTES = 32;
const TENSOR_FLOAT32 = 0;
/** Type numbers of the specification. */
const TYPE = { int32: 5, uint32: 4, float32: 6, bool: 7, string: 8, array: 9 } as const;

export function encodeGguf(metadata: ReadonlyMap<string, MetadataValue>, tensors: readonly Tensor[]): Buffer {
  const parts: Buffer[] = [
    Buffer.from('GGUF'),
    uint32(VERSION),
    uint64(tensors.length),
    uint64(metadata.size),
  ];
  for (const [key, value] of metadata) parts.push(string(key), ...encodeValue(value));
  let offset = 0;
  for (const tensor of tensors) {
    parts.push(...encodeTensorEntry(tensor, offset));
    offset += padded(tensor.values.byteLength);
  }
  const header = Buffer.concat(parts);
  const body = tensors.map((tensor) => pad(float32Bytes(tensor.values)));
  return Buffer.concat([pad(header), ...body]);
}

function encodeTensorEntry(tensor: Tensor, offset: number): Buffer[] {
  const count = tensor.dimensions.reduce((product, dimension) => product * dimension, 1);
  if (count !== tensor.values.length) {
    throw new Error(
      `Tensor ${tensor.name} has ${tensor.values.length} values, its dimensions ask for ${count}`,
    );
  }
  return [
    string(tensor.name),
    uint32(tensor.dimensions.length),
    ...tensor.dimensions.map(uint64),
    uint32(TENSOR_FLOAT32),
    uint64(offset),
  ];
}

function encodeValue(entry: MetadataValue): Buffer[] {
  switch (entry.type) {
    case 'string':
      return [uint32(TYPE.string), string(entry.value)];
    case 'uint32':
      return [uint32(TYPE.uint32), uint32(entry.value)];
    case 'float32':
      return [uint32(TYPE.float32), float32Bytes([entry.value])];
    case 'bool':
      return [uint32(TYPE.bool), Buffer.from([entry.value ? 1 : 0])];
    case 'strings':
      return [...arrayHead(TYPE.string, entry.value.length), ...entry.value.map(string)];
    case 'float32s':
      return [...arrayHead(TYPE.float32, entry.value.length), float32Bytes(entry.value)];
    case 'int32s':
      return [...arrayHead(TYPE.int32, entry.value.length), int32Bytes(entry.value)];
    default: {
      const unhandled: never = entry;
      throw new Error(`Unhandled metadata type: ${JSON.stringify(unhandled)}`);
    }
  }
}

function arrayHead(elementType: number, length: number): Buffer[] {
  return [uint32(TYPE.array), uint32(elementType), uint64(length)];
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value, 'utf8');
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function float32Bytes(values: ArrayLike<number>): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (let index = 0; index < values.length; index++) bytes.writeFloatLE(values[index] ?? 0, index * 4);
  return bytes;
}

function int32Bytes(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeInt32LE(value, index * 4);
  });
  return bytes;
}

function padded(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}

function pad(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
}
