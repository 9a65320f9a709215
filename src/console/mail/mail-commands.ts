import { type ApiRequest, requestOf } from "../../client/client"
import { quoted } from "../curl"
import type { OpenMail } from "./mail-records"

/** One action on a mail, as a terminal and a program do it. */
export interface MailCommand {
  title: string
  belfry: string
  request: ApiRequest
}

/** Everything that the page can do with the mail. */
export function mailCommands({ id, email_id, attachments }: OpenMail): MailCommand[] {
  const params = { mail_id: id }
  const [file] = attachments
  const all: (MailCommand | undefined)[] = [
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
    {
      title: "Download the source",
      belfry: `belfry mailbox raw ${id} > mail.eml`,
      request: requestOf("GET /v1/mailbox/{mail_id}/raw", { params }),
    },
    file && {
      title: "Download a file",
      belfry: `belfry mailbox attachments ${id} ${file.id} --save-as ${quoted(savedName(file))}`,
      request: requestOf("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
        params: { ...params, attachment_id: file.id },
      }),
    },
    {
      title: "Check it and its links",
      belfry: `belfry mailbox check ${id} --links`,
      request: requestOf("POST /v1/mailbox/{mail_id}/check", { params, body: { links: true } }),
    },
    {
      title: "Release it",
      belfry: `belfry mailbox release ${id}`,
      request: requestOf("POST /v1/mailbox/{mail_id}/release", { params, body: {} }),
    },
    email_id === null
      ? undefined
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
  return all.filter((one) => one !== undefined)
}

/** The name of the file without folders and without signs that a shell or a disk could take otherwise. */
function savedName({ id, filename }: OpenMail["attachments"][number]): string {
  const name = (filename ?? "").replace(/^.*[/\\]/, "").replaceAll(/[\p{C}<>:"|?*]/gu, "")
  return /^[^.-]/.test(name) ? name : `${id}.bin`
}
