import { basename } from "node:path"
import type { Command } from "commander"
import type { AnswerOf } from "../../src/client/client"
import type { Components } from "../../src/client/components"
import { preflightText } from "../lib/checks-text"
import { type Client, fieldsOf } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { statusMark } from "../lib/email-text"
import { exits, Failure, usage } from "../lib/errors"
import { FIRST_EMAIL, HEADER, IDEMPOTENCY_KEY, METADATA, VARIABLE } from "../lib/flags"
import { given, headerFields, onOff, pairs, readBytes, readJson, readText } from "../lib/input"
import { ID } from "../lib/resource"
import { examples, run, several } from "../lib/run"
import { type Columns, table } from "../lib/table"
import { millis, pause } from "../lib/time"
import { readTime, whenText } from "./scheduled"

export function defineSending(emails: Command): void {
  defineSend(emails)
  definePreflight(emails)
  defineBatch(emails)
  emails
    .command("resend <id>")
    .description("send the same content again as a new email")
    .option("--to <address>", "send only to this address (default: all recipients)")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText("after", examples(`emails resend ${ID}`))
    .action(run(resend))
}

/** What an email is made of, as `emails send` and `emails preflight` take it. */
const withContent = (command: Command): Command =>
  command
    .option("--to <address>", "recipient: an address, or `Ann <ann@example.test>`")
    .option("--from <address>", "sender: an address, or `Ann <ann@example.test>`")
    .option("--cc <address>", "recipient of a copy; may be repeated", several)
    .option("--bcc <address>", "recipient of a hidden copy; may be repeated", several)
    .option("--subject <text>", "subject of the email")
    .option("--text <text>", "plain text body; `-` reads stdin")
    .option("--html <html>", "HTML body; `-` reads stdin")
    .option("--text-file <file>", "file with the plain text body")
    .option("--html-file <file>", "file with the HTML body")
    .option("--attach <file...>", "files to attach")
    .option("--reply-to <address>", "address that gets the answers")
    .option("--tag <tag>", "label of the email; may be repeated", several)
    .option("--category <category>", "kind of the mail, which its recipient can unsubscribe from")
    .option("--subscriber <subscriber>", "subscriber that the recipient is, by id or external id")
    .option("--track-opens <on|off>", "count openings of the HTML body (default: the project's)")
    .option("--track-clicks <on|off>", "count clicks in the HTML body (default: the project's)")
    .option("--template <template>", "template in place of subject and texts, by id or name")
    .option(...VARIABLE, several)
    .option(...METADATA, several)
    .option(...HEADER, several)
    .option("--file <file>", "JSON body of POST /v1/emails; other flags replace its fields")
    .option("--schedule-at <time>", "when to send: `in 10m`, `tomorrow 9:00` or ISO")

function definePreflight(emails: Command): void {
  withContent(emails.command("preflight"))
    .description("check an email without sending it; exit 1 if it would be refused")
    .addHelpText(
      "after",
      examples(
        "emails preflight --to ann@mailbox.test --from me@mailbox.test --subject Hi --html-file hi.html",
      ),
    )
    .action(run(preflight))
}

function defineSend(emails: Command): void {
  withContent(emails.command("send"))
    .description("send one email; a file named `-` is stdin")
    .option(...IDEMPOTENCY_KEY)
    .option(
      "--wait",
      "wait for the final status; exit 1 if it is not sent by --timeout (default: 60s)",
    )
    .addHelpText(
      "after",
      examples(
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello",
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Log --text-file - < log",
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --html-file hi.html --wait",
        "emails send --to ann@mailbox.test --from me@mailbox.test --subject Hi --text hello --schedule-at 'tomorrow 9:00'",
      ),
    )
    .action(run(send))
}

function defineBatch(emails: Command): void {
  emails
    .command("batch <file>")
    .description("send up to 100 emails from a JSON array or NDJSON; exit 8 if some are refused")
    .option("--strict", "refuse all emails if one is not valid")
    .option(...IDEMPOTENCY_KEY)
    .addHelpText(
      "after",
      examples("emails batch messages.json", "emails batch - < messages.ndjson"),
    )
    .action(run(batch))
}

type Email = Components["Email"]
type SentEmail = { id: string; status: string; scheduled_at?: string | null }

const DEFAULT_WAIT = 60_000
const CALL_LIMIT = 30_000

/** Sends one email. With `--wait` exit 1 when it is settled and did not get there. */
const send: Action<SendOptions> = async (context, options) => {
  if (!options.to && !options.file) {
    throw usage("--to is missing", context.output.again(FIRST_EMAIL))
  }
  context.output.promises(
    options.wait ? fieldsOf("POST /v1/emails/{email_id}/cancel") : fieldsOf("POST /v1/emails"),
  )
  const at = options.scheduleAt
  const scheduled_at = at === undefined ? undefined : await readTime(at, "--schedule-at", context)
  const body = { ...(await composeBody(options)), ...given({ scheduled_at }) }
  // With --wait, --timeout is the time to wait; the call that sends has a limit of its own.
  const client = context.client(options.wait ? CALL_LIMIT : undefined)
  const headers = keyHeader(options.idempotencyKey)
  const answer = await client.send("POST /v1/emails", { body, headers })
  const { data, meta } = answer as AnswerOf<"POST /v1/emails">
  for (const { message } of meta?.warnings ?? []) await context.output.note(`! ${message}`)
  return options.wait ? await waited(context, data) : await queued(context, data)
}

/** The checks as a table; exit 1 when the email would be refused. */
const preflight: Action<SendOptions> = async (context, options) => {
  if (!options.to && !options.file) throw usage("--to is missing")
  const { output, paint } = context
  output.promises(fieldsOf("POST /v1/emails/preflight"))
  const answer = await context
    .client()
    .send("POST /v1/emails/preflight", { body: await composeBody(options) })
  const { data } = answer as AnswerOf<"POST /v1/emails/preflight">
  await output.record(data, () => preflightText(data, paint))
  return data.ok ? 0 : 1
}

const keyHeader = (key: string | undefined): Record<string, string> =>
  key ? { "idempotency-key": key } : {}

/** After a send: the email, and how to follow it. */
export async function queued({ output, paint }: Context, sent: SentEmail): Promise<undefined> {
  const { id, status, scheduled_at } = sent
  const follow = scheduled_at ? `belfry scheduled get ${id}` : `belfry emails tail ${id}`
  const hint = paint.dim(`   → ${output.again(follow)}`)
  const what = scheduled_at ? `scheduled for ${whenText(scheduled_at)}` : status
  await output.record(sent, () => `${paint.green("✓")} ${what}  ${id}${hint}`)
}

async function waited(context: Context, { id }: SentEmail): Promise<number> {
  const { output, paint } = context
  await output.note(paint.dim(`queued ${id}, waiting`))
  const email = await waitUntilSettled(context.client(), id, context.timeout ?? DEFAULT_WAIT)
  await output.record(email, () => `${statusMark(email, paint)}  ${email.id}`)
  if (!settled(email))
    await output.note(`the waiting time is over; the status is still ${email.status}`)
  return ["sent", "delivered"].includes(email.status) ? 0 : 1
}

const resend: Action<SendOptions> = async (context, { to, idempotencyKey }, email_id = "") => {
  const name = "POST /v1/emails/{email_id}/resend"
  context.output.promises(fieldsOf(name))
  const { data } = await context.call(name, {
    params: { email_id },
    body: given({ to }),
    headers: keyHeader(idempotencyKey),
  })
  return await queued(context, data)
}

/** What `emails send` takes, as commander reads it. */
interface SendOptions {
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
  category?: string
  subscriber?: string
  trackOpens?: string
  trackClicks?: string
  metadata?: string[]
  template?: string
  var?: string[]
  header?: string[]
  file?: string
  scheduleAt?: string
  idempotencyKey?: string
  wait?: boolean
}

type SendBody = Record<string, unknown>

/** The body of POST /v1/emails: the file first, then every option on top. Reads files and stdin. */
async function composeBody(options: SendOptions): Promise<SendBody> {
  const { attach, metadata, header } = options
  const content = await contentOf(options)
  const body: SendBody = {
    ...(options.file === undefined ? {} : await readObject(options.file)),
    ...given({
      to: options.to,
      from: options.from,
      cc: options.cc,
      bcc: options.bcc,
      subject: options.subject,
      ...content,
      reply_to: options.replyTo,
      tags: options.tag,
      category: options.category,
      subscriber_id: options.subscriber,
      track_opens: onOff(options.trackOpens, "--track-opens"),
      track_clicks: onOff(options.trackClicks, "--track-clicks"),
      template_id: options.template,
      variables: options.var && pairs(options.var, "--var"),
    }),
  }
  if (metadata) body.metadata = { ...asObject(body.metadata), ...pairs(metadata, "--metadata") }
  if (header) body.headers = { ...asObject(body.headers), ...headerFields(header) }
  if (attach) body.attachments = [...asList(body.attachments), ...(await attachedFiles(attach))]
  return body
}

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

/** Text and html of the flags, each inline or from a file; `-` reads stdin. */
export async function contentOf(
  options: Pick<SendOptions, "text" | "html" | "textFile" | "htmlFile">,
) {
  const { text, html, textFile, htmlFile } = options
  if (text !== undefined && textFile !== undefined) throw usage("give either --text or --text-file")
  if (html !== undefined && htmlFile !== undefined) throw usage("give either --html or --html-file")
  return {
    text: await bodyOf(text, textFile, "--text"),
    html: await bodyOf(html, htmlFile, "--html"),
  }
}

async function bodyOf(inline: string | undefined, file: string | undefined, option: string) {
  if (file !== undefined) return await readText(file, `${option}-file`)
  return inline === "-" ? await readText("-", option) : inline
}

const asObject = (value: unknown) => (typeof value === "object" && value !== null ? value : {})
const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

/** The files of --attach, as a request names them. */
export const attachedFiles = (paths: string[]) =>
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

type BatchResult = Components["BatchResult"]

type BatchItem = {
  index: number
  id?: string
  status?: string
  error?: { code: string; message: string }
}

const columns: Columns<BatchItem> = {
  "#": "index",
  STATUS: ({ status }) => status ?? "refused ✗",
  ID: "id",
  WHY: ({ error }) => (error ? `${error.code}: ${error.message}` : ""),
}

const BATCH_FIELDS = ["id", "total", "succeeded", "failed", "results"]

/** Sends the messages of a file. Exit 8 when some of them were refused. */
const batch: Action<BatchOptions> = async (context, options, path = "") => {
  const { output, paint, terminal } = context
  const whole = output.form === "json"
  output.promises(whole ? BATCH_FIELDS : ["index", "id", "status", "error"])
  const body = { messages: messagesOf(await readText(path, "FILE"), path) }
  const headers = {
    "x-batch-validation": options.strict ? "strict" : "permissive",
    ...(options.idempotencyKey ? { "idempotency-key": options.idempotencyKey } : {}),
  }
  const answer = await context.client().send("POST /v1/emails/batch", { body, headers })
  const { data } = answer as { data: BatchResult }
  const results: BatchItem[] = data.results
  if (output.form === "quiet" || output.form === "ndjson") {
    for (const item of results)
      if (output.form === "ndjson" || item.id) await output.line(item, () => "")
  } else {
    const refused = results.filter(({ error }) => error)
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

const POLL_MILLISECONDS = 100

/** Nothing more is expected: a relay (`smtp`) says no more after `sent`, the others do. */
export const settled = ({
  status,
  provider,
}: {
  status: string
  provider: string | null
}): boolean =>
  ["delivered", "bounced", "complained", "failed"].includes(status) ||
  (status === "sent" && provider === "smtp")

/** Reads the email until it is settled or `limit` milliseconds are over; the last reading. */
async function waitUntilSettled(client: Client, id: string, limit: number): Promise<Email> {
  const deadline = millis() + limit
  while (true) {
    const { data } = await client.call("GET /v1/emails/{email_id}", {
      params: { email_id: id },
    })
    if (settled(data) || millis() + POLL_MILLISECONDS > deadline) return data
    await pause(POLL_MILLISECONDS)
  }
}
