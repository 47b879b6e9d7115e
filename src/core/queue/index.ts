/** What weights and floors of classes promise each of them: the simulator holds waits against it. */
export { effectiveWeights } from './flow.ts';
