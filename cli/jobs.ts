import { confirm } from "./confirm"
import type { Action } from "./context"
import { exits } from "./failure"
import { job_fields } from "./fields"
import { fields } from "./table"
import type { Paint } from "./terminal"
import { millis, pause } from "./time"

type Job = {
  id: string
  type: string
  status: string
  progress: { done: number; total: number; failed: number }
  result: unknown
  error: { code: string; message: string } | null
  created_at: string
  completed_at: string | null
}

const WAIT_MILLISECONDS = 60_000
const LOOK_MILLISECONDS = 500

const one = (id: string) => `/v1/jobs/${encodeURIComponent(id)}`

interface GetOptions {
  wait?: boolean
}

/** With `--wait` it ends when the job does: 1 when it failed or was cancelled, 75 at the time limit. */
export const get: Action<GetOptions> = async (context, { wait }, id = "") => {
  const client = context.client()
  const deadline = millis() + (context.timeout ?? WAIT_MILLISECONDS)
  for (;;) {
    const { data } = await client.get<Job>(one(id))
    const is_over = data.completed_at !== null
    if (is_over || !wait || millis() >= deadline) {
      await context.output.record(data, () => shown(data, context.paint))
      if (!wait) return undefined
      if (!is_over) return exits.try_later
      return data.status === "completed" ? exits.done : exits.failed
    }
    await pause(LOOK_MILLISECONDS)
  }
}

export const cancel: Action<object> = async (context, _, id = "") => {
  context.output.promises(job_fields)
  await confirm(context, `The rest of job ${id} will not be done. Finished work stays.`, "cancel")
  const { data } = await context.client().post<Job>(`${one(id)}/cancel`)
  await context.output.record(data, () => shown(data, context.paint))
  return undefined
}

function shown({ progress, ...job }: Job, paint: Paint): string {
  const { done, total, failed } = progress
  const count = `${done} of ${total || "?"}${failed > 0 ? `, ${failed} failed` : ""}`
  return fields(
    [
      ["id", job.id],
      ["type", job.type],
      ["status", job.status],
      ["done", count],
      ["result", job.result === null ? null : JSON.stringify(job.result)],
      ["error", job.error && `${job.error.code}: ${job.error.message}`],
      ["created", job.created_at],
      ["ended", job.completed_at],
    ],
    paint,
  )
}
