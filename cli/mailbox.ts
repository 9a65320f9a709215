import type { Client } from "./client"
import { confirm } from "./confirm"
import type { Action, Context } from "./context"
import { exits, Failure } from "./failure"
import { FIRST_EMAIL, optionWords } from "./hint"
import { limitOf, listUpTo } from "./paging"
import type { Query } from "./query"
import { address, type Mail, type MailSummary } from "./records"
import { type Column, fields, idColumn } from "./table"
import { cleanText, type Paint } from "./terminal"
import { age, millis, moment, pause } from "./time"

export const POLL = 200
export const DEFAULT_WAIT = 30_000

export interface Filters {
  to?: string
  from?: string
  search?: string
  subject?: string
  since?: string
  limit?: string
}

export const columns: Column<MailSummary>[] = [
  idColumn("mail"),
  { title: "FROM", cell: ({ from }) => address(from), flexible: "first" },
  { title: "TO", cell: ({ to }) => address(to), flexible: "last" },
  { title: "SUBJECT", cell: ({ subject }) => subject ?? "", flexible: "first" },
  { title: "AGE", cell: ({ created_at }) => age(created_at) },
]

export const queryOf = ({ to, from, search, since }: Filters) => ({
  to,
  from,
  search,
  since: since === undefined ? undefined : moment(since, "--since"),
})

export const list: Action<Filters> = async (context, options) => {
  const limit = limitOf(options.limit)
  const { rows } = await listUpTo<MailSummary>(
    context.client(),
    "/v1/mailbox",
    queryOf(options),
    limit,
  )
  await context.output.list(rows, columns)
  await context.output.next(rows[0] ? `belfry mailbox get ${rows[0].id}` : FIRST_EMAIL)
  return undefined
}

export const get: Action<object> = async (context, _, id = "") => {
  const mail = await read(context.client(), id)
  await context.output.record(mail, () => shown(mail, context.paint))
  return undefined
}

const read = async (client: Client, id: string): Promise<Mail> =>
  (await client.get<Mail>(`/v1/mailbox/${encodeURIComponent(id)}`)).data

export function shown(mail: Mail, paint: Paint): string {
  const head = fields(
    [
      ["id", mail.id],
      ["email", mail.email_id],
      ["from", address(mail.from)],
      ["to", address(mail.to)],
      ["subject", mail.subject],
      ["at", mail.created_at],
      ["attached", mail.attachments.map(({ filename }) => filename ?? "unnamed").join(", ")],
    ],
    paint,
  )
  return `${head}\n\n${cleanText(mail.text ?? mail.html ?? "").trimEnd()}`
}

/** Prints the newest mail that fits, as soon as there is one. Exit 1 when the time is over first. */
export const wait: Action<Filters> = async (context, options) => {
  const limit = context.timeout ?? DEFAULT_WAIT
  const client = context.client(Math.max(limit, 5000))
  const query = { ...queryOf(options), per_page: 100 }
  const deadline = millis() + limit

  while (true) {
    const id = await newest(client, query, options.subject)
    if (id !== undefined) {
      const mail = await read(client, id)
      await context.output.record(mail, () => shown(mail, context.paint))
      return exits.done
    }
    if (millis() + POLL > deadline) throw nothingCame(context, options, limit)
    await pause(POLL)
  }
}

async function newest(client: Client, query: Query, subject: string | undefined) {
  const { data } = await client.get<MailSummary[]>("/v1/mailbox", query)
  const wanted = subject?.toLowerCase() ?? ""
  return data.find((mail) => (mail.subject ?? "").toLowerCase().includes(wanted))?.id
}

export function nothingCame(context: Context, options: Filters, limit: number): Failure {
  const { output } = context
  const there = output.again("belfry mailbox list")
  const why = output.again(`belfry emails list${optionWords({ to: options.to })}`)
  return noMail(
    options,
    limit,
    `\`${there}\` lists the mailbox, \`${why}\` shows what happened to the mail`,
  )
}

export function noMail(options: Filters, limit: number, hint: string): Failure {
  const { to, from, subject } = options
  const where = [`to ${to}`, from && `from ${from}`, subject && `with "${subject}" in its subject`]
  const message = `No mail ${where.filter(Boolean).join(" ")} came within ${limit / 1000} s.`
  return new Failure(exits.failed, "timeout", message, { details: { to, limit_ms: limit }, hint })
}

export const clear: Action<Filters> = async (context, { to }) => {
  const which = to ? `all mail to ${to}` : "all mail of the project"
  context.output.promises(["deleted"])
  await confirm(context, `This deletes ${which} from the mailbox.`, "clear")
  const { data } = await context.client().remove<{ deleted: number }>("/v1/mailbox", { to })
  await context.output.record(
    data,
    () =>
      `${context.paint.green("✓")} deleted ${data.deleted} ${data.deleted === 1 ? "mail" : "mails"}`,
  )
  return undefined
}
