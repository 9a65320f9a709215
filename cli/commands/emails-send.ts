import type { AnswerOf } from "../../src/client/client"
import { attachments, headers, html, metadata, text, variables } from "../lib/body-flags"
import { fieldsOf } from "../lib/client"
import type { Context } from "../lib/context"
import { preflightText, statusMark } from "../lib/email-text"
import { exits, usage } from "../lib/errors"
import { flag } from "../lib/field-flags"
import { FIRST_EMAIL, IDEMPOTENCY_KEY } from "../lib/flags"
import { own, type PlainFlags, row } from "../lib/resource"
import { lookUntil } from "../lib/time"
import { batchOf } from "./batch"
import { SCHEDULE_AT, whenText } from "./scheduled"

const CONTENT: PlainFlags = {
  ...{ text, html, attachments, variables, metadata, headers, scheduled_at: SCHEDULE_AT },
  to: "recipient: an address, or `Ann <ann@example.test>`",
  from: "sender: an address, or `Ann <ann@example.test>`",
  cc: flag(["--cc <address>", "recipient of a copy; may be repeated", "several"]),
  bcc: flag(["--bcc <address>", "recipient of a hidden copy; may be repeated", "several"]),
  subject: "subject of the email",
  reply_to: flag(["--reply-to <address>", "address that gets the answers"]),
  tags: flag(["--tag <tag>", "label of the email; may be repeated", "several"]),
  category: "kind of the mail, which its recipient can unsubscribe from",
  subscriber_id: "subscriber that the recipient is, by id or external id",
  track_opens: "count openings of the HTML body (default: the project's)",
  track_clicks: "count clicks in the HTML body (default: the project's)",
  template_id: "template in place of subject and texts, by id or name",
}

/** Without a recipient, of which only a file could know. */
function requireRecipient({ to, file }: { to?: unknown; file?: unknown }, { output }: Context) {
  if (!to && !file) throw usage("--to is missing", output.again(FIRST_EMAIL))
  return undefined
}

/** After a send: the status, and how to follow it. */
export const queued = {
  done: ({ id, status, scheduled_at }: Sent) =>
    `${scheduled_at ? `scheduled for ${whenText(scheduled_at)}` : status}  ${id}`,
  next: ({ id, scheduled_at }: Sent) =>
    scheduled_at ? `scheduled get ${id}` : `emails tail ${id}`,
}

type Sent = { id: string; status: string; scheduled_at?: string | null }

type Accepted = AnswerOf<"POST /v1/emails">

async function noteWarnings({ output }: Context, { meta }: Accepted): Promise<void> {
  for (const { message } of meta?.warnings ?? []) await output.note(`! ${message}`)
}

const POLLING = { limit: 60_000, every: 100 }

/** Exit 1 when it is settled and did not get there, or is not settled in time. */
async function waited(context: Context, answer: Accepted): Promise<number> {
  const { output, paint, timeout: limit = POLLING.limit } = context
  const params = { email_id: answer.data.id }
  await noteWarnings(context, answer)
  await output.note(paint.dim(`queued ${params.email_id}, waiting`))
  const look = async () => (await context.call("GET /v1/emails/{email_id}", { params })).data
  const email = await lookUntil(look, settled, { ...POLLING, limit })
  await output.record(email, () => `${statusMark(email, paint)}  ${email.id}`)
  if (!settled(email))
    await output.note(`the waiting time is over; the status is still ${email.status}`)
  return ["sent", "delivered"].includes(email.status) ? exits.done : exits.failed
}

/** Nothing more is expected: a relay (`smtp`) says no more after `sent`, the others do. */
export const settled = ({
  status,
  provider,
}: {
  status: string
  provider: string | null
}): boolean =>
  ["delivered", "bounced", "complained", "failed"].includes(status) ||
  (status === "sent" && provider === "smtp")

const batch = batchOf({
  route: "POST /v1/emails/batch",
  fields: ["id", "total", "succeeded", "failed", "results"],
  headers: ({ strict }) => ({ "x-batch-validation": strict ? "strict" : "permissive" }),
  next: ({ id }) => `emails list --batch ${id}`,
})

const TO_ANN = "--to ann@mailbox.test --from me@mailbox.test --subject"

export const sendingRows = [
  row("send", "POST /v1/emails", {
    about: "send one email; a file named `-` is stdin",
    example: [
      `${TO_ANN} Hi --text hello`,
      `${TO_ANN} Log --text-file - < log`,
      `${TO_ANN} Hi --html-file hi.html --wait`,
      `${TO_ANN} Hi --text hello --schedule-at 'tomorrow 9:00'`,
    ],
    flags: CONTENT,
    aliases: { subscriber_id: "subscriber" },
    file: {},
    options: [
      ["--wait", "wait for the final status; exit 1 if it is not sent by --timeout (default: 60s)"],
    ],
    refuse(options, _, context) {
      if (options.wait) context.output.promises(fieldsOf("POST /v1/emails/{email_id}/cancel"))
      return requireRecipient(options, context)
    },
    print: (context, answer, { wait }) => (wait ? waited(context, answer) : undefined),
    after: noteWarnings,
    ...queued,
  }),
  row("preflight", "POST /v1/emails/preflight", {
    about: "check an email without sending it; exit 1 if it would be refused",
    example: `${TO_ANN} Hi --html-file hi.html`,
    flags: CONTENT,
    aliases: { subscriber_id: "subscriber" },
    file: {},
    refuse: (options, _, context) => requireRecipient(options, context),
    shown: preflightText,
    exit: ({ ok }) => (ok ? exits.done : exits.failed),
  }),
  own("batch <file>", batch, {
    about: "send up to 100 emails from a JSON array or NDJSON; exit 8 if some are refused",
    word: ["messages.json", "-"],
    example: ["", "< messages.ndjson"],
    options: [["--strict", "refuse all emails if one is not valid"], IDEMPOTENCY_KEY],
  }),
  row("resend <id>", "POST /v1/emails/{email_id}/resend", {
    about: "send the same content again as a new email",
    flags: { to: "send only to this address (default: all recipients)" },
    ...queued,
  }),
]
