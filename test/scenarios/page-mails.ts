import nodemailer from "nodemailer"
import type { Belfry } from "../harness/binary"
import { type Server, until } from "./mails"

/** A mail of the embedded mailbox, as the list and `GET /v1/mailbox/{id}` tell it. */
export interface MailboxMail {
  id: string
  subject: string
  to: string
  html_url: string | null
  read: boolean
}

/** Hands a mail as it is to the SMTP server of the embedded mailbox. */
export async function drop(server: Belfry, raw: string | Buffer, to = "hostile@mailbox.test") {
  const port = server.smtp.mailbox ?? 0
  const client = nodemailer.createTransport({ host: "127.0.0.1", port, ignoreTLS: true })
  await client.sendMail({ raw, envelope: { from: "eve@elsewhere.test", to } })
  client.close()
}

/** The newest mail with a subject, whole. */
export async function mailWith(server: Server, subject: string): Promise<MailboxMail> {
  const found = await until(`a mail with the subject ${subject}`, async () => {
    const list = await data<MailboxMail[]>(server, "/v1/mailbox?per_page=100")
    return list.find((one) => one.subject === subject)
  })
  return data(server, `/v1/mailbox/${found.id}`)
}

/** The data of an answer that is a success. */
export async function data<Value>(server: Server, path: string, init?: RequestInit) {
  const answer = await server.request(path, init)
  const body = (await answer.json()) as { data: Value }
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${JSON.stringify(body)}`)
  return body.data
}

/** As `data`, with a body to send. */
export const write = <Value = unknown>(
  server: Server,
  method: "POST" | "PATCH" | "PUT",
  path: string,
  body: object,
) => data<Value>(server, path, { method, body: JSON.stringify(body) })

/** Sends through the API, and waits until the mailbox has it. */
export async function sendMail(
  server: Server,
  fields: { subject: string } & Record<string, unknown>,
) {
  const body = { from: "me@mailbox.test", to: "ann@mailbox.test", text: "Hello", ...fields }
  await write(server, "POST", "/v1/emails", body)
  return mailWith(server, fields.subject)
}
