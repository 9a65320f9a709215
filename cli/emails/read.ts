import { writeFileSync } from "node:fs"
import type { Action } from "../context"
import { exits, Failure, usage } from "../failure"
import { FIRST_EMAIL, optionWords } from "../hint"
import { limitOf, listUpTo } from "../paging"
import type { Attempt, Content, Email, EmailEvents } from "../records"
import type { Column } from "../table"
import { cleanLine, cleanText } from "../terminal"
import { moment } from "../time"
import { emailColumns, emailText, eventText, statusMark } from "./show"

interface ListOptions {
  status?: string
  to?: string
  from?: string
  tag?: string
  domain?: string
  subject?: string
  batch?: string
  since?: string
  until?: string
  limit?: string
}

export const list: Action<ListOptions> = async (context, options) => {
  const { status, to, from, tag, domain, subject, batch, since, until, limit } = options
  const query = {
    status,
    to,
    from,
    tag,
    domain,
    subject,
    batch_id: batch,
    created_after: since === undefined ? undefined : moment(since, "--since"),
    created_before: until === undefined ? undefined : moment(until, "--until"),
  }
  const found = await listUpTo<Email>(context.client(), "/v1/emails", query, limitOf(limit))
  await context.output.list(found.rows, emailColumns)
  const more = optionWords({ ...options, limit: String(2 * limitOf(limit)) })
  if (found.more) await context.output.next(`belfry emails list${more}`)
  else if (found.rows[0]) await context.output.next(`belfry emails get ${found.rows[0].id}`)
  else if (optionWords({ ...options, limit: undefined }) === "") {
    await context.output.next(FIRST_EMAIL)
  }
  return undefined
}

const pathOf = (id: string) => `/v1/emails/${encodeURIComponent(id)}`

export const get: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Email>(pathOf(id))
  await context.output.record(data, () => emailText(data, context.paint))
  await context.output.next(`belfry emails attempts ${data.id}`)
  return undefined
}

export const events: Action<object> = async (context, _, id = "") => {
  const { output, paint } = context
  const { data } = await context.client().get<EmailEvents>(`${pathOf(id)}/events`)
  if (output.form === "ndjson" || output.form === "quiet") {
    for (const event of data.events) await output.line(event, () => "")
    return undefined
  }
  await output.record(data, () => {
    const lines = data.events.map((event) => eventText(event, paint))
    return [statusMark({ status: data.status, status_reason: null }, paint), ...lines].join("\n")
  })
  return undefined
}

const attemptColumns: Column<Attempt>[] = [
  { title: "TRY", cell: ({ attempt }) => String(attempt) },
  { title: "AT", cell: ({ started_at }) => started_at },
  { title: "TOOK", cell: ({ duration_ms }) => `${duration_ms} ms` },
  { title: "OUTCOME", cell: ({ outcome }) => outcome },
  { title: "SERVER", cell: ({ mx, provider }) => mx ?? provider, flexible: true },
  { title: "ANSWER", cell: ({ response }) => response ?? "", flexible: true },
]

export const attempts: Action<object> = async (context, _, id = "") => {
  const { data } = await context.client().get<Attempt[]>(`${pathOf(id)}/attempts`)
  await context.output.list(data, attemptColumns)
  return undefined
}

/** The bytes as they were sent; on a terminal without what could move the cursor. */
export const raw: Action<object> = async (context, _, id = "") => {
  const bytes = await context.client().bytes(`${pathOf(id)}/raw`)
  const shown = context.terminal.out ? cleanText(new TextDecoder().decode(bytes)) : bytes
  await context.output.raw(shown)
  return undefined
}

interface ContentOptions {
  html?: boolean
  text?: boolean
}

export const content: Action<ContentOptions> = async (context, options, id = "") => {
  const { output, paint, terminal } = context
  const { data } = await context.client().get<Content>(`${pathOf(id)}/content`)
  if (options.html || options.text) {
    const part = (options.html ? data.html : data.text) ?? ""
    await output.raw(terminal.out ? `${cleanText(part)}\n` : part)
    return undefined
  }
  await output.record(data, () =>
    [paint.bold(cleanLine(data.subject ?? "")), "", cleanText(data.text ?? "")].join("\n"),
  )
  return undefined
}

interface AttachmentOptions {
  saveAs?: string
}

export const attachment: Action<AttachmentOptions> = async (
  context,
  { saveAs: path },
  id = "",
  attachment_id = "",
) => {
  const { output, paint, terminal } = context
  if (path === undefined && terminal.out) {
    throw usage("an attachment is not written to a terminal", "name a file with --save-as")
  }
  const address = `${pathOf(id)}/attachments/${encodeURIComponent(attachment_id)}`
  const bytes = await context.client().bytes(address)
  if (path === undefined) {
    await output.raw(bytes)
    return undefined
  }
  try {
    writeFileSync(path, bytes)
  } catch (error) {
    throw new Failure(exits.storage, "storage", `${path} cannot be written: ${String(error)}`)
  }
  const record = { id: attachment_id, path, size: bytes.length }
  await output.record(record, () => `${paint.green("✓")} ${path} (${bytes.length} bytes)`)
  return undefined
}
