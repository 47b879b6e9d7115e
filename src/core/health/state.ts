/**
 * The states of a node.
 *
 *   register ──► unverified ───first success────► active ◄──► suspect   (lease, expires by itself)
 *                                                  │  ▲
 *                                     too many     ▼  │ one half-open trial succeeds
 *                                     failures   ejected (lease, sleep doubles)
 *   by hand:  cordoned (takes nothing new) · draining (leaves when empty) · gone
 */
export type NodeState = 'unverified' | 'active' | 'suspect' | 'cordoned' | 'draining' | 'ejected' | 'gone';
