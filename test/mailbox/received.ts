import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { keep } from "../../src/mailbox/mailbox"
import type { Kept } from "../../src/messages/contents"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject, TestService } from "../harness/service"

type Owner = Pick<TestProject, "project_id" | "account_id">

interface Input {
  raw: string | Kept
  subject?: string
  to?: string
  recipients?: string[]
  from?: string
  email_id?: string | null
}

/** Puts a mail into the mailbox of a project, as the embedded server does. Lines end with CRLF here. */
export async function putMail(
  { store }: Pick<TestService, "store">,
  { project_id, account_id }: Owner,
  { raw, subject = "Ding", to = "ann@example.test", recipients = [to], ...given }: Input,
): Promise<string> {
  const { from = "bell@example.test", email_id = null } = given
  const id = newId()
  const bytes = typeof raw === "string" ? Buffer.from(raw.replace(/\r?\n/g, "\r\n")) : raw
  const row = {
    ...{ id, project_id, account_id, email_id, mail_from: from, subject },
    ...{ recipients, to_address: to, from_address: from },
    ...{ raw: bytes, size: "file" in bytes ? 0 : bytes.length, created_at: now() },
  }
  await store.tx((tx) => keep(tx, row))
  return id
}

/** Sends through the real pipeline, and puts what came out of it into the mailbox. */
export async function sendAndPut(service: TestService, project: TestProject, fields = mail()) {
  const { id: email_id } = (await project.post("/v1/emails", fields)).body
  const handed = await deliverAll(service)
  const own = handed.find(({ message_id }) => message_id === email_id)
  const raw = Buffer.from(own?.raw ?? [])
  const recipients = own?.to ?? []
  const to = recipients[0]?.toLowerCase() ?? ""
  const subject = String(fields.subject)
  return {
    email_id: String(email_id),
    id: await putMail(service, project, { raw, subject, to, recipients, email_id }),
  }
}

/** A mail with html alone, and the files given. */
export const htmlMail = (html: string, ...files: string[]): string =>
  files.length === 0
    ? `From: a@b.test\nSubject: x\nContent-Type: text/html; charset=utf-8\n\n${html}\n`
    : [
        'From: a@b.test\nSubject: x\nContent-Type: multipart/related; boundary="b"\n',
        `--b\nContent-Type: text/html; charset=utf-8\n\n${html}`,
        ...files.map((file) => `--b\n${file}`),
        "--b--\n",
      ].join("\n")

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** An inline part. Its bytes are a PNG, unless others are given. */
export const inlinePart = (content_id: string, type = "image/png", base64 = PIXEL): string =>
  `Content-Type: ${type}; name="p"\nContent-ID: <${content_id}>\nContent-Transfer-Encoding: base64\n\n${base64}`
