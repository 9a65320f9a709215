import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { mailCheckText } from "../lib/checks-text"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import {
  awaitMail,
  MAIL_WAIT_MILLISECONDS,
  type MailFilters,
  mailColumns,
  mailQuery,
  mailText,
} from "../lib/email-text"
import { exits, usage } from "../lib/errors"
import { DATA_DIR, FIRST_EMAIL, LIMIT, optionWords, SINCE } from "../lib/flags"
import { given, wholeNumber } from "../lib/input"
import { fileColumns, printRaw, saveAttachment } from "../lib/mail-files"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { asks, groupOf, ID, row } from "../lib/resource"
import { examples, lazily, run } from "../lib/run"
import { fields } from "../lib/table"

/** The embedded mailbox: the commands that are plain. */
export const mailboxRows = [
  row("read <id>", "PATCH /v1/mailbox/{mail_id}", {
    about: "mark a mail as read, or with --unread as unread again",
    flags: { read: false },
    options: (command) => command.option("--unread", "mark it as unread"),
    body: ({ unread }) => ({ read: unread !== true }),
    done: ({ id, read }) => `marked ${id} as ${read ? "read" : "unread"}`,
  }),
  row("rm <id>", "DELETE /v1/mailbox/{mail_id}", {
    about: "delete one mail from the mailbox",
    example: "--yes",
    confirm: asks((id) => `The mail ${id} will be deleted from the mailbox now.`, "delete"),
    done: ({ id }) => `deleted ${id}`,
  }),
  row("check <id>", "POST /v1/mailbox/{mail_id}/check", {
    about: "check a mail: programs that lack what it uses, content, size; exit 1 for a dead link",
    example: ["--links", ""],
    flags: { links: false },
    options: (command) => command.option("--links", "ask the servers of the links, too"),
    body: ({ links }) => ({ links: links === true }),
    shown: mailCheckText,
    exit: ({ links }) => (links?.some(({ ok }) => ok === false) ? exits.failed : exits.done),
  }),
  row("release <id>", "POST /v1/mailbox/{mail_id}/release", {
    about: "send a caught mail to a real provider, as it stands",
    example: "--to ann@acme.test",
    flags: {
      to: "recipient (default: that of the mail)",
      provider: "id of the provider (default: the first one that is no mailbox)",
    },
    done: ({ status, id }) => `${status}  ${id}`,
    next: ({ id }) => `emails tail ${id}`,
  }),
  row("clear", "DELETE /v1/mailbox", {
    about: "delete the project's mail from the mailbox, or only that to one recipient",
    example: ["--yes", "--to ann@mailbox.test --yes"],
    flags: { to: "delete only mail to this address" },
    confirm: async (context, _, __, { to }) => {
      const which = to ? `all mail to ${to}` : "all mail of the project"
      await confirm(context, `This deletes ${which} from the mailbox.`, "clear")
      return undefined
    },
    done: ({ deleted }) => `deleted ${deleted} ${deleted === 1 ? "mail" : "mails"}`,
  }),
]

/** The embedded mailbox: what arrived there instead of in the world. */
export function define(program: Command): void {
  const mailbox = groupOf(program, "mailbox")
  defineReading(mailbox)
  defineFiles(mailbox)
  defineChaos(mailbox)
}

/** The project's mail, or with --system that of the instance, which only this machine may read. */
const either = (name: "list" | "get" | "wait") =>
  lazily(async (): Promise<Action<MailFilters & { system?: boolean }>> => {
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
    .option("--unread", "show only mail that nobody read")
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

function defineFiles(mailbox: Command) {
  mailbox
    .command("raw <id>")
    .description("print a mail as it came in (RFC 5322)")
    .addHelpText("after", examples(`mailbox raw ${ID} > mail.eml`))
    .action(run(raw))

  mailbox
    .command("attachments <id> [attachment]")
    .description("list the attachments of a mail, or write one to a file or into a pipe")
    .option("--save-as <file>", "file to write the attachment to; `-` is stdout")
    .addHelpText(
      "after",
      examples(`mailbox attachments ${ID}`, `mailbox attachments ${ID} 0 --save-as receipt.pdf`),
    )
    .action(run(attachments))
}

const raw: Action<object> = async (context, _, mail_id = "") => {
  const bytes = await context.call("GET /v1/mailbox/{mail_id}/raw", { params: { mail_id } })
  await printRaw(context, bytes)
}

const attachments: Action<{ saveAs?: string }> = async (
  context,
  { saveAs: path },
  mail_id = "",
  attachment_id,
) => {
  if (attachment_id === undefined) {
    if (path !== undefined) throw usage("name the attachment to save", "give its number")
    const { data } = await context.call("GET /v1/mailbox/{mail_id}", { params: { mail_id } })
    await context.output.list(data.attachments, fileColumns)
    const next = `belfry mailbox attachments ${mail_id} 0 --save-as file`
    if (data.attachments.length > 0) await context.output.next(next)
    return
  }
  const name = "GET /v1/mailbox/{mail_id}/attachments/{attachment_id}"
  const params = { mail_id, attachment_id }
  const ask = () => context.client().send(name, { params })
  await saveAttachment(context, { id: attachment_id, path }, ask)
}

const list: Action<MailFilters> = async (context, options) => {
  const input = { query: mailQuery(options) }
  const limit = limitOf(options.limit)
  const { rows } = await listUpTo(context.client(), "GET /v1/mailbox", limit, input)
  await context.output.list(rows, mailColumns)
  await context.output.next(rows[0] ? `belfry mailbox get ${rows[0].id}` : FIRST_EMAIL)
}

const get: Action<object> = (context, _, id = "") => show(context, context.client(), id)

async function show(context: Context, client: Client, mail_id: string): Promise<undefined> {
  const { data } = await client.call("GET /v1/mailbox/{mail_id}", { params: { mail_id } })
  await context.output.record(data, () => mailText(data, context.paint))
}

/** Prints the newest mail that fits, as soon as there is one. Exit 1 when the time is over first. */
const wait: Action<MailFilters> = async (context, options) => {
  const { again } = context.output
  const limit = context.timeout ?? MAIL_WAIT_MILLISECONDS
  const client = context.client(Math.max(limit, 5000))
  const query = { ...mailQuery(options), per_page: 100 }
  const there = again("belfry mailbox list")
  const why = again(`belfry emails list${optionWords({ to: options.to })}`)
  const hint = `\`${there}\` lists the mailbox, \`${why}\` shows what happened to the mail`
  const look = async () => (await client.call("GET /v1/mailbox", { query })).data
  return await show(context, client, await awaitMail(look, options, limit, hint))
}

interface ChaosOptions {
  bounce?: string
  defer?: string
  refuse?: string
  delay?: string
  off?: true
}

/** Makes mail go wrong in the embedded mailbox, or shows what goes wrong there. */
function defineChaos(mailbox: Command): void {
  mailbox
    .command("chaos")
    .description("make a share of the project's mail go wrong; without flags, show the shares")
    .option("--bounce <share>", "share of the recipients whose mail bounces, from 0 to 1")
    .option("--defer <share>", "share of the recipients whose mail is deferred once")
    .option("--refuse <share>", "share of the recipients whose mail is refused by policy")
    .option("--delay <ms>", "milliseconds before each mail is answered, at most 60000")
    .option("--off", "end it: all mail is delivered again")
    .addHelpText(
      "after",
      examples("mailbox chaos --bounce 0.1 --defer 0.2 --delay 500", "mailbox chaos --off"),
    )
    .action(run(chaos))
}

/** Flags that are absent are 0, as in the route. */
const chaos: Action<ChaosOptions> = async (context, { off, ...flags }) => {
  const wanted = given({
    bounce_rate: shareOf(flags.bounce, "--bounce"),
    defer_rate: shareOf(flags.defer, "--defer"),
    refuse_rate: shareOf(flags.refuse, "--refuse"),
    delay_ms: flags.delay === undefined ? undefined : wholeNumber(flags.delay, "--delay"),
  })
  const is_change = Object.keys(wanted).length > 0
  if (off && is_change) throw usage("--off ends the chaos", "leave out the other flags")
  const { data } =
    off || is_change
      ? await context.call("PUT /v1/mailbox/chaos", { body: wanted })
      : await context.call("GET /v1/mailbox/chaos")
  await context.output.record(data, () => fields(linesOf(data), context.paint))
}

const linesOf = ({ bounce_rate, defer_rate, refuse_rate, delay_ms }: Components["MailboxChaos"]) =>
  Object.entries({
    bounces: percent(bounce_rate),
    deferred: percent(defer_rate),
    refused: percent(refuse_rate),
    delay: `${delay_ms} ms`,
  })

const percent = (share: number) => `${Math.round(share * 1000) / 10} %`

function shareOf(text: string | undefined, option: string): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (text.trim() === "" || !(value >= 0 && value <= 1)) {
    throw usage(`${option}: "${text}" is no share`, "give a number from 0 to 1, such as 0.1")
  }
  return value
}
