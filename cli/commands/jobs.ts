import type { Components } from "../../src/client/components"
import { apiReference } from "../lib/api-reference"
import type { Action, Context } from "../lib/context"
import { exits } from "../lib/errors"
import { asks, own, row } from "../lib/resource"
import { type Columns, recordText, wide } from "../lib/table"
import { lookUntil } from "../lib/time"

type Job = Components["Job"]

const WAITING = { limit: 60_000, every: 500 }

const isOver = ({ completed_at }: Job) => completed_at !== null

/** Until the job ends: exit 1 when it failed or was cancelled, 75 at the time limit. */
async function waited(context: Context, job_id: string): Promise<number> {
  const { output, paint, timeout: limit = WAITING.limit } = context
  const look = async () =>
    (await context.call("GET /v1/jobs/{job_id}", { params: { job_id } })).data
  const job = await lookUntil(look, isOver, { ...WAITING, limit })
  await output.record(job, () => recordText(job, paint, jobValues(job)))
  if (!isOver(job)) return exits.try_later
  return job.status === "completed" ? exits.done : exits.failed
}

const jobValues = ({ progress: { done, total, failed }, error }: Job) => ({
  progress: `${done} of ${total || "?"}${failed > 0 ? `, ${failed} failed` : ""}`,
  error: error && `${error.code}: ${error.message}`,
})

export const jobRows = [
  row("get <id>", "GET /v1/jobs/{job_id}", {
    about: "show the progress of a job",
    example: ["", "--wait --timeout 5m"],
    options: [
      ["--wait", "wait until it ends; exit 1 if it failed, 75 at --timeout (default: 60s)"],
    ],
    print: (context, { data }, { wait }) => (wait ? waited(context, data.id) : undefined),
    values: jobValues,
  }),
  row("cancel <id>", "POST /v1/jobs/{job_id}/cancel", {
    about: "cancel the rest of a job; finished work stays",
    example: "--yes",
    confirm: asks((id) => `The rest of job ${id} will not be done. Finished work stays.`, "cancel"),
    values: jobValues,
  }),
]

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
  const operations = await apiReference(context.anonymous())
  const rows = operations.map(({ method, path, summary, ...operation }) => ({
    ...{ method, path, callers: operation["x-callers"], scope: operation["x-required-scope"] },
    summary,
  }))
  await context.output.list(rows, columns)
}

export const routesRow = own("routes", routes, {
  about: "list the routes of the API with their callers and scopes",
  example: ["", "--json=method,path,scope"],
})
