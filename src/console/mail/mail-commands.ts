import { type ApiRequest, requestOf } from "../../client/client"
import type { Components } from "../../client/components"
import { quoted } from "../curl"

/** A mail with all its parts. */
export type OpenMail = Components["MailboxMail"]

/** What the page does, as a terminal and a program do it. */
interface MailCommand {
  belfry: string
  request: ApiRequest
}

export type TabName = "html" | "text" | "source" | "headers" | "attachments" | "check" | "timeline"

/** What a tab shows of the mail. */
export function tabCommand(tab: TabName, { id, email_id, attachments }: OpenMail): MailCommand {
  const params = { mail_id: id }
  if (tab === "source") return sourceCommand(id)
  if (tab === "check") return checkCommand(id, false)
  if (tab === "attachments")
    return {
      belfry: `belfry mailbox attachments ${id}`,
      request: requestOf("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
        params: { ...params, attachment_id: attachments[0]?.id ?? "0" },
      }),
    }
  if (tab === "timeline" && email_id !== null)
    return {
      belfry: `belfry emails events ${email_id}`,
      request: requestOf("GET /v1/emails/{email_id}/events", { params: { email_id } }),
    }
  return {
    belfry: `belfry mailbox get ${id} --json=${tab}`,
    request: requestOf("GET /v1/mailbox/{mail_id}", { params }),
  }
}

const sourceCommand = (mail_id: string): MailCommand => ({
  belfry: `belfry mailbox raw ${mail_id} > mail.eml`,
  request: requestOf("GET /v1/mailbox/{mail_id}/raw", { params: { mail_id } }),
})

/** The check of a mail, with the servers of its links or without them. */
export const checkCommand = (mail_id: string, links: boolean): MailCommand => ({
  belfry: `belfry mailbox check ${mail_id}${links ? " --links" : ""}`,
  request: requestOf("POST /v1/mailbox/{mail_id}/check", { params: { mail_id }, body: { links } }),
})

/** Everything that the page can do with the mail. */
export function mailCommands({ id, email_id, attachments }: OpenMail) {
  const params = { mail_id: id }
  const [file] = attachments
  const all: ((MailCommand & { title: string }) | null | undefined)[] = [
    {
      title: "Show it",
      belfry: `belfry mailbox get ${id}`,
      request: requestOf("GET /v1/mailbox/{mail_id}", { params }),
    },
    {
      title: "Mark it as read, or as unread",
      belfry: `belfry mailbox read ${id}\nbelfry mailbox read ${id} --unread`,
      request: requestOf("PATCH /v1/mailbox/{mail_id}", { params, body: { read: false } }),
    },
    { title: "Download the source", ...sourceCommand(id) },
    file && {
      title: "Download a file",
      belfry: `belfry mailbox attachments ${id} ${file.id} --save-as ${quoted(savedName(file))}`,
      request: requestOf("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
        params: { ...params, attachment_id: file.id },
      }),
    },
    { title: "Check it and its links", ...checkCommand(id, true) },
    {
      title: "Release it",
      belfry: `belfry mailbox release ${id}`,
      request: requestOf("POST /v1/mailbox/{mail_id}/release", { params, body: {} }),
    },
    email_id === null
      ? null
      : {
          title: "Send it again",
          belfry: `belfry emails resend ${email_id}`,
          request: requestOf("POST /v1/emails/{email_id}/resend", { params: { email_id } }),
        },
    {
      title: "Delete it",
      belfry: `belfry mailbox rm ${id} --yes`,
      request: requestOf("DELETE /v1/mailbox/{mail_id}", { params }),
    },
  ]
  return all.filter((one) => one != null)
}

/** The name of the file without folders and without signs that a shell or a disk could take otherwise. */
function savedName({ id, filename }: OpenMail["attachments"][number]): string {
  const name = (filename ?? "").replace(/^.*[/\\]/, "").replaceAll(/[\p{C}<>:"|?*]/gu, "")
  return /^[^.-]/.test(name) ? name : `${id}.bin`
}
/** What a person writes; the fields of `POST /v1/emails` that the page offers. */
export interface MailDraft {
  from: string
  to: string
  subject: string
  html: string
  text: string
}

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

/** The same mail from a terminal. */
export function sendCommand(draft: MailDraft): string {
  const flags = Object.entries(bodyOf(draft)).map(([name, value]) => `--${name} ${quoted(value)}`)
  return ["belfry emails send", ...flags].join(" \\\n  ")
}
