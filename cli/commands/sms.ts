import type { Components } from "../../src/client/components"
import { metadata, variables } from "../lib/body-flags"
import { fieldsOf } from "../lib/client"
import type { Context } from "../lib/context"
import { explanationText, isFinal, statusMark } from "../lib/email-text"
import { exits } from "../lib/errors"
import { flag, type PlainOptions } from "../lib/field-flags"
import { ANY_PERIOD, IDEMPOTENCY_KEY } from "../lib/flags"
import { readText } from "../lib/input"
import { own, type PlainFlags, row } from "../lib/resource"
import { segmentsText, smsColumns, smsText } from "../lib/sms-text"
import { lookUntil } from "../lib/time"
import { batchOf } from "./batch"
import { SCHEDULE_AT, whenText } from "./scheduled"

const CONTENT: PlainFlags = {
  ...{ variables, metadata, scheduled_at: SCHEDULE_AT, scheduled_for: false },
  from: "sender: a number, or a name that the provider allows",
  tags: flag(["--tag <tag>", "label of the text; may be repeated", "several"]),
  category: "kind of the text, which its recipient can unsubscribe from",
  subscriber_id: "subscriber that the recipient is, by id or external id",
  template_id: "template in place of the text, by id or name",
  smart_encoding: "send quotes, dashes and accents in GSM-7 where that is possible",
  max_segments: "refuse a longer text (default: 10)",
}

/** A text in an argument; `-` reads stdin, without the line break at its end. */
async function textIn(word: string | undefined): Promise<{ body?: string }> {
  return word === "-" ? { body: (await readText("-", "TEXT")).replace(/\r?\n$/, "") } : {}
}

const POLLING = { limit: 60_000, every: 100 }

/** Exit 1 when it is settled and did not get there, or when no report came in time. */
async function waited(context: Context, { id }: Components["AcceptedSms"]): Promise<number> {
  const { output, paint, timeout: limit = POLLING.limit } = context
  const look = async () =>
    (await context.call("GET /v1/sms/{sms_id}", { params: { sms_id: id } })).data
  await output.note(paint.dim(`queued ${id}, waiting`))
  const sms = await lookUntil(look, ({ status }) => isFinal(status), { ...POLLING, limit })
  await output.record(sms, () => `${statusMark(sms, paint)}  ${id}`)
  if (!isFinal(sms.status))
    await output.note(`the waiting time is over; the status is still ${sms.status}`)
  return sms.status === "delivered" ? exits.done : exits.failed
}

const batch = batchOf({
  route: "POST /v1/sms/batch",
  fields: ["total", "succeeded", "failed", "results"],
  next: () => "sms list",
})

const NUMBER = "+14155550100"

export const smsRows = [
  row("send <to> [body]", "POST /v1/sms", {
    about: "send one text to one number; the text `-` is stdin",
    word: NUMBER,
    argument: "number of E.164, such as +4915112345678",
    example: [
      "'Your table is ready'",
      "'Your table is ready' --wait",
      "--template code --var code=1042",
      "'See you soon' --schedule-at 'tomorrow 9:00'",
    ],
    flags: CONTENT,
    aliases: { subscriber_id: "subscriber" },
    options: [
      ["--wait", "wait for the report; exit 1 if it is not delivered by --timeout (default: 60s)"],
    ],
    input: (_, [, text]) => textIn(text),
    refuse(options, [, text], context) {
      if (options.wait) context.output.promises(fieldsOf("POST /v1/sms/{sms_id}/cancel"))
      return text === undefined && !options.template ? "give a text, `-` or --template" : undefined
    },
    print: (context, answer, { wait }: PlainOptions) =>
      wait ? waited(context, answer.data) : undefined,
    done: ({ id, status, segments, scheduled_at }) => {
      const what = scheduled_at ? `scheduled for ${whenText(scheduled_at)}` : status
      return `${what}, ${segments} ${segments === 1 ? "segment" : "segments"}  ${id}`
    },
    next: ({ id }) => `sms get ${id}`,
  }),
  own("batch <file>", batch, {
    about: "send up to 100 texts from a JSON array or NDJSON; exit 8 if some are refused",
    word: ["texts.json", "-"],
    example: ["", "< texts.ndjson"],
    options: [IDEMPOTENCY_KEY],
  }),
  row("list", "GET /v1/sms", {
    about: "list texts that were sent or came in, newest first",
    example: ["--direction inbound", "--status failed --json=id,to,status"],
    columns: smsColumns,
    next: ([first]) => (first ? `sms get ${first.id}` : `sms send ${NUMBER} 'Hello'`),
  }),
  row("get <id>", "GET /v1/sms/{sms_id}", {
    shown: smsText,
    next: ({ id }) => `sms explain ${id}`,
  }),
  row("explain <id>", "GET /v1/sms/{sms_id}/explain", {
    about: "explain what happened to a text, and why, stage by stage",
    shown: explanationText,
  }),
  row("cancel <id>", "POST /v1/sms/{sms_id}/cancel", {
    done: () => "cancelled",
    shown: smsText,
  }),
  row("segments <body>", "POST /v1/sms/segments", {
    about: "count the segments of a text, and name what makes it long; `-` is stdin",
    word: ["'Grüße aus Łódź'", "-"],
    example: ["", "< text.txt"],
    input: (_, [text]) => textIn(text),
    shown: segmentsText,
  }),
  row("stats", "GET /v1/sms/stats", {
    about: "count the texts of a period by status and provider",
    example: ["", "--period day", "--period 2026-11"],
    flags: { period: flag(ANY_PERIOD) },
  }),
]
