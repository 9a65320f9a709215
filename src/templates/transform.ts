import { ApiError, fail } from "../core/errors"
import { log } from "../core/log"
import { type Workers, WorkerTimeout } from "../core/workers"
import type { TemplateProblem } from "./handlebars"
import { DEADLINE, DEADLINE_MS, SOURCE_BYTES } from "./limits"

/** What goes to the worker. The data is JSON; without it the source is only compiled. */
export interface TransformTask {
  source: string
  data: string | undefined
}

export type Transformed = { text: string } | { problem: TemplateProblem }

/**
 * Refuses a transform that can never render: `invalid_template`, with `line` and `column` where they
 * are known. Only an event shows whether it gives JSON.
 */
export async function checkTransform(workers: Workers, source: string): Promise<void> {
  const problem = await problemIn(workers, source)
  if (!problem) return
  const { reason, message, line, column } = problem
  const position = line === null ? "" : ` (line ${line})`
  const details = { field: "transform", reason, line, column }
  fail("invalid_template", `The transform is not a valid template: ${message}${position}`, details)
}

/**
 * The body that the transform makes of an envelope: Handlebars in which `{{x}}` is escaped for the
 * inside of a JSON string and `{{json x}}` writes a whole value. Undefined when it does not give a
 * JSON body. Rejects with `service_unavailable` when it was not tried: then the delivery waits, and
 * the plain envelope is not sent.
 */
export async function renderTransform(
  workers: Workers,
  source: string,
  envelope: object,
): Promise<string | undefined> {
  const rendered = await transform(workers, source, envelope)
  if ("problem" in rendered) {
    log.info("a transform could not be rendered", { reason: rendered.problem.reason })
    return undefined
  }
  const body = rendered.text.trim()
  return isJson(body) ? body : undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/**
 * Renders Handlebars for a body of JSON, in a thread of the pool: at most 256 KiB of source, 2 MiB of output and 500
 * ms. The data is a JSON value. Rejects only when the pool cannot take the work (`service_unavailable`). A fault of
 * the template is a problem in the answer.
 */
export const transform = (workers: Workers, source: string, data: unknown) =>
  run(workers, { source, data: JSON.stringify(data) ?? "null" })

/** The first mistake that can be seen without data, or undefined. Rejects as `transform` does. */
async function problemIn(workers: Workers, source: string) {
  const compiled = await run(workers, { source, data: undefined })
  return "problem" in compiled ? compiled.problem : undefined
}

async function run(workers: Workers, task: TransformTask): Promise<Transformed> {
  if (Buffer.byteLength(task.source) > SOURCE_BYTES) {
    const message = `A template may have at most ${SOURCE_BYTES} bytes.`
    return { problem: { reason: "too_large", message, line: null, column: null } }
  }
  try {
    return await workers.run<Transformed>("transform", task, DEADLINE)
  } catch (error) {
    return { problem: threadProblem(error) }
  }
}

/** Why a thread gave no answer: it took too long, or it died. Throws an `ApiError` of the pool again. */
export function threadProblem(
  error: unknown,
  [doing, did] = ["Rendering", "rendered"],
): TemplateProblem {
  if (error instanceof ApiError) throw error
  if (error instanceof WorkerTimeout) {
    const message = `${doing} took longer than ${DEADLINE_MS} ms.`
    return { reason: "timeout", message, line: null, column: null }
  }
  const message = `The thread that ${did} the template died. Make the template simpler.`
  return { reason: "failed", message, line: null, column: null }
}
