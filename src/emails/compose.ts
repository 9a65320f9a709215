import type { Workers } from "../core/workers"
import { ComposeBatches, type ComposedMail, isSmall } from "./compose-batches"
import type { MailToCompose } from "./mail-to-compose"

/** Long enough for 10 MB of attachments on a slow machine, short enough not to hold a worker. */
const COMPOSE_DEADLINE_MS = 10_000

/**
 * The message as it is stored, counted and sent: CRLF, no bare CR, LF or NUL, and the same bytes
 * every time, because boundary, date, Message-ID and time of signing come from the message's own row.
 * Rejects with WorkerTimeout after ten seconds, with Uncomposable where the input cannot become a
 * message, and with whatever else went wrong on the way (a missing file has the code ENOENT).
 */
export function compose(workers: Workers, input: MailToCompose): Promise<ComposedMail> {
  if (isSmall(input)) return batchesOf(workers).add(input)
  return workers.run<ComposedMail>("compose", input, { deadline_ms: COMPOSE_DEADLINE_MS })
}

const batches = new WeakMap<Workers, ComposeBatches>()

function batchesOf(workers: Workers): ComposeBatches {
  const own = batches.get(workers) ?? new ComposeBatches(workers, COMPOSE_DEADLINE_MS)
  batches.set(workers, own)
  return own
}
