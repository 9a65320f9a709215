import { ApiError } from "../core/errors"
import { type Workers, WorkerTimeout } from "../core/workers"
import type { RenderMode, TemplateProblem } from "./handlebars"
import { DEADLINE_MS, OUTPUT_BYTES, SOURCE_BYTES } from "./limits"

/** What goes to the worker. The data is JSON; without it the source is only judged. */
export interface RenderTask {
  mode: RenderMode
  source: string
  data: string | undefined
  max_bytes: number
}

export type Rendered = { text: string } | { problem: TemplateProblem }

/**
 * Renders Handlebars in a thread of the pool: at most 256 KiB of source, 2 MiB of output and 500
 * ms. The data is a JSON value. Rejects only when the pool cannot take the work
 * (`service_unavailable`). A fault of the template is a problem in the answer.
 */
export const renderText = (workers: Workers, mode: RenderMode, source: string, data: unknown) =>
  run(workers, mode, source, JSON.stringify(data) ?? "null")

/** The first mistake that can be seen without data, or undefined. Rejects as `renderText` does. */
export async function problemIn(
  workers: Workers,
  mode: RenderMode,
  source: string,
): Promise<TemplateProblem | undefined> {
  const judged = await run(workers, mode, source, undefined)
  return "problem" in judged ? judged.problem : undefined
}

async function run(
  workers: Workers,
  mode: RenderMode,
  source: string,
  data: string | undefined,
): Promise<Rendered> {
  if (Buffer.byteLength(source) > SOURCE_BYTES) {
    return problem("too_large", `A template may have at most ${SOURCE_BYTES} bytes.`)
  }
  const task: RenderTask = { mode, source, data, max_bytes: OUTPUT_BYTES }
  try {
    return await workers.run<Rendered>("render", task, { deadline_ms: DEADLINE_MS })
  } catch (error) {
    if (error instanceof ApiError) throw error
    if (error instanceof WorkerTimeout) {
      return problem("timeout", `Rendering took longer than ${DEADLINE_MS} ms.`)
    }
    return problem(
      "failed",
      "The thread that rendered the template died. Make the template simpler.",
    )
  }
}

const problem = (reason: TemplateProblem["reason"], message: string): Rendered => ({
  problem: { reason, message, line: null, column: null },
})
