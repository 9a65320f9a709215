import { Type as t } from "@sinclair/typebox"
import { STATUSES } from "../emails/schemas"
import { pageQuery } from "../http/page"
import { count, EXAMPLE_ID, flag, id, maybe, rarely, text, time, word } from "../lib/record-fields"

const summary = {
  id: id(),
  email_id: maybe(id("The email that it came from, or the text.")),
  from: text("hello@mailbox.test"),
  to: text("you@mailbox.test"),
  subject: text("It works"),
  status: maybe(
    word(
      [...STATUSES, "undelivered"] as const,
      "The email or text that it came from has this status now. Null where another program sent the mail.",
    ),
  ),
  read: flag(false),
  size: count(4_213, "Bytes of the whole mail."),
  attachments: maybe(count(0, "The number of its files. Null is not known.")),
  created_at: time(),
}

export const MailboxSummary = t.Object(summary, { title: "MailboxMailSummary" })

const file = t.Object({
  id: text("0", "The number of the file in the mail, from 0."),
  filename: maybe(text("receipt.pdf")),
  content_type: text("application/pdf"),
  content_id: rarely(text("logo")),
  size: count(48_213, "Bytes."),
  sha256: text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
})

export const MailboxMail = t.Object(
  {
    ...summary,
    envelope_from: text(
      "bounces@mailbox.test",
      "The sender of the envelope, which gets the bounces. Empty for a mail that is a bounce itself.",
    ),
    organizations: t.Record(t.String(), t.String(), {
      examples: [{ "news.example.com": "example.com" }],
      description:
        "Each domain that the sender names, with its organizational domain: DMARC compares those.",
    }),
    headers: t.Record(t.String(), t.Union([t.String(), t.Array(t.String())]), {
      examples: [{ subject: "It works", "mime-version": "1.0" }],
      description: "Header names are in lower case. A field that occurs more than once is a list.",
    }),
    html: rarely(text("<p>Hello from Belfry.</p>")),
    html_url: rarely(
      text(
        "/mailbox/html/v1.6f2c…",
        "A page with the html alone, for a frame. It is made harmless, needs no key, and is valid for ten minutes. `?scheme=dark` shows its colours for dark screens. `?images=remote` loads up to 20 images from other servers, whose owners may see it.",
      ),
    ),
    text: maybe(text("Hello from Belfry.")),
    attachments: t.Array(file, { examples: [[]] }),
    parse_error: rarely(
      text("A multipart of the message has no boundary.", "Why the mail could not be read whole."),
    ),
    release_refusal: rarely(
      text(
        "domain_not_verified",
        "Why the server would refuse a release to any recipient now: `no_provider`, or the code of the error. Null: nothing speaks against it.",
      ),
    ),
    raw_url: text(`/v1/mailbox/${EXAMPLE_ID}/raw`),
  },
  { title: "MailboxMail" },
)

export const MailboxCleared = t.Object(
  { deleted: count(3, "Number of deleted mails.") },
  { title: "MailboxCleared" },
)

const address = t.Optional(t.String({ maxLength: 254 }))

export const mailQuery = pageQuery({
  to: address,
  from: address,
  search: t.Optional(t.String({ maxLength: 200 })),
  since: t.Optional(t.String()),
  unread: t.Optional(
    t.Boolean({
      description: "`true`: only mail that nobody read. `false`: only mail that was read.",
    }),
  ),
})

export const clearQuery = t.Object({ to: address })

export const MailChange = t.Object({ read: t.Boolean() })
