/**
 * Where a text stops being JSON. Only for the message of a refusal, after `JSON.parse` has failed: the engine names a
 * position in some of its messages only, and quotes the client's text in others.
 */
export interface JsonFault {
  /** Characters from the start. */
  readonly position: number;
  readonly line: number;
  readonly column: number;
}

export function locateJsonFault(text: string): JsonFault {
  const position = new FaultFinder(text).find();
  const before = text.slice(0, position);
  const lastBreak = before.lastIndexOf('\n');
  return { position, line: before.split('\n').length, column: position - lastBreak };
}

const LITERALS: readonly string[] = ['true', 'false', 'null'];
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

/** A pushdown recogniser without recursion, so that deep nesting cannot exhaust the stack. */
class FaultFinder {
  readonly #text: string;
  #at = 0;
  /** Closing character of each open container. */
  readonly #open: ('}' | ']')[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  find(): number {
    let expects: 'value' | 'first-value' | 'first-name' | 'name' | 'after' = 'value';
    for (;;) {
      this.#skipSpace();
      if (expects === 'after') {
        if (this.#open.length === 0) return this.#at;
        const next = this.#afterValue();
        if (next === undefined) return this.#at;
        expects = next;
        continue;
      }
      if (
        (expects === 'first-name' || expects === 'first-value') &&
        this.#text[this.#at] === this.#open.at(-1)
      ) {
        this.#open.pop();
        this.#at++;
        expects = 'after';
        continue;
      }
      if ((expects === 'name' || expects === 'first-name') && !this.#takeName()) return this.#at;
      const entered = this.#takeValue();
      if (entered === undefined) return this.#at;
      expects = entered;
    }
  }

  #afterValue(): 'after' | 'value' | 'name' | undefined {
    const character = this.#text[this.#at];
    const close = this.#open.at(-1);
    if (character === close) {
      this.#open.pop();
      this.#at++;
      return 'after';
    }
    if (character !== ',') return undefined;
    this.#at++;
    return close === '}' ? 'name' : 'value';
  }

  #takeName(): boolean {
    if (!this.#takeString()) return false;
    this.#skipSpace();
    if (this.#text[this.#at] !== ':') return false;
    this.#at++;
    this.#skipSpace();
    return true;
  }

  #takeValue(): 'after' | 'first-name' | 'first-value' | undefined {
    const character = this.#text[this.#at];
    if (character === '{' || character === '[') {
      this.#open.push(character === '{' ? '}' : ']');
      this.#at++;
      return character === '{' ? 'first-name' : 'first-value';
    }
    if (character === '"') return this.#takeString() ? 'after' : undefined;
    const literal = LITERALS.find((word) => this.#text.startsWith(word, this.#at));
    if (literal !== undefined) {
      this.#at += literal.length;
      return 'after';
    }
    NUMBER.lastIndex = this.#at;
    if (!NUMBER.test(this.#text)) return undefined;
    this.#at = NUMBER.lastIndex;
    return 'after';
  }

  /** By hand and not by one pattern: a pattern over a string of megabytes exhausts the matcher's stack. */
  #takeString(): boolean {
    if (this.#text[this.#at] !== '"') return false;
    this.#at++;
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at] as string;
      if (character === '"') {
        this.#at++;
        return true;
      }
      if (character < ' ') return false;
      if (character === '\\') {
        ESCAPE.lastIndex = this.#at;
        if (!ESCAPE.test(this.#text)) return false;
        this.#at = ESCAPE.lastIndex;
      } else this.#at++;
    }
    return false;
  }

  #skipSpace(): void {
    while (this.#at < this.#text.length && ' \t\n\r'.includes(this.#text[this.#at] as string)) this.#at++;
  }
}
