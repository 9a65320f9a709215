import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import { given } from "../lib/input"
import { limitOf, listUpTo } from "../lib/paging"
import { own, row } from "../lib/resource"
import { ago, type Columns, wide } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { clockTime, millis, pause } from "../lib/time"

type Entry = Components["RequestLogEntry"]

const columns: Columns<Entry> = {
  METHOD: "method",
  PATH: wide(({ path }) => path),
  STATUS: {
    cell: ({ status, error_code }) => [status, error_code].filter(Boolean).join(" "),
    paint: (text, { status }, paint) => painted(text, status, paint),
  },
  TIME: { cell: ({ duration_ms }) => `${duration_ms} ms`, spare: 2 },
  REQUEST: "request_id",
  AGE: { cell: ago(({ created_at }) => created_at), spare: 1 },
}

const LOG = "GET /v1/request-log"
const POLL_MILLISECONDS = 2000 // a small plan has 60 requests a minute
const PAST_LINES = 10
const MOST_AT_ONCE = 1000

/** Requests are written down a moment after they were answered, each node's in its own time. */
const LATE_MILLISECONDS = 10_000

interface LogOptions {
  status?: string
  path?: string
  requestId?: string
  key?: string
  limit?: string
}

/**
 * Prints the last entries, then every new one, until Ctrl-C, --timeout, or the number of --limit.
 */
const tail: Action<LogOptions> = async (context, options) => {
  const { timeout } = context
  const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : millis() + timeout
  const client = context.client()
  const query = queryOf(options)
  const seen = new Map<string, string>()
  let left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  let fresh = (await listUpTo(client, LOG, PAST_LINES, { query })).rows
  let begin = fresh.at(-1)?.created_at ?? ""
  while (true) {
    for (const entry of fresh.reverse()) {
      seen.set(keyOf(entry), entry.created_at)
      await show(context, entry)
      left -= 1
      if (left === 0) return undefined
    }
    if (millis() + POLL_MILLISECONDS > deadline) return undefined
    await pause(POLL_MILLISECONDS)
    begin = forgotten(seen, begin)
    const rows = await since(client, query, begin).catch(whenLater)
    fresh = rows.filter((entry) => !seen.has(keyOf(entry)))
  }
}

/** A server that restarts, or a window of requests that is used up, is waited for. */
async function whenLater(error: unknown): Promise<Entry[]> {
  const passing: unknown[] = [exits.limited, exits.try_later, exits.unreachable]
  if (!(error instanceof Failure) || !passing.includes(error.exit)) throw error
  const { retry_after } = error.details
  await pause(typeof retry_after === "number" ? retry_after * 1000 : POLL_MILLISECONDS)
  return []
}

/** From a moment on, newest first. */
async function since(client: Client, query: LogQuery, begin: string): Promise<Entry[]> {
  const isBefore = ({ created_at }: Entry) => created_at < begin
  const { rows } = await listUpTo(client, LOG, MOST_AT_ONCE, { query }, isBefore)
  return rows.filter((entry) => !isBefore(entry))
}

/** Moves the beginning on, and forgets what lies before it; returns the new one. */
function forgotten(seen: Map<string, string>, begin: string): string {
  const newest = [...seen.values()].reduce((a, b) => (a > b ? a : b), "")
  const late = newest && new Date(Date.parse(newest) - LATE_MILLISECONDS).toISOString()
  const moved = late > begin ? late : begin
  for (const [key, created_at] of seen) if (created_at < moved) seen.delete(key)
  return moved
}

const keyOf = ({ request_id, method, path, created_at }: Entry) =>
  `${created_at} ${request_id} ${method} ${path}`

const queryOf = ({ status, path, requestId, key }: LogOptions) =>
  given({ status, path, key_id: key, request_id: requestId })

type LogQuery = ReturnType<typeof queryOf>

const show = ({ output, paint, terminal }: Context, entry: Entry) =>
  output.line(entry, () => {
    const line = entryLine(entry, paint)
    const is_whole = entry.status >= 400 || Bun.stringWidth(line) <= terminal.width
    return is_whole ? line : entryLine({ ...entry, request_id: "" }, paint)
  })

/**
 * `12:00:01.102 422 POST /v1/emails  validation_error  3 ms  req_…`. On a narrow terminal only what
 * failed shows its request.
 */
function entryLine(entry: Entry, paint: Paint): string {
  const { created_at, status, method, path, error_code, duration_ms, request_id } = entry
  const what = `${painted(String(status), status, paint)} ${method.padEnd(6)} ${cleanLine(path)}`
  const rest = [error_code, `${duration_ms} ms`, cleanLine(request_id)].filter(Boolean).join("  ")
  return `${paint.dim(clockTime(created_at))} ${what}  ${paint.dim(rest)}`
}

function painted(text: string, status: number, paint: Paint): string {
  if (status >= 500) return paint.red(text)
  return status >= 400 ? paint.yellow(text) : paint.green(text)
}

const FILTERS = {
  status: "show only this status code or class: 404, 4xx",
  path: "show only this path and the paths below it",
  request_id: "show only the request with this id",
  key_id: "show only requests with this API key",
}

export const logRows = [
  row("list", LOG, {
    about: "list requests with their answers, newest first",
    example: ["--path /v1/emails", "--status 5xx --json"],
    flags: FILTERS,
    columns,
  }),
  own("tail", tail, {
    about: "follow requests as they arrive, until Ctrl-C",
    example: ["", "--status 5xx --json"],
    options: [
      ["--status <status>", FILTERS.status],
      ["--path <path>", FILTERS.path],
      ["--request-id <id>", FILTERS.request_id],
      ["--key <id>", FILTERS.key_id],
      ["--limit <number>", "end after this number of requests"],
    ],
  }),
]
