import { Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import type { Workers } from "../core/workers"
import {
  asPage,
  type Cursors,
  comparableFilters,
  keyById,
  pageQuery,
  readTime,
  windowOf,
} from "../http/page"
import type { Call } from "../http/route"
import { type AnyRoute, projectRow, route } from "../http/route"
import { count, EXAMPLE_ID, id, maybe, rarely, text, time } from "../lib/record-fields"
import type { Store } from "../store/store"
import * as mailbox from "./mailbox"

const summary = {
  id: id(),
  email_id: maybe(id()),
  from: text("hello@mailbox.test"),
  to: text("you@mailbox.test"),
  subject: text("It works"),
  created_at: time(),
}

const Summary = t.Object(summary, { title: "MailboxMailSummary" })

const Mail = t.Object(
  {
    ...summary,
    headers: t.Record(t.String(), t.Union([t.String(), t.Array(t.String())]), {
      examples: [{ subject: "It works", "mime-version": "1.0" }],
      description: "Header names are in lower case. A field that occurs more than once is a list.",
    }),
    html: rarely(text("<p>Hello from Belfry.</p>")),
    text: maybe(text("Hello from Belfry.")),
    attachments: t.Array(
      t.Object({
        filename: maybe(text("receipt.pdf")),
        content_type: text("application/pdf"),
        content_id: rarely(text("logo")),
        size: count(48_213, "Bytes."),
        sha256: text("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
      }),
      { examples: [[]] },
    ),
    parse_error: rarely(text("The message has no body.", "Reason why the body could not be read.")),
    raw_url: maybe(text(`/v1/emails/${EXAMPLE_ID}/raw`)),
  },
  { title: "MailboxMail" },
)

const Cleared = t.Object(
  { deleted: count(3, "Number of deleted mails.") },
  { title: "MailboxCleared" },
)

const mailQuery = pageQuery({
  to: t.Optional(t.String({ maxLength: 254 })),
  from: t.Optional(t.String({ maxLength: 254 })),
  search: t.Optional(t.String({ maxLength: 200 })),
  since: t.Optional(t.String()),
})

const clearQuery = t.Object({ to: t.Optional(t.String({ maxLength: 254 })) })

interface MailboxParts {
  store: Store
  workers: Workers
  cursors: Cursors
}

export function mailboxRoutes({ store, workers, cursors }: MailboxParts): AnyRoute[] {
  return [
    route({
      ...projectRow("GET", "/v1/mailbox", "email:read"),
      summary: "List the mail in the embedded mailbox, newest first",
      description:
        "Mail of this project in the embedded mailbox. `search` looks into sender, recipient and subject.",
      query: mailQuery,
      response: Summary,
      errors: ["invalid_email"],
      handle: async (call) => {
        const { project_id, query } = call
        const { search } = query
        const filter = { ...comparableFilters(query), search, since: sinceOf(query.since) }
        const byId = keyById((id) => mailbox.find(store.read, project_id, id))
        const window = await windowOf(call, cursors, byId)
        const page = await mailbox.list(store.read, project_id, filter, window)
        return asPage(call, cursors, page)
      },
    }),
    route({
      ...projectRow("GET", "/v1/mailbox/{mail_id}", "email:read"),
      summary: "Show one mail, with its parsed parts",
      description: "Headers, bodies and the list of attachments.",
      response: Mail,
      handle: async (call) => ({ data: await read(store, workers, call) }),
    }),
    route({
      ...projectRow("DELETE", "/v1/mailbox", "email:send"),
      summary: "Delete all mail in the mailbox, or the mail of one recipient",
      description: "With `to` only the mail of that recipient goes.",
      query: clearQuery,
      response: Cleared,
      errors: ["invalid_email"],
      handle: async ({ project_id, query }) => ({
        data: await mailbox.clear(store, project_id, comparableFilters(query)),
      }),
    }),
  ]
}

async function read(
  store: Store,
  workers: Workers,
  { project_id, params }: Call<unknown, unknown, { mail_id: string }>,
) {
  const mail = await mailbox.find(store.read, project_id, params.mail_id)
  const { headers, html, text, attachments, parse_error } = await mailbox.parse(workers, mail)
  const { id, email_id, from_address, to_address, subject, created_at } = mail
  const raw_url = email_id ? `/v1/emails/${email_id}/raw` : null
  const addresses = { from: from_address, to: to_address }
  const parts = { headers, subject, html, text, attachments, parse_error, raw_url }
  return { id, email_id, ...addresses, ...parts, created_at }
}

function sinceOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const problems = new Problems()
  const since = readTime("since", text, problems)
  problems.throwIfAny()
  return since
}
