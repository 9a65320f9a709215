import { basename } from "node:path"
import { usage } from "../failure"
import { readBytes, readJson, readText } from "../input"
import { headerFields, pairs } from "../pairs"

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
