import type { Components } from "../../src/client/components"
import { parseMail } from "../../src/mailbox/parse-task"
import type { Action, Context } from "../lib/context"
import {
  awaitMail,
  MAIL_WAIT_MILLISECONDS,
  type MailFilters,
  mailColumns,
  mailQuery,
  mailText,
} from "../lib/email-text"
import { limitOf } from "../lib/paging"
import { runOrder } from "./admin-socket"
import { type LocalOptions, sameData } from "./settings"

type MailSummary = Components["MailboxMailSummary"]

type SystemFilters = MailFilters & LocalOptions

/** Mail of the instance itself, which no key and no member reads: only the user of the machine does. */
/** Their ids whole: no route lists these mails, so an ending could not be looked up. */
const columns = { ...mailColumns, ID: "id" } as const

export const list: Action<SystemFilters> = async (context, options) => {
  await context.output.list(await mails(context, options, limitOf(options.limit)), columns)
}

function mails(context: Context, options: SystemFilters, limit: number) {
  const filter = mailQuery(options)
  return runOrder<MailSummary[]>(context, options, { operation: "system_mails", ...filter, limit })
}

export const get: Action<SystemFilters> = (context, options, id = "") => show(context, options, id)

async function show(context: Context, options: LocalOptions, id: string): Promise<undefined> {
  type Kept = MailSummary & { raw: string }
  const { raw, ...mail } = await runOrder<Kept>(context, options, { operation: "system_mail", id })
  const { headers, html, text, attachments } = await parseMail(Buffer.from(raw, "base64"))
  const whole = { ...mail, headers, html, text, attachments }
  await context.output.record(whole, () => mailText(whole, context.paint))
}

/** As `mailbox wait`. */
export const wait: Action<SystemFilters> = async (context, options) => {
  const there = context.output.again(`belfry mailbox list --system${sameData(options)}`)
  const limit = context.timeout ?? MAIL_WAIT_MILLISECONDS
  const look = () => mails(context, options, 100)
  const hint = `\`${there}\` lists the mailbox`
  return await show(context, options, await awaitMail(look, options, limit, hint))
}
