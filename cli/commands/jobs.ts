import type { Command } from "commander"
import type { Action } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import { job_fields } from "../lib/fields"
import { confirm } from "../lib/prompts"
import { examples, run } from "../lib/run"
import { type Column, fields } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"

const ID = "0199a1c2-0000-7000-8000-000000000001"

/** Work that goes on after its request was answered, and the table of routes. */
export function define(program: Command): void {
  const jobs = program
    .command("jobs")
    .description("show and cancel long work in the background")
    .addHelpText("after", examples(`jobs get ${ID}`))

  jobs
    .command("get <id>")
    .description("show the progress of a job")
    .option("--wait", "wait until it ends; exit 1 if it failed, 75 at --timeout (default: 60s)")
    .addHelpText("after", examples(`jobs get ${ID}`, `jobs get ${ID} --wait --timeout 5m`))
    .action(run(get))

  jobs
    .command("cancel <id>")
    .description("cancel the rest of a job; finished work stays")
    .addHelpText("after", examples(`jobs cancel ${ID} --yes`))
    .action(run(cancel))

  program
    .command("routes")
    .description("list the routes of the API with their callers and scopes")
    .addHelpText("after", examples("routes", "routes --json=method,path,scope"))
    .action(run(routes))
}

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

type Operation = { summary: string; "x-callers": string[]; "x-required-scope": string }
type Reference = { paths?: Record<string, Record<string, Operation>> }

type Route = { method: string; path: string; callers: string[]; scope: string; summary: string }

const columns: Column<Route>[] = [
  { title: "METHOD", cell: ({ method }) => method },
  { title: "PATH", cell: ({ path }) => path },
  { title: "CALLERS", cell: ({ callers }) => callers.join(",") },
  { title: "SCOPE", cell: ({ scope }) => scope },
  { title: "WHAT", cell: ({ summary }) => summary, flexible: true },
]

/** What the server itself tells of its table; it asks nobody who he is for that. */
export const routes: Action<object> = async (context) => {
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
  return undefined
}
