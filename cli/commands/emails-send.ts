import { basename } from "node:path"
import type { Action, Context } from "../lib/context"
import { emailText, statusMark } from "../lib/email-text"
import { exits, Failure, usage } from "../lib/errors"
import { batch_fields, email_fields, ref_fields } from "../lib/fields"
import { FIRST_EMAIL } from "../lib/flags"
import { headerFields, pairs, readBytes, readJson, readText } from "../lib/input"
import type { BatchItem, BatchResult, Email, EmailRef } from "../lib/records"
import { type Column, table } from "../lib/table"
import { settled, waitUntilSettled } from "./emails-follow"

const DEFAULT_WAIT = 60_000
const CALL_LIMIT = 30_000

/** Sends one email. With `--wait` exit 1 when it is settled and did not get there. */
export const send: Action<SendOptions> = async (context, options) => {
  if (!options.to && !options.file) {
    throw usage("--to is missing", context.output.again(FIRST_EMAIL))
  }
  context.output.promises(options.wait ? email_fields : ref_fields)
  const body = await composeBody(options)
  // With --wait, --timeout is the time to wait; the call that sends has a limit of its own.
  const client = context.client(options.wait ? CALL_LIMIT : undefined)
  const headers = keyHeader(options.idempotencyKey)
  const { data } = await client.post<EmailRef>("/v1/emails", body, headers)
  return options.wait ? await waited(context, data) : await queued(context, data)
}

const keyHeader = (key: string | undefined) => (key ? { "idempotency-key": key } : undefined)

async function queued({ output, paint }: Context, sent: EmailRef): Promise<undefined> {
  const hint = paint.dim(`   → ${output.again(`belfry emails tail ${sent.id}`)}`)
  await output.record(sent, () => `${paint.green("✓")} ${sent.status}  ${sent.id}${hint}`)
  return undefined
}

async function waited(context: Context, { id }: EmailRef): Promise<number> {
  const { output, paint } = context
  await output.note(paint.dim(`queued ${id}, waiting`))
  const email = await waitUntilSettled(context.client(), id, context.timeout ?? DEFAULT_WAIT)
  await output.record(email, () => `${statusMark(email, paint)}  ${email.id}`)
  if (!settled(email))
    await output.note(`the waiting time is over; the status is still ${email.status}`)
  return ["sent", "delivered"].includes(email.status) ? 0 : 1
}

export const cancel: Action<object> = async (context, _, id = "") => {
  context.output.promises(email_fields)
  const { data } = await context.client().post<Email>(`${pathOf(id)}/cancel`)
  const { output, paint } = context
  await output.record(data, () => `${paint.green("✓")} cancelled\n${emailText(data, paint)}`)
  return undefined
}

export const resend: Action<SendOptions> = async (context, { to, idempotencyKey }, id = "") => {
  context.output.promises(ref_fields)
  const body = to ? { to } : undefined
  const headers = keyHeader(idempotencyKey)
  const { data } = await context.client().post<EmailRef>(`${pathOf(id)}/resend`, body, headers)
  return await queued(context, data)
}

const pathOf = (id: string) => `/v1/emails/${encodeURIComponent(id)}`

/** What `emails send` takes, as commander reads it. */
export interface SendOptions {
  to?: string
  from?: string
  cc?: string[]
  bcc?: string[]
  subject?: string
  text?: string
  html?: string
  textFile?: string
  htmlFile?: string
  attach?: string[]
  replyTo?: string
  tag?: string[]
  metadata?: string[]
  header?: string[]
  file?: string
  idempotencyKey?: string
  wait?: boolean
}

export type SendBody = Record<string, unknown>

/** The body of POST /v1/emails: the file first, then every option on top. Reads files and stdin. */
export async function composeBody(options: SendOptions): Promise<SendBody> {
  const { text, html, textFile, htmlFile, attach, metadata, header } = options
  if (text !== undefined && textFile !== undefined) throw usage("give either --text or --text-file")
  if (html !== undefined && htmlFile !== undefined) throw usage("give either --html or --html-file")

  const body: SendBody = {
    ...(options.file === undefined ? {} : await readObject(options.file)),
    ...stated({
      to: options.to,
      from: options.from,
      cc: options.cc,
      bcc: options.bcc,
      subject: options.subject,
      text: await bodyOf(text, textFile, "--text"),
      html: await bodyOf(html, htmlFile, "--html"),
      reply_to: options.replyTo,
      tags: options.tag,
    }),
  }
  if (metadata) body.metadata = { ...asObject(body.metadata), ...pairs(metadata, "--metadata") }
  if (header) body.headers = { ...asObject(body.headers), ...headerFields(header) }
  if (attach) body.attachments = [...asList(body.attachments), ...(await attachments(attach))]
  return body
}

const stated = (body: SendBody): SendBody =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))

async function readObject(path: string): Promise<SendBody> {
  const body = await readJson(path, "--file")
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw usage(
      "--file: the file must have one JSON object",
      "for several emails use `belfry emails batch`",
    )
  }
  return body as SendBody
}

async function bodyOf(inline: string | undefined, file: string | undefined, option: string) {
  if (file !== undefined) return await readText(file, `${option}-file`)
  return inline === "-" ? await readText("-", option) : inline
}

const asObject = (value: unknown) => (typeof value === "object" && value !== null ? value : {})
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const attachments = (paths: string[]) =>
  Promise.all(
    paths.map(async (path) => {
      const bytes = await readBytes(path, "--attach")
      const [type = "application/octet-stream"] = Bun.file(path).type.split(";")
      return {
        filename: path === "-" ? "attachment" : basename(path),
        content: Buffer.from(bytes).toString("base64"),
        content_type: path === "-" ? "application/octet-stream" : type,
      }
    }),
  )

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
