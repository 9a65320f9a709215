import { deadline } from "../core/deadline"
import { ApiError } from "../core/errors"
import { sleep } from "../core/time"
import { streamedFile } from "../http/download"
import { asApiError, unavailable } from "../http/envelope"
import type { Call } from "../http/route"
import type { ServerHealth } from "../http/server-health"
import type { Caller } from "../identity/caller"
import type { AiTask, VariablesFound } from "./ai-task"
import { type GateParts, requireOwnProject } from "./gates"
import { type AiFrame, LEFT, PARSE_FAILED, runTask } from "./run-task"

/** Tests shorten them. The whole is below the time limit of the routes, so that an analysis can still complete. */
export const times = { whole_ms: 115_000, drain_ms: 15_000, ping_ms: 15_000 }

export interface AnswerParts extends GateParts {
  health: Pick<ServerHealth, "onDrain">
}

interface Answered<Data> {
  data: Data
  /** Empty where the action finds no variables. */
  top: { variables: VariablesFound }
}

/** The result as one JSON answer, with what was found of the variables beside it. */
export async function answerOnce<Data>(frames: AsyncGenerator<AiFrame, void>) {
  const told = { data: {}, top: {} }
  for await (const { event, data } of frames) {
    if (event === "variables_validated") told.top = { variables: data }
    if (event === "complete") told.data = data
  }
  return told as Answered<Data>
}

const STREAM = "text/event-stream"

/**
 * The result as events where the client asks for them, else as one JSON answer. What fails before the first
 * event is an error with its status, and no stream begins.
 */
export async function answer<Data>(
  { request, request_id }: Pick<Call, "request" | "request_id">,
  frames: AsyncGenerator<AiFrame, void>,
): Promise<Answered<Data> | Response> {
  if (!prefersStream(request)) return await answerOnce(frames)
  const events = eventsOf(await frames.next(), frames, request_id)
  const headers = { "content-type": STREAM, "cache-control": "no-store" }
  return streamedFile(events, request.signal, headers)
}

/** Whether the client names a stream, and no JSON that it likes better (RFC 9110, 12.5.1). */
function prefersStream({ headers }: Request): boolean {
  const ranges = (headers.get("accept") ?? "").toLowerCase().replace(/\s/g, "").split(",")
  const weight = (type: string) => {
    const range = ranges.find((one) => one.split(";")[0] === type)
    return range === undefined ? 0 : Number(/;q=([\d.]+)/.exec(range)?.[1] ?? 1)
  }
  return weight(STREAM) > 0 && weight(STREAM) >= weight("application/json")
}

/**
 * Builds the task and runs it until its time is over, the server stops, or the client leaves. Throws as `runTask`
 * does, and 403 where the body names another project.
 */
export async function* framesOf<Parts extends AnswerParts, Body>(
  parts: Parts,
  { caller, request, body }: Call<Body & { project_id?: string }>,
  make: (parts: Parts, caller: Caller, body: Body) => Promise<AiTask>,
): AsyncGenerator<AiFrame, void> {
  requireOwnProject(caller, body.project_id)
  const task = await make(parts, caller, body)
  const stop = new AbortController()
  const end = (reason: ApiError) => () => stop.abort(reason)
  const drops = [deadline(times.whole_ms, end(new ApiError("timeout", LATE)))]
  const drained = end(unavailable(DRAINING, "draining", 1))
  drops.push(parts.health.onDrain(() => drops.push(deadline(times.drain_ms, drained))))
  const drop = () => {
    for (const each of drops) each()
  }
  // A stream that nobody reads any more may never come to the end of this function.
  stop.signal.addEventListener("abort", drop)
  request.signal.addEventListener("abort", end(LEFT))
  if (request.signal.aborted) stop.abort(LEFT)
  try {
    yield* runTask(parts, caller, task, stop.signal)
  } finally {
    drop()
  }
}

const LATE = "The AI call took too long."
const DRAINING = "This server is shutting down. Send the request again in a second."

/**
 * The frames as text, one of complete, parse_failed and error, then done. A comment every 15 s keeps what is
 * between here and the client from taking the connection for dead.
 */
async function* eventsOf(
  first: IteratorResult<AiFrame, void>,
  frames: AsyncGenerator<AiFrame, void>,
  request_id: string,
): AsyncGenerator<string, undefined> {
  const over = new AbortController()
  const tick = () => sleep(times.ping_ms, over.signal).then(() => "ping" as const)
  try {
    for (let [ping, next] = [tick(), Promise.resolve(first)]; ; ) {
      const come = await Promise.race([ping, next])
      if (come === "ping") {
        ping = tick()
        yield ": ping\n\n"
      } else if (come.done) break
      else {
        yield eventText(come.value.event, come.value.data)
        next = frames.next()
      }
    }
  } catch (thrown) {
    yield failed(asApiError(thrown, request_id, "POST"))
  } finally {
    over.abort()
    await frames.return()
  }
  yield eventText("done", {})
  return undefined
}

function failed({ code, message, details }: ApiError): string {
  const { reason, raw_excerpt } = details as Record<string, unknown>
  return reason === PARSE_FAILED
    ? eventText(PARSE_FAILED, { raw_excerpt, retryable: true })
    : eventText("error", { code, message, details })
}

/** One line, also for readers that break lines at U+0085, U+2028 and U+2029, which JSON may leave as they are. */
function eventText(event: string, data: object): string {
  const escaped = (end: string) => `\\u${end.charCodeAt(0).toString(16).padStart(4, "0")}`
  return `event: ${event}\ndata: ${JSON.stringify(data).replace(/[\x85\u2028\u2029]/g, escaped)}\n\n`
}
