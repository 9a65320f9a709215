import { Type as t } from "@sinclair/typebox"
import { attachments, address as mailbox, NamedAddress } from "../emails/schemas"
import { ONE_LINE, oneOf } from "../http/field-schemas"
import { dateFilters, pageQuery } from "../http/page"
import { anything, count, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"
import { INBOUND_KINDS } from "./tables"

const ADDRESS = "support@in.example.com"
const MESSAGE_ID = "<CAF3k9@mail.example.org>"
const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

const attachment = {
  id: text("0", "The number of the attachment in the message, from 0."),
  filename: maybe(text("invoice.pdf", "As the sender wrote it. It may hold anything.")),
  content_type: text("application/pdf"),
  size: count(48_213, "Bytes."),
  content_id: rarely(text("logo@example.org")),
  disposition: maybe(text("attachment")),
  sha256: text(HASH),
}

const InboundAttachment = t.Object(attachment, { title: "InboundAttachment" })

const verdict = (about: string) =>
  maybe(word(["pass", "fail", "none", "temperror"], `${about} Null until the mail is processed.`))

const mailboxes = t.Array(NamedAddress, { examples: [[]] })

const listed = {
  id: id(),
  project_id: id(),
  rfc_message_id: maybe(text(MESSAGE_ID)),
  from: maybe(NamedAddress),
  to_email: text(ADDRESS, "The recipient of this mail."),
  to: mailboxes,
  cc: mailboxes,
  reply_to: mailboxes,
  envelope: t.Object(
    {
      from: text("ann@example.org", "Empty for the null sender."),
      to: t.Array(text(ADDRESS)),
    },
    { title: "InboundEnvelope" },
  ),
  domain: text("in.example.com"),
  subject: maybe(text("Re: Your receipt")),
  headers: t.Record(t.String(), t.Array(t.String()), {
    examples: [{ subject: ["Re: Your receipt"] }],
    description: "Header names are in lower case, each with all its values.",
  }),
  attachments: t.Array(InboundAttachment, { examples: [[]] }),
  in_reply_to: maybe(text("<0199a1c2-7d40-7c3e-9b5a-3f1d2e4c5b6a@example.com>")),
  references: t.Array(text(MESSAGE_ID)),
  replied_to_message_id: maybe(id("The email that this mail answers or reports on.")),
  reply_to_metadata: maybe(anything({ order: "1042" }, "The metadata of that email.")),
  mailbox_hash: rarely(text("order-1042", "The part of the local part behind the first +.")),
  thread_id: maybe(id("The id of the first email of the conversation.")),
  kind: word(["reply", ...INBOUND_KINDS.filter((kind) => kind !== "reply")]),
  auto_submitted: rarely(text("auto-replied")),
  spf_verdict: verdict("SPF."),
  dkim_verdict: verdict("DKIM."),
  dmarc_verdict: verdict("DMARC."),
  arc_verdict: verdict("ARC."),
  verified: maybe(flag(true, "False when SPF or DMARC failed.")),
  spam: t.Object(
    {
      score: t.Number({ minimum: 0, maximum: 10, examples: [0.5], description: "0 to 10." }),
      flagged: flag(false, "True from 5."),
      rules: t.Array(t.Object({ rule: text("no_date"), points: t.Number({ examples: [0.5] }) }), {
        description: "The rules that matched, each with its points.",
      }),
    },
    { title: "SpamScore" },
  ),
  report: rarely(
    anything({ policy_domain: "example.com" }, "What a report says: DSN, ARF, DMARC or TLS."),
  ),
  status: word(["processed", "received", "failed"]),
  parse_error: flag(
    false,
    "The message, or a part of it, could not be read as MIME. Its raw form is stored.",
  ),
  truncated: flag(
    false,
    "Something was left out: bodies of an event that are too long, or addresses beyond the first 1,000 of a field.",
  ),
  size: count(5_120, "Bytes of the raw message."),
  created_at: time(),
}

export const InboundSummary = t.Object(listed, {
  title: "InboundEmailSummary",
  description: "A received mail in a list, without its bodies.",
})

const bodies = {
  text_body: maybe(text("Thank you!\n\n> Your receipt …")),
  html_body: rarely(text("<p>Thank you!</p>")),
  stripped_text: maybe(text("Thank you!", "The text without quoted parts and signature.")),
}

export const InboundEmail = t.Object({ ...listed, ...bodies }, { title: "InboundEmail" })

const link = {
  url: text("https://mail.example.com/v1/files/v1.4f1d2e4c.AAAA", "Needs no key. Valid for 1 h."),
  expires_at: time(),
}

/** Of the event: every attachment can be fetched at once. */
export const InboundInEvent = t.Object(
  {
    ...listed,
    ...bodies,
    attachments: t.Array(t.Object({ ...attachment, ...link })),
  },
  { title: "InboundEmailEvent" },
)

/** What a wait found, with the code or link that was asked for. */
export const AwaitedEmail = t.Object(
  {
    ...listed,
    ...bodies,
    extracted: maybe(
      text("123456", "The code or the link. Null where the mail has none, or none was asked for."),
    ),
  },
  { title: "AwaitedInboundEmail" },
)

const { content_id: _, disposition: __, sha256: ___, ...file } = attachment

export const FileLink = t.Object({ ...file, ...link }, { title: "InboundFileLink" })

const address = t.String({ maxLength: 254 })

const KIND = oneOf(...INBOUND_KINDS)

export const inboundQuery = pageQuery({
  to: t.Optional(address),
  from: t.Optional(address),
  kind: t.Optional({ ...KIND, description: "Only mail of this kind." } as typeof KIND),
  thread_id: t.Optional(t.String({ maxLength: 36 })),
  ...dateFilters,
})

/** Shorter than the time limit of a request. */
const LONGEST_WAIT = 25

export const waitQuery = t.Object({
  to: t.String({ maxLength: 254, description: "The recipient of the mail." }),
  since: t.Optional(
    t.String({ description: "Only mail that came in then or later (default: any mail)." }),
  ),
  timeout: t.Integer({
    default: LONGEST_WAIT,
    minimum: 0,
    maximum: LONGEST_WAIT,
    description: "Maximum seconds to wait.",
  }),
  extract: t.Optional(oneOf("otp", "link")),
})

const from = t.Optional({
  ...mailbox,
  description: "The sender (default: the address that received the mail).",
} as typeof mailbox)

export const Reply = t.Object({
  html: t.Optional(t.String()),
  text: t.Optional(t.String({ description: "Plain text. Without it, it is made from `html`." })),
  from,
  subject: t.Optional(
    t.String({ minLength: 1, maxLength: 998, description: "Default: `Re:` and the old subject." }),
  ),
  attachments,
})

export const Forward = t.Object({ to: mailbox, from })

const ROUTE_ACTIONS = ["webhook", "forward", "drop"] as const

const match = t.Object({
  to: t.String({
    maxLength: 254,
    pattern: ONE_LINE,
    examples: ["support+*@in.example.com"],
    description:
      "An address of a receiving domain. The local part may be `*`, or may end with `+*`.",
  }),
})

const target = t.Union([t.String({ maxLength: 254 }), t.Null()], {
  examples: [null],
  description:
    "With `forward`: the address. With `webhook`: the id of the one endpoint that gets the event (default: all that subscribe).",
})

const PRIORITY = "0 to 1000. The lowest number comes first (default: 100)."
const priority = t.Integer({ minimum: 0, maximum: 1000, examples: [100], description: PRIORITY })

export const NewInboundRoute = t.Object({
  match,
  action: oneOf(...ROUTE_ACTIONS),
  target: t.Optional(target),
  priority: t.Optional(priority),
})

export const InboundRouteChange = t.Partial(NewInboundRoute)

export const InboundRoute = t.Object(
  {
    id: id(),
    match,
    action: word(ROUTE_ACTIONS),
    target,
    priority,
    created_at: time(),
    updated_at: time(),
  },
  { title: "InboundRoute" },
)
