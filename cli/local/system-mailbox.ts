import type { Components } from "../../src/client/components"
import { parseMail } from "../../src/mailbox/parse-task"
import type { Context } from "../lib/context"
import { type MailFilters, mailColumns, type OpenMailbox } from "../lib/email-text"
import { runOrder } from "./admin-socket"
import { type LocalOptions, sameData } from "./settings"

type MailSummary = Components["MailboxMailSummary"]

/** Mail of the instance itself, which no key and no member reads: only the user of the machine does. */
export const systemMail = (context: Context, options: MailFilters & LocalOptions): OpenMailbox => ({
  list: (query, limit) =>
    runOrder<MailSummary[]>(context, options, { operation: "system_mails", ...query, limit }),
  async get(id) {
    type Kept = MailSummary & { raw: string }
    const order = { operation: "system_mail", id } as const
    const { raw, ...mail } = await runOrder<Kept>(context, options, order)
    const { headers, html, text, attachments } = await parseMail(Buffer.from(raw, "base64"))
    return { ...mail, headers, html, text, attachments }
  },
  // Their ids whole: no route lists these mails, so an ending could not be looked up.
  columns: { ...mailColumns, ID: "id" },
  hint: `\`${context.output.again(`belfry mailbox list --system${sameData(options)}`)}\` lists the mailbox`,
})
