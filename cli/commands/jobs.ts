import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import type { Action } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import { groupOf, ID } from "../lib/resource"
import { examples, run } from "../lib/run"
import { type Columns, fields, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"

/** Work that goes on after its request was answered, and the table of routes. */
export function define(program: Command): void {
  const jobs = groupOf(program, "jobs")
  jobs
    .command("get <id>")
    .description("show the progress of a job")
    .option("--wait", "wait until it ends; exit 1 if it failed, 75 at --timeout (default: 60s)")
    .addHelpText("after", examples(`jobs get ${ID}`, `jobs get ${ID} --wait --timeout 5m`))
    .action(run(get))

  program
    .command("routes")
    .description("list the routes of the API with their callers and scopes")
    .addHelpText("after", examples("routes", "routes --json=method,path,scope"))
    .action(run(routes))
}

type Job = Components["Job"]

const WAIT_MILLISECONDS = 60_000
const LOOK_MILLISECONDS = 500

/** With `--wait` it ends when the job does: 1 when it failed or was cancelled, 75 at the time limit. */
const get: Action<{ wait?: boolean }> = async (context, { wait }, job_id = "") => {
  const client = context.client()
  const deadline = millis() + (context.timeout ?? WAIT_MILLISECONDS)
  for (;;) {
    const { data } = await client.call("GET /v1/jobs/{job_id}", { params: { job_id } })
    const is_over = data.completed_at !== null
    if (is_over || !wait || millis() >= deadline) {
      await context.output.record(data, () => shownJob(data, context.paint))
      if (!wait) return undefined
      if (!is_over) return exits.try_later
      return data.status === "completed" ? exits.done : exits.failed
    }
    await pause(LOOK_MILLISECONDS)
  }
}

export function shownJob({ progress, ...job }: Job, paint: Paint): string {
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

type DescribedOperation = { summary: string; "x-callers": string[]; "x-required-scope": string }
type Reference = { paths?: Record<string, Record<string, DescribedOperation>> }

type ListedRoute = {
  method: string
  path: string
  callers: string[]
  scope: string
  summary: string
}

const columns: Columns<ListedRoute> = {
  METHOD: "method",
  PATH: "path",
  CALLERS: ({ callers }) => callers.join(","),
  SCOPE: "scope",
  WHAT: wide(({ summary }) => summary),
}

/** The routes of the server, from its OpenAPI document. No credential is needed. */
const routes: Action<object> = async (context) => {
  const { status, body } = await context.anonymous().plain("/v1/openapi.json")
  const { paths } = body as Reference
  if (status !== 200 || !paths) {
    throw new Failure(exits.failed, "no_reference", `/v1/openapi.json answered ${status}.`)
  }
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      callers: operation["x-callers"],
      scope: operation["x-required-scope"],
      summary: operation.summary,
    })),
  )
  await context.output.list(rows, columns)
}
