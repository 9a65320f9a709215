import type { Components } from "../../src/client/components"
import type { Action, Context } from "../lib/context"
import {
  type MailFilters,
  mailCheckText,
  mailColumns,
  mailText,
  type OpenMailbox,
} from "../lib/email-text"
import { exits, Failure, usage } from "../lib/errors"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { DATA_DIR, FIRST_EMAIL, LIMIT, optionWords, SINCE } from "../lib/flags"
import { given, wholeNumber } from "../lib/input"
import { listed, saved } from "../lib/mail-files"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { deletes, own, row } from "../lib/resource"
import { lookUntil, moment } from "../lib/time"

const projectMail = (context: Context, { to }: MailFilters, timeout?: number): OpenMailbox => {
  const client = context.client(timeout)
  const why = context.output.again(`belfry emails list${optionWords({ to })}`)
  return {
    list: async (query, limit) =>
      (await listUpTo(client, "GET /v1/mailbox", limit, { query: { ...query } })).rows,
    get: async (mail_id) =>
      (await client.call("GET /v1/mailbox/{mail_id}", { params: { mail_id } })).data,
    columns: mailColumns,
    hint: `\`${context.output.again("belfry mailbox list")}\` lists the mailbox, \`${why}\` shows what happened to the mail`,
  }
}

async function mailOf(context: Context, options: MailFilters, timeout?: number) {
  if (!options.system) return projectMail(context, options, timeout)
  return (await import("../local/system-mailbox")).systemMail(context, options)
}

const queryOf = ({ to, from, search, since, unread }: MailFilters) =>
  given({ to, from, search, unread, since: since && moment(since, "--since") })

const list: Action<MailFilters> = async (context, options) => {
  const source = await mailOf(context, options)
  const mails = await source.list(queryOf(options), limitOf(options.limit))
  await context.output.list(mails, source.columns)
  const next = mails[0] ? `belfry mailbox get ${mails[0].id}` : FIRST_EMAIL
  if (!options.system) await context.output.next(next)
}

const get: Action<MailFilters> = async (context, options, id = "") =>
  show(context, await mailOf(context, options), id)

async function show({ output, paint }: Context, source: OpenMailbox, id: string) {
  const mail = await source.get(id)
  await output.record(mail, () => mailText(mail, paint))
  return exits.done
}

const WAITING = { limit: 30_000, every: 200 }
const SEARCHED = 100

/** Prints the newest mail that fits, as soon as there is one. Exit 1 when the time is over first. */
const wait: Action<MailFilters> = async (context, options) => {
  const limit = context.timeout ?? WAITING.limit
  const source = await mailOf(context, options, Math.max(limit, 5000))
  const query = queryOf(options)
  const wanted = options.subject?.toLowerCase() ?? ""
  const newest = async () =>
    (await source.list(query, SEARCHED)).find(({ subject }) =>
      (subject ?? "").toLowerCase().includes(wanted),
    )
  const found = await lookUntil(newest, (mail) => mail !== undefined, { ...WAITING, limit })
  if (found) return await show(context, source, found.id)
  const { to, from, subject } = options
  const where = [`to ${to}`, from && `from ${from}`, subject && `with "${subject}" in its subject`]
  const message = `No mail ${where.filter(Boolean).join(" ")} came within ${limit / 1000} s.`
  const details = { to, limit_ms: limit }
  throw new Failure(exits.failed, "timeout", message, { details, hint: source.hint })
}

const SYSTEM: readonly OptionWords[] = [
  ["--system", "read the instance's own mail (invitations, resets) on its machine"],
  [DATA_DIR[0], `with --system: ${DATA_DIR[1]}`],
]

/** A share of the recipients, from 0 to 1. */
const share = (flags: string, what: string) =>
  flag([`${flags} <share>`, `share of the recipients whose mail ${what}`], (text, option) => {
    const value = Number(text)
    if (text.trim() !== "" && value >= 0 && value <= 1) return value
    throw usage(`${option}: "${text}" is no share`, "give a number from 0 to 1, such as 0.1")
  })

const hasShare = (options: PlainOptions) =>
  ["bounce", "defer", "refuse", "delay"].some((name) => options[name] !== undefined)

const percent = (value: number) => `${Math.round(value * 1000) / 10} %`

const chaosValues = ({ bounce_rate, defer_rate, refuse_rate, delay_ms }: Chaos) => ({
  bounce_rate: percent(bounce_rate),
  defer_rate: percent(defer_rate),
  refuse_rate: percent(refuse_rate),
  delay_ms: `${delay_ms} ms`,
})

type Chaos = Components["MailboxChaos"]

/** The embedded mailbox: what arrived there instead of in the world. */
export const mailboxRows = [
  own("list", list, {
    about: "list the mail, newest first",
    example: "--to ann@mailbox.test --since 1h",
    options: [
      ...SYSTEM,
      ["--to <address>", "show only mail to this address"],
      ["--from <address>", "show only mail from this address"],
      ["--search <text>", "show only mail that contains this text"],
      ["--unread", "show only mail that nobody read"],
      ...[SINCE, LIMIT],
    ],
  }),
  own("get <id>", get, {
    about: "show one mail with headers, text and HTML",
    options: SYSTEM,
  }),
  own("wait", wait, {
    about: "wait for a mail and print it; exit 1 at --timeout (default: 30s)",
    example: "--to ann@mailbox.test --subject Receipt --timeout 10s --json=id,text",
    options: [
      ...SYSTEM,
      ["--to <address>", "recipient of the mail", "required"],
      ["--from <address>", "sender of the mail"],
      ["--subject <text>", "text in the subject"],
      SINCE,
    ],
  }),
  row("raw <id>", "GET /v1/mailbox/{mail_id}/raw", {
    about: "print a mail as it came in (RFC 5322)",
    example: "> mail.eml",
  }),
  row("attachments <id> [attachment]", "GET /v1/mailbox/{mail_id}", {
    about: "list the attachments of a mail, or write one to a file or into a pipe",
    example: ["", "0 --save-as receipt.pdf"],
    ...listed("mailbox"),
    instead: (_, { length }) =>
      length > 1 && row("", "GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", saved),
  }),
  row("read <id>", "PATCH /v1/mailbox/{mail_id}", {
    about: "mark a mail as read, or with --unread as unread again",
    flags: { read: false },
    options: [["--unread", "mark it as unread"]],
    input: ({ unread }) => ({ read: unread !== true }),
    done: ({ id, read }) => `marked ${id} as ${read ? "read" : "unread"}`,
  }),
  row("rm <id>", "DELETE /v1/mailbox/{mail_id}", {
    about: "delete one mail from the mailbox",
    ...deletes((id) => `The mail ${id} will be deleted from the mailbox now.`),
  }),
  row("check <id>", "POST /v1/mailbox/{mail_id}/check", {
    about: "check a mail: programs that lack what it uses, content, size; exit 1 for a dead link",
    example: ["--links", ""],
    flags: { links: flag(["--links", "ask the servers of the links, too"]) },
    shown: mailCheckText,
    exit: ({ links }) => (links?.some(({ ok }) => ok === false) ? exits.failed : exits.done),
  }),
  row("release <id>", "POST /v1/mailbox/{mail_id}/release", {
    about: "send a caught mail to a real provider, with a new Message-ID and signature",
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
    confirm: (context, _, __, { to }) => {
      const which = to ? `all mail to ${to}` : "all mail of the project"
      return confirm(context, `This deletes ${which} from the mailbox.`, "clear")
    },
    done: ({ deleted }) => `deleted ${deleted} ${deleted === 1 ? "mail" : "mails"}`,
  }),
  row("chaos", "PUT /v1/mailbox/chaos", {
    about: "make a share of the project's mail fail; without flags, show the shares",
    example: ["--bounce 0.1 --defer 0.2 --delay 500", "--off"],
    flags: {
      bounce_rate: share("--bounce", "bounces, from 0 to 1"),
      defer_rate: share("--defer", "is deferred once"),
      refuse_rate: share("--refuse", "is refused by policy"),
      delay_ms: flag(
        ["--delay <ms>", "milliseconds before each mail is answered, at most 60000"],
        wholeNumber,
      ),
    },
    options: [["--off", "end it: all mail is delivered again"]],
    refuse: (options) =>
      options.off && hasShare(options)
        ? "--off ends the chaos: leave out the other flags"
        : undefined,
    instead: (options) =>
      !options.off &&
      !hasShare(options) &&
      row("", "GET /v1/mailbox/chaos", { values: chaosValues }),
    values: chaosValues,
  }),
]
