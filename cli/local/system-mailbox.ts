import { parseMail } from "../../src/mailbox/parse-task"
import type { Action, Context } from "../lib/context"
import { exits } from "../lib/errors"
import { columns, DEFAULT_WAIT, type Filters, noMail, POLL, queryOf, shown } from "../lib/mail-text"
import { limitOf } from "../lib/paging"
import type { Mail, MailSummary } from "../lib/records"
import type { Column } from "../lib/table"
import { millis, pause } from "../lib/time"
import { order } from "./admin-socket"
import { type LocalOptions, sameData } from "./settings"

type SystemFilters = Filters & LocalOptions

/** Mail of the instance itself, which no key and no member reads: only who is at the machine. */
/** Their ids whole: no route lists these mails, so an ending could not be looked up. */
const whole: Column<MailSummary>[] = columns.map((column) =>
  column.ids ? { title: "ID", cell: ({ id }) => id } : column,
)

export const list: Action<SystemFilters> = async (context, options) => {
  await context.output.list(await mails(context, options, limitOf(options.limit)), whole)
  return undefined
}

function mails(context: Context, options: SystemFilters, limit: number) {
  const filter = queryOf(options)
  return order<MailSummary[]>(context, options, { operation: "system_mails", ...filter, limit })
}

export const get: Action<SystemFilters> = (context, options, id = "") => show(context, options, id)

async function show(context: Context, options: LocalOptions, id: string) {
  type Kept = Omit<Mail, "html" | "text" | "attachments"> & { raw: string }
  const { raw, ...mail } = await order<Kept>(context, options, { operation: "system_mail", id })
  const { headers, html, text, attachments } = await parseMail(Buffer.from(raw, "base64"))
  const whole = { ...mail, headers, html, text, attachments }
  await context.output.record(whole, () => shown(whole, context.paint))
  return undefined
}

function nothingCame({ output }: Context, options: SystemFilters, limit: number) {
  const there = output.again(`belfry mailbox list --system${sameData(options)}`)
  return noMail(options, limit, `\`${there}\` lists the mailbox`)
}

/** As `mailbox wait`. */
export const wait: Action<SystemFilters> = async (context, options) => {
  const limit = context.timeout ?? DEFAULT_WAIT
  const deadline = millis() + limit
  const wanted = options.subject?.toLowerCase() ?? ""
  while (true) {
    const found = (await mails(context, options, 100)).find(({ subject }) =>
      (subject ?? "").toLowerCase().includes(wanted),
    )
    if (found) {
      await show(context, options, found.id)
      return exits.done
    }
    if (millis() + POLL > deadline) throw nothingCame(context, options, limit)
    await pause(POLL)
  }
}
