import type { Action } from "../context"
import { exits, Failure } from "../failure"
import { batch_fields } from "../fields"
import { readText } from "../input"
import type { BatchItem, BatchResult } from "../records"
import { type Column, table } from "../table"

interface BatchOptions {
  strict?: boolean
  idempotencyKey?: string
}

const columns: Column<BatchItem>[] = [
  { title: "#", cell: ({ index }) => String(index) },
  { title: "STATUS", cell: ({ status }) => status ?? "refused ✗" },
  { title: "ID", cell: ({ id }) => id ?? "" },
  { title: "WHY", cell: ({ error }) => (error ? `${error.code}: ${error.message}` : "") },
]

/** Sends the messages of a file. Exit 8 when some of them were refused. */
export const batch: Action<BatchOptions> = async (context, options, path = "") => {
  const { output, paint, terminal } = context
  output.promises(output.form === "json" ? batch_fields : ["index", "id", "status", "error"])
  const body = { messages: messagesOf(await readText(path, "FILE"), path) }
  const headers = {
    "x-batch-validation": options.strict ? "strict" : "permissive",
    ...(options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : {}),
  }
  const { data } = await context.client().post<BatchResult>("/v1/emails/batch", body, headers)
  if (output.form === "quiet" || output.form === "ndjson") {
    for (const item of data.results)
      if (output.form === "ndjson" || item.id) await output.line(item, () => "")
  } else {
    const refused = data.results.filter(({ error }) => error)
    await output.record(data, () => {
      const rest = refused.length > 0 ? [table(refused, columns, terminal.width, paint)] : []
      const mark = data.failed > 0 ? paint.red("✗") : paint.green("✓")
      return [`${mark} ${data.succeeded} of ${data.total} queued  ${data.id}`, ...rest].join("\n")
    })
    await output.next(`belfry emails list --batch ${data.id}`)
  }
  return data.failed > 0 ? exits.partly_failed : exits.done
}

/** A JSON array, an object with `messages`, or one JSON object a line. */
function messagesOf(text: string, path: string): unknown[] {
  const whole = parsed(text)
  if (Array.isArray(whole)) return whole
  if (typeof whole === "object" && whole !== null) {
    return "messages" in whole && Array.isArray(whole.messages) ? whole.messages : [whole]
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "")
  return lines.map((line, at) => {
    const message = parsed(line)
    if (message !== undefined) return message
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
