import type { Command } from "commander"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { exits, type Failure } from "../lib/errors"
import { DATA_DIR, FIRST_EMAIL, LIMIT, optionWords, SINCE } from "../lib/flags"
import { columns, DEFAULT_WAIT, type Filters, noMail, POLL, queryOf, shown } from "../lib/mail-text"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import type { Query } from "../lib/query"
import type { Mail, MailSummary } from "../lib/records"
import { examples, lazily, run } from "../lib/run"
import { millis, pause } from "../lib/time"

/** The embedded mailbox: what arrived there instead of in the world. */
export function define(program: Command): void {
  const mailbox = program
    .command("mailbox")
    .description("read the mail that the embedded mailbox caught")
    .addHelpText("after", examples("mailbox list", "mailbox wait --to ann@mailbox.test"))
  defineReading(mailbox)

  mailbox
    .command("clear")
    .description("delete the project's mail from the mailbox")
    .option("--to <address>", "delete only mail to this address")
    .addHelpText("after", examples("mailbox clear --to ann@mailbox.test --yes"))
    .action(run(clear))
}

/** The project's mail, or with --system that of the instance, which only this machine may read. */
const either = (name: "list" | "get" | "wait") =>
  lazily(async (): Promise<Action<Filters & { system?: boolean }>> => {
    const ours = { list, get, wait }
    return async (context, options, ...words) => {
      if (!options.system) return ours[name](context, options, ...words)
      const system = await import("../local/system-mailbox")
      return system[name](context, options, ...words)
    }
  })

const withSystem = (command: Command): Command =>
  command
    .option("--system", "read the instance's own mail (invitations, resets) on its machine")
    .option(DATA_DIR[0], `with --system: ${DATA_DIR[1]}`)

function defineReading(mailbox: Command) {
  withSystem(mailbox.command("list"))
    .description("list the mail, newest first")
    .option("--to <address>", "show only mail to this address")
    .option("--from <address>", "show only mail from this address")
    .option("--search <text>", "show only mail that contains this text")
    .option(...SINCE)
    .option(...LIMIT)
    .addHelpText("after", examples("mailbox list --to ann@mailbox.test --since 1h"))
    .action(either("list"))

  withSystem(mailbox.command("get <id>"))
    .description("show one mail with headers, text and HTML")
    .addHelpText("after", examples("mailbox get 0199a1c2-0000-7000-8000-000000000001"))
    .action(either("get"))

  withSystem(mailbox.command("wait"))
    .description("wait for a mail and print it; exit 1 at --timeout (default: 30s)")
    .requiredOption("--to <address>", "recipient of the mail")
    .option("--from <address>", "sender of the mail")
    .option("--subject <text>", "text in the subject")
    .option(...SINCE)
    .addHelpText(
      "after",
      examples("mailbox wait --to ann@mailbox.test --subject Receipt --timeout 10s --json=id,text"),
    )
    .action(either("wait"))
}

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
