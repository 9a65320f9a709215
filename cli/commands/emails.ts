import type { Components } from "../../src/client/components"
import type { Client } from "../lib/client"
import type { Action, Context } from "../lib/context"
import {
  attemptColumns,
  emailColumns,
  emailText,
  eventText,
  explanationText,
  statusMark,
  trackingText,
} from "../lib/email-text"
import { exits, Failure } from "../lib/errors"
import { follow, serverTime, startAt } from "../lib/feed"
import { FIRST_EMAIL, optionWords, SINCE } from "../lib/flags"
import { saved } from "../lib/mail-files"
import { ID, own, row } from "../lib/resource"
import { cleanLine, cleanText } from "../lib/terminal"
import { millis, moment, pause } from "../lib/time"
import { sendingRows, settled } from "./emails-send"
import { eventLine } from "./events"
import { rescheduleRow } from "./scheduled"

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

export const emailRows = [
  row("list", "GET /v1/emails", {
    example: "--status bounced --json=id,to.email,status_reason",
    aliases: { domain: "domain", subscriber_id: "subscriber" },
    flags: { stream: false },
    columns: emailColumns,
    next: ([first], _, options) => {
      if (first) return `emails get ${first.id}`
      return optionWords({ ...options, limit: undefined } as never) === ""
        ? FIRST_EMAIL.slice("belfry ".length)
        : undefined
    },
  }),
  ...sendingRows,
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
    shown: trackingText,
    next: ({ email_id }) => `emails events ${email_id}`,
  }),
  row("cancel <id>", "POST /v1/emails/{email_id}/cancel", {
    done: () => "cancelled",
    shown: emailText,
  }),
  rescheduleRow,
  row("events <id>", "GET /v1/emails/{email_id}/events", {
    about: "list the events of one email, oldest first",
    print({ output }, { data: { events } }) {
      if (output.form !== "ndjson" && output.form !== "quiet") return undefined
      return output.lines(events)
    },
    shown: ({ status, events }, paint) => {
      const lines = events.map((event) => eventText(event, paint))
      return [statusMark({ status, status_reason: null }, paint), ...lines].join("\n")
    },
  }),
  row("raw <id>", "GET /v1/emails/{email_id}/raw", {
    about: "print the message as it was sent (RFC 5322)",
    example: "> mail.eml",
  }),
  row("content <id>", "GET /v1/emails/{email_id}/content", {
    about: "show subject, HTML, text and headers",
    example: "--html > mail.html",
    options: [
      ["--html", "print only the HTML"],
      ["--text", "print only the text"],
    ],
    print({ output, terminal }, { data }, { html, text }) {
      if (!html && !text) return undefined
      const part = (html ? data.html : data.text) ?? ""
      return output.raw(terminal.out ? `${cleanText(part)}\n` : part)
    },
    shown: ({ subject, text }, paint) =>
      [paint.bold(cleanLine(subject ?? "")), "", cleanText(text ?? "")].join("\n"),
  }),
  row("attachment <id> <attachment>", "GET /v1/emails/{email_id}/attachments/{attachment_id}", {
    about: "write one attachment to a file or into a pipe",
    example: "--save-as a.pdf",
    ...saved,
  }),
  own("tail [id]", tail, {
    about: "follow the events of all email, or of one email until its final status",
    example: ["", ID, "| jq .type"],
    options: [SINCE],
  }),
]
