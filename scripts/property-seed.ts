/** The seed of all property tests from the environment; throws when CI gives none, undefined means a fresh one. */
export function propertySeed(environment: Readonly<Record<string, string | undefined>>): number | undefined {
  const text = environment['FC_SEED'];
  if (text === undefined || text === '') {
    if (isOn(environment['CI']))
      throw new Error('CI must set FC_SEED: a red property test could not be repeated');
    return undefined;
  }
  const seed = Number(text);
  if (!Number.isInteger(seed)) throw new Error(`FC_SEED must be an integer, it is ${JSON.stringify(text)}`);
  return seed;
}

function isOn(flag: string | undefined): boolean {
  return flag !== undefined && flag !== '' && flag !== 'false' && flag !== '0';
}
