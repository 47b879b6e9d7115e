/**
 * The gateway's log: JSON lines on standard error, buffered, flushed when a second has passed and at the end. The
 * runtime passes no prompts, keys or headers; nothing is added here.
 */
import { pino } from 'pino';
import type { RuntimeLog } from '../../runtime/log.ts';

export interface CliLog extends RuntimeLog {
  /** Writes out what is buffered. */
  flush(): void;
}

const BUFFER_BYTES = 4_096;
const FLUSH_MS = 1_000;
const STDERR = 2;

export function createLog(level: string): CliLog {
  const destination = pino.destination({ dest: STDERR, minLength: BUFFER_BYTES, sync: true });
  const logger = pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  const flush = (): void => {
    try {
      destination.flushSync();
    } catch {
      // The reader of the log is gone; there is nobody left to tell.
    }
  };
  destination.on('error', () => undefined);
  setInterval(flush, FLUSH_MS).unref();
  process.on('exit', flush);
  const hasDebug = logger.isLevelEnabled('debug');
  return {
    ...(hasDebug ? { debug: (fields: object, message: string) => logger.debug(fields, message) } : {}),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    flush,
  };
}
