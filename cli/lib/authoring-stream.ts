import type { Context } from "./context"
import { exits, Failure } from "./errors"
import { linesOf } from "./input"
import { cleanText } from "./terminal"

/** One event of a stream of the authoring routes. */
type StreamedFrame = { event: string; data: Record<string, unknown> }

const EVENT = "event: "
const DATA = "data: "

/**
 * The events of a stream, as Belfry writes them: `data` is one line of JSON, and `done` is the last. Throws Failure
 * where the stream ends without it.
 */
export async function* framesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedFrame> {
  let event = ""
  try {
    for await (const line of linesOf(bytes)) {
      if (line.startsWith(EVENT)) event = line.slice(EVENT.length)
      if (!line.startsWith(DATA)) continue
      yield { event, data: JSON.parse(line.slice(DATA.length)) }
      if (event === "done") return
    }
  } catch {
    // The connection broke, or it gave no JSON: either way the answer is lost.
  }
  throw new Failure(exits.unreachable, "broken_stream", "The answer ended before it was complete.")
}

/** Whether a program reads the events themselves: `--json` asks for the result alone. */
export const readsFrames = ({ flags, output: { form } }: Context): boolean =>
  form === "ndjson" || (form === "json" && flags.json === undefined)

/**
 * Shows a stream as it comes: the text of the model on a terminal, one event a line in a pipe. Resolves to the payload
 * of `complete`, with what was said of the variables; throws what the stream told in its place.
 */
export async function streamedAnswer(context: Context, bytes: AsyncIterable<Uint8Array>) {
  const { output, paint, terminal } = context
  const is_watched = output.form === "human" && terminal.out
  const answer: Record<string, unknown> = {}
  let failure: Failure | undefined
  let has_text = false
  try {
    for await (const frame of framesOf(bytes)) {
      const { event, data } = frame
      if (readsFrames(context)) await output.line(frame, String)
      if (event === "token" && is_watched) {
        has_text = true
        await output.raw(paint.dim(cleanText(String(data.text))))
      }
      if (event === "variables_validated") answer.variables = data
      if (event === "complete") Object.assign(answer, data)
      if (event === "error" || event === "parse_failed") failure = failureIn(data)
    }
  } finally {
    if (has_text) await output.raw("\n\n")
  }
  if (failure) throw failure
  return answer
}

/** The exits that these codes have where no stream has begun. */
const LATER = ["bedrock_throttled", "service_unavailable", "timeout"]

function failureIn(data: Record<string, unknown>): Failure {
  const { code = "parse_failed", message = UNREADABLE, details = data } = data
  const exit = LATER.includes(`${code}`) ? exits.try_later : exits.failed
  return new Failure(exit, `${code}`, `${message}`, { details: { ...Object(details) } })
}

const UNREADABLE = "The model gave an answer that cannot be read. Ask again."
