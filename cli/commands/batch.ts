import type { OperationName } from "../../src/client/client"
import type { Action, Context } from "../lib/context"
import { exits, Failure } from "../lib/errors"
import { readText } from "../lib/input"
import { type Columns, table } from "../lib/table"

interface BatchOptions {
  strict?: boolean
  idempotencyKey?: string
}

type BatchItem = {
  index: number
  id?: string
  status?: string
  error?: { code: string; message: string }
}

type BatchAnswer = {
  /** Of emails. */
  id?: string
  total: number
  succeeded: number
  failed: number
  results: BatchItem[]
}

interface Batch {
  route: OperationName
  /** Of the answer, for `--json`. */
  fields: readonly string[]
  /** What the file lists, and what becomes of it; default: messages that are queued. */
  list?: string
  done?: string
  /** Besides the idempotency key. */
  headers?: (options: BatchOptions) => Record<string, string>
  /** The command to type next. */
  next: (answer: BatchAnswer) => string
}

const columns: Columns<BatchItem> = {
  "#": "index",
  STATUS: ({ status }) => status ?? "refused ✗",
  ID: "id",
  WHY: ({ error }) => (error ? `${error.code}: ${error.message}` : ""),
}

/** Sends what a file lists. Exit 8 when some of them were refused. */
export const batchOf =
  ({
    route,
    fields,
    headers: headersOf,
    next,
    list = "messages",
    done = "queued",
  }: Batch): Action<BatchOptions> =>
  async (context, options, path = "") => {
    const { output } = context
    output.promises(output.form === "json" ? fields : ["index", "id", "status", "error"])
    const body = { [list]: itemsOf(await readText(path, "FILE"), path, list) }
    const headers = {
      ...headersOf?.(options),
      ...(options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : {}),
    }
    const answer = await context.client().send(route, { body, headers })
    const { data } = answer as { data: BatchAnswer }
    if (output.form === "quiet" || output.form === "ndjson") {
      for (const item of data.results)
        if (output.form === "ndjson" || item.id) await output.line(item, () => "")
    } else {
      await output.record(data, () => summaryOf(data, done, context))
      await output.next(`belfry ${next(data)}`)
    }
    return data.failed > 0 ? exits.partly_failed : exits.done
  }

function summaryOf(data: BatchAnswer, done: string, { paint, terminal }: Context): string {
  const refused = data.results.filter(({ error }) => error)
  const rest = refused.length > 0 ? [table(refused, columns, terminal.width, paint)] : []
  const mark = data.failed > 0 ? paint.red("✗") : paint.green("✓")
  const line = `${mark} ${data.succeeded} of ${data.total} ${done}  ${data.id ?? ""}`
  return [line.trimEnd(), ...rest].join("\n")
}

/** A JSON array, an object with the list, or one JSON object a line. */
function itemsOf(text: string, path: string, list: string): unknown[] {
  const whole = parsed(text)
  if (Array.isArray(whole)) return whole
  if (typeof whole === "object" && whole !== null) {
    const { [list]: items } = whole as Record<string, unknown>
    return Array.isArray(items) ? items : [whole]
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "")
  return lines.map((line, at) => {
    const item = parsed(line)
    if (item !== undefined) return item
    const where = `${path}: line ${at + 1} is not JSON.`
    throw new Failure(exits.invalid, "invalid_json", where, {
      hint: "give a JSON array, or one JSON object per line",
    })
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
