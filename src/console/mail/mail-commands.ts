import type { Components } from "../../client/components"
import { type Command, commandOf, quoted } from "../curl"

export type OpenMail = Components["MailboxMail"]

/** A text stands here as a mail. No route of emails knows it, so it has no timeline and is not sent again. */
export const withoutText = (mail: OpenMail): OpenMail =>
  mail.to.endsWith("@sms.mailbox.test") ? { ...mail, email_id: null } : mail

export type TabName = "html" | "text" | "source" | "headers" | "attachments" | "check" | "timeline"

const ONE = "GET /v1/mailbox/{mail_id}"
const FILE = "GET /v1/mailbox/{mail_id}/attachments/{attachment_id}"

export function tabCommand(tab: TabName, { id, email_id, attachments }: OpenMail): Command {
  const params = { mail_id: id }
  if (tab === "source") return sourceCommand(id)
  if (tab === "attachments") {
    const attachment_id = attachments[0]?.id ?? "0"
    const input = { params: { ...params, attachment_id } }
    return commandOf(`belfry mailbox attachments ${id}`, FILE, input)
  }
  if (tab === "timeline" && email_id !== null) {
    const belfry = `belfry emails events ${email_id}`
    return commandOf(belfry, "GET /v1/emails/{email_id}/events", { params: { email_id } })
  }
  return commandOf(`belfry mailbox get ${id} --json=${tab}`, ONE, { params })
}

const sourceCommand = (mail_id: string): Command =>
  commandOf(`belfry mailbox raw ${mail_id} > mail.eml`, "GET /v1/mailbox/{mail_id}/raw", {
    params: { mail_id },
  })

export const checkCommand = (mail_id: string, links: boolean): Command =>
  commandOf(
    `belfry mailbox check ${mail_id}${links ? " --links" : ""}`,
    "POST /v1/mailbox/{mail_id}/check",
    { params: { mail_id }, body: { links } },
  )

export function mailCommands({ id, email_id, attachments }: OpenMail) {
  const params = { mail_id: id }
  const [file] = attachments
  const read = `belfry mailbox read ${id}`
  const all = {
    "Show it": commandOf(`belfry mailbox get ${id}`, ONE, { params }),
    "Mark it as read, or as unread": commandOf(
      `${read}\n${read} --unread`,
      "PATCH /v1/mailbox/{mail_id}",
      { params, body: { read: false } },
    ),
    "Download the source": sourceCommand(id),
    "Download a file":
      file &&
      commandOf(
        `belfry mailbox attachments ${id} ${file.id} --save-as ${quoted(savedName(file))}`,
        FILE,
        { params: { ...params, attachment_id: file.id } },
      ),
    "Check it and its links": checkCommand(id, true),
    "Release it": commandOf(`belfry mailbox release ${id}`, "POST /v1/mailbox/{mail_id}/release", {
      params,
      body: {},
    }),
    "Send it again":
      email_id === null
        ? undefined
        : commandOf(`belfry emails resend ${email_id}`, "POST /v1/emails/{email_id}/resend", {
            params: { email_id },
          }),
    "Delete it": commandOf(`belfry mailbox rm ${id} --yes`, "DELETE /v1/mailbox/{mail_id}", {
      params,
    }),
  }
  return Object.entries(all).flatMap(([title, one]) => (one ? [{ title, ...one }] : []))
}

/** The name of the file without folders and without signs that a shell or a disk could take otherwise. */
function savedName({ id, filename }: OpenMail["attachments"][number]): string {
  const name = (filename ?? "").replace(/^.*[/\\]/, "").replaceAll(/[\p{C}<>:"|?*]/gu, "")
  return /^[^.-]/.test(name) ? name : `${id}.bin`
}

/** What a person writes; the fields of `POST /v1/emails` that the page offers. */
export type MailDraft = Record<"from" | "to" | "subject" | "html" | "text", string>

/** A mail that shows what the mailbox can do, if it is sent as it stands. */
export const firstMail = (from: string, origin: string): MailDraft => ({
  from,
  to: "you@mailbox.test",
  subject: "It works",
  html: `<h1>It works</h1>
<p>This is the first mail of <b>Belfry</b>. Look at it at the width of a phone, and in the dark.</p>
<p><a href="${origin}/docs">The reference</a> says how a program sends it.
<a href="http://127.0.0.1:9/nowhere">This link is dead</a>: the check of the links finds it.</p>`,
  text: "",
})

/** The body of the request: an empty field is left out. */
export function bodyOf({ from, to, subject, html, text }: MailDraft) {
  return { from, to, subject, ...(html && { html }), ...(text && { text }) }
}

export function sendCommand(draft: MailDraft): string {
  const flags = Object.entries(bodyOf(draft)).map(([name, value]) => `--${name} ${quoted(value)}`)
  return ["belfry emails send", ...flags].join(" \\\n  ")
}
