/** Whether a node can do a task at all: asked by the simulator's baselines, which share no other rule of placement. */
export { missingNeed } from './eligibility.ts';
/** What is told of placements. */
export { RANKED_MAX, type Ranking, REFUSAL_COUNTS } from './ranking.ts';
