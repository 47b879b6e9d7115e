/** What would let a task go, told to people. */
import type { Cure } from '../views.ts';

/** The cure in a sentence. */
export function cureText(cure: Cure): string {
  const when = 'inMs' in cure && cure.inMs !== undefined ? `, in about ${cure.inMs} ms` : '';
  switch (cure.kind) {
    case 'node-gets-room':
      return `Room on ${cure.nodeId} (${cure.reasons.join(', ')})${when}: then it runs there, or one ahead of it.`;
    case 'marks-end':
      return `The end of what closes ${cure.nodeId} (${cure.reasons.join(', ')})${cure.byHand ? ', by hand' : ''}${cure.inMs > 0 ? when : ''}.`;
    case 'share-lifted':
      return `A slot within the shares of ${cure.groups.join(', ')}${cure.room === undefined ? '' : `, and room on ${cure.room.nodeId} (${cure.room.reasons.join(', ')})`}.`;
    case 'next-look':
      return `The next look at the queue${when}.`;
    case 'node-joins':
      return 'A node of its model that joins.';
    case 'none':
      return 'Nothing: a longer deadline, or a faster node, would have.';
  }
}
