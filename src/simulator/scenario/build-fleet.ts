/** Groups of nodes and faults, from the file to what the simulator runs. */
import type { DurationUs, ModelId } from '../../base/units.ts';
import type { BuildContext } from './build-context.ts';
import type { FaultFile, GroupFile, ScenarioFile } from './file-types.ts';
import type { FaultSpec, NodeGroup, NodesRef } from './types.ts';

const REFERENCE: Omit<GroupFile, 'count'> = {
  hardware: 'reference',
  speed: 1,
  spread: 0,
  engine: { kind: 'slots', slots: 1 },
  resident: 0,
  swap: 0,
  zone: '',
  rtt: 0,
  beat: 10_000_000,
  heartbeats: false,
  aborts: true,
  ratesKnown: false,
};

/** `asked` are all models that the streams ask for: what a group without `models` serves. */
export function buildGroups(
  fleet: ScenarioFile['fleet'],
  asked: readonly ModelId[],
  context: BuildContext,
): readonly NodeGroup[] {
  return Object.entries(fleet).map(([name, given]) => {
    const group: GroupFile = typeof given === 'number' ? { ...REFERENCE, count: given } : given;
    const { count, hardware, speed, engine, zone, heartbeats, ratesKnown } = group;
    for (const key of ['hardware', 'stated'] as const)
      checkHardware(['fleet', name, key], group[key], context);
    return {
      name,
      count,
      hardware,
      statedHardware: group.stated ?? hardware,
      speed,
      speedSigma: group.spread,
      engine,
      models: group.models ?? asked,
      residentMax: group.resident,
      swapUs: group.resident === 0 ? 0 : group.swap,
      zone,
      rttUs: group.rtt,
      beatUs: group.beat,
      heartbeats,
      canAbort: group.aborts,
      ratesKnown,
    };
  });
}

function checkHardware(
  path: readonly string[],
  hardware: string | undefined,
  { known, report }: BuildContext,
): void {
  if (hardware === undefined || hardware === 'reference' || known.hardware.includes(hardware)) return;
  report(path, `Expected hardware of the catalogue: reference, ${known.hardware.join(', ')}`, hardware);
}

/** What each kind of fault needs and may have, besides its instant. */
const WITH_NODES = ['nodes', 'count', 'for'] as const;
type FaultKey = 'nodes' | 'count' | 'for' | 'times' | 'failShare' | 'skew' | 'load';
interface FaultShape {
  readonly needs?: FaultKey;
  readonly may: readonly FaultKey[];
}
const SHAPES: Readonly<Record<FaultSpec['kind'], FaultShape>> = {
  dead: { may: WITH_NODES },
  hang: { may: WITH_NODES },
  refuse: { may: WITH_NODES },
  partition: { may: WITH_NODES },
  'stale-readings': { may: WITH_NODES },
  restart: { may: WITH_NODES },
  slow: { needs: 'times', may: [...WITH_NODES, 'times'] },
  gray: { needs: 'failShare', may: [...WITH_NODES, 'failShare'] },
  'clock-skew': { needs: 'skew', may: [...WITH_NODES, 'skew'] },
  'cpu-spike': { needs: 'load', may: [...WITH_NODES, 'load'] },
  'mass-reconnect': { may: ['nodes', 'count'] },
  'scheduler-crash': { needs: 'for', may: ['for'] },
};
const KEYS: readonly FaultKey[] = ['nodes', 'count', 'for', 'times', 'failShare', 'skew', 'load'];

export function buildFaults(file: ScenarioFile, context: BuildContext): readonly FaultSpec[] {
  return file.faults.map((fault, index) => {
    checkFault(fault, index, { file, context });
    return toFault(fault, Math.max(0, file.span - fault.at));
  });
}

function checkFault(
  fault: FaultFile,
  index: number,
  { file, context }: { readonly file: ScenarioFile; readonly context: BuildContext },
): void {
  const shape = SHAPES[fault.kind as FaultSpec['kind']];
  const at = ['faults', index];
  if (shape.needs !== undefined && fault[shape.needs] === undefined)
    context.report(at, `Expected ${shape.needs} with ${fault.kind}; it is missing`);
  for (const key of KEYS) {
    if (fault[key] === undefined || shape.may.includes(key)) continue;
    context.report([...at, key], `Expected no ${key} with ${fault.kind}`);
  }
  const groups = Object.keys(file.fleet);
  if (fault.nodes !== undefined && !groups.includes(fault.nodes))
    context.report([...at, 'nodes'], `Expected a group of the fleet: ${groups.join(', ')}`, fault.nodes);
}

function toFault(fault: FaultFile, restUs: DurationUs): FaultSpec {
  const { at } = fault;
  const kind = fault.kind as FaultSpec['kind'];
  const nodes: NodesRef = { group: fault.nodes ?? '', count: fault.count ?? 0 };
  const forUs = fault.for ?? restUs;
  switch (kind) {
    case 'slow':
      return { at, kind, nodes, forUs, times: fault.times ?? 1 };
    case 'gray':
      return { at, kind, nodes, forUs, failShare: fault.failShare ?? 0 };
    case 'clock-skew':
      return { at, kind, nodes, forUs, skewUs: fault.skew ?? 0 };
    case 'cpu-spike':
      return { at, kind, nodes, forUs, load: fault.load ?? 0 };
    case 'mass-reconnect':
      return { at, kind, nodes };
    case 'scheduler-crash':
      return { at, kind, downUs: fault.for ?? 0 };
    default:
      return { at, kind, nodes, forUs };
  }
}
