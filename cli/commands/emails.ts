import type { Command } from "commander"
import type { Components } from "../../src/client/components"
import { explanationText } from "../lib/checks-text"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { attemptColumns, emailColumns, emailText, eventText, statusMark } from "../lib/email-text"
import { exits, Failure } from "../lib/errors"
import { follow, serverTime, startAt } from "../lib/feed"
import { FIRST_EMAIL, optionWords, SINCE } from "../lib/flags"
import { printRaw, saveAttachment } from "../lib/mail-files"
import { groupOf, ID, row } from "../lib/resource"
import { examples, run } from "../lib/run"
import { cleanLine, cleanText } from "../lib/terminal"
import { millis, moment, pause } from "../lib/time"
import { trackingText } from "../lib/tracking-text"
import { defineSending, settled } from "./emails-send"
import { eventLine } from "./events"
import { rescheduleRow } from "./scheduled"

/** Email: the commands that are plain. */
export const emailRows = [
  row("list", "GET /v1/emails", {
    example: "--status bounced --json=id,to.email,status_reason",
    aliases: { domain: "domain", template_id: "template", subscriber_id: "subscriber" },
    flags: { template_id: "show only emails of this template, by id or name", stream: false },
    columns: emailColumns,
    next: ([first], _, options) => {
      if (first) return `emails get ${first.id}`
      return optionWords({ ...options, limit: undefined }) === ""
        ? FIRST_EMAIL.slice("belfry ".length)
        : undefined
    },
  }),
  row("get <id>", "GET /v1/emails/{email_id}", {
    shown: emailText,
    next: ({ id }) => `emails attempts ${id}`,
  }),
  row("attempts <id>", "GET /v1/emails/{email_id}/attempts", {
    about: "list the delivery attempts of an email with the servers' answers, oldest first",
    columns: attemptColumns,
  }),
  row("explain <id>", "GET /v1/emails/{email_id}/explain", {
    about: "explain what happened to an email, and why, stage by stage",
    shown: explanationText,
    next: ({ email_id }) => `emails attempts ${email_id}`,
  }),
  row("tracking <id>", "GET /v1/emails/{email_id}/tracking", {
    about: "show the openings and clicks of an email",
    shown: trackingText,
    next: ({ email_id }) => `emails events ${email_id}`,
  }),
  row("cancel <id>", "POST /v1/emails/{email_id}/cancel", {
    done: () => "cancelled",
    shown: emailText,
  }),
  rescheduleRow,
]

/** Reading and following email. */
export function define(program: Command): void {
  const emails = groupOf(program, "emails")
  defineSending(emails)
  for (const [name, about] of [
    ["events", "list the events of one email, oldest first"],
    ["raw", "print the message as it was sent (RFC 5322)"],
  ] as const) {
    emails
      .command(`${name} <id>`)
      .description(about)
      .addHelpText("after", examples(`emails ${name} ${ID}`))
      .action(run({ events, raw }[name]))
  }
  emails
    .command("content <id>")
    .description("show subject, HTML, text and headers")
    .option("--html", "print only the HTML")
    .option("--text", "print only the text")
    .addHelpText("after", examples(`emails content ${ID} --html > mail.html`))
    .action(run(content))

  emails
    .command("attachment <id> <attachment>")
    .description("write one attachment to a file or into a pipe")
    .option("--save-as <file>", "file to write")
    .addHelpText("after", examples(`emails attachment ${ID} ${ID} --save-as a.pdf`))
    .action(run(attachment))

  emails
    .command("tail [id]")
    .description("follow the events of all email, or of one email until its final status")
    .option(...SINCE)
    .addHelpText("after", examples("emails tail", `emails tail ${ID}`, "emails tail | jq .type"))
    .action(run(tail))
}

const events: Action<object> = async (context, _, email_id = "") => {
  const { output, paint } = context
  const { data } = await context.call("GET /v1/emails/{email_id}/events", { params: { email_id } })
  if (output.form === "ndjson" || output.form === "quiet") {
    for (const event of data.events) await output.line(event, () => "")
    return undefined
  }
  await output.record(data, () => {
    const lines = data.events.map((event) => eventText(event, paint))
    return [statusMark({ status: data.status, status_reason: null }, paint), ...lines].join("\n")
  })
}

const raw: Action<object> = async (context, _, email_id = "") => {
  const bytes = await context.call("GET /v1/emails/{email_id}/raw", { params: { email_id } })
  await printRaw(context, bytes)
}

const content: Action<{ html?: boolean; text?: boolean }> = async (
  context,
  options,
  email_id = "",
) => {
  const { output, paint, terminal } = context
  const { data } = await context.call("GET /v1/emails/{email_id}/content", { params: { email_id } })
  if (options.html || options.text) {
    const part = (options.html ? data.html : data.text) ?? ""
    await output.raw(terminal.out ? `${cleanText(part)}\n` : part)
    return undefined
  }
  await output.record(data, () =>
    [paint.bold(cleanLine(data.subject ?? "")), "", cleanText(data.text ?? "")].join("\n"),
  )
}

const attachment: Action<{ saveAs?: string }> = async (
  context,
  { saveAs: path },
  email_id = "",
  attachment_id = "",
) => {
  const name = "GET /v1/emails/{email_id}/attachments/{attachment_id}"
  const ask = () => context.client().send(name, { params: { email_id, attachment_id } })
  await saveAttachment(context, { id: attachment_id, path }, ask)
}

const POLL_MILLISECONDS = 250

/** Follows everything until Ctrl-C or --timeout, or one email until it is settled. */
const tail: Action<{ since?: string }> = async (context, { since }, id) => {
  const deadline = context.timeout === undefined ? Infinity : millis() + context.timeout
  if (id !== undefined) return await tailOne(context, id, deadline)

  const { output, paint } = context
  const client = context.client()
  const begin = since === undefined ? await serverTime(client) : moment(since, "--since")
  const start = await startAt(client, begin)
  await output.note(paint.dim("following emails; Ctrl-C stops"))
  for await (const event of follow(client, start, "email.*", deadline)) {
    await output.line(event, () => eventLine(event, context))
  }
  return exits.done
}

async function tailOne(context: Context, id: string, deadline: number): Promise<number> {
  const { output, paint } = context
  const client = context.client()
  const params = { email_id: id }
  const seen = new Set<string>()
  while (true) {
    const { data } = await client.call("GET /v1/emails/{email_id}/events", { params })
    for (const event of data.events) {
      if (seen.has(event.id)) continue
      seen.add(event.id)
      await output.line(event, () => eventText(event, paint))
    }
    if (await isOver(client, id, data.status)) return exits.done
    if (millis() + POLL_MILLISECONDS > deadline) throw notSettled(context, data)
    await pause(POLL_MILLISECONDS)
  }
}

/** Only the email itself tells which provider had it, and so whether `sent` is the last word. */
async function isOver(client: Client, email_id: string, status: string): Promise<boolean> {
  if (status !== "sent") return settled({ status, provider: null })
  return settled((await client.call("GET /v1/emails/{email_id}", { params: { email_id } })).data)
}

function notSettled({ output }: Context, { email_id, status }: Components["EmailEvents"]): Failure {
  const message = `The waiting time is over. Email ${email_id} is still ${status}.`
  const hint = `\`${output.again(`belfry emails get ${email_id}`)}\` says why`
  return new Failure(exits.failed, "timeout", message, { details: { email_id, status }, hint })
}
