import type { Static } from "@sinclair/typebox"
import { Type as t } from "@sinclair/typebox"
import { fail, Problems } from "../core/errors"
import { MEDIA_TYPE } from "../emails/attachments"
import { download, rawMessage } from "../http/download"
import { Deleted, deleted } from "../http/field-schemas"
import { type Cursors, comparableFilters, listPage, readTime } from "../http/page"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import { refusalPage } from "../pages/small-page"
import { type MailActionParts, mailActionRoutes } from "./action-routes"
import { htmlUrl, type MailPageParts, mailPage } from "./mail-page"
import * as mailbox from "./mailbox"
import * as schemas from "./schemas"
import { organizationsOf } from "./sender-domains"

export interface MailboxParts extends MailPageParts, MailActionParts {
  cursors: Cursors
}

export const mailboxRoutes = (parts: MailboxParts): AnyRoute[] => [
  ...listRoutes(parts),
  ...mailRoutes(parts),
  ...fileRoutes(parts),
  ...mailActionRoutes(parts),
  htmlRoute(parts),
]

const ALL = "/v1/mailbox"
const ONE = `${ALL}/{mail_id}` as const

const reads = <const Path extends string>(method: Method, path: Path) =>
  projectRow(method, path, "email:read")

const changes = <const Path extends string>(method: Method, path: Path) =>
  projectRow(method, path, "email:send")

type OfMail<Body = unknown> = Call<Body, unknown, { mail_id: string }>

const named = ({ project_id, params }: OfMail): [string, string] => [project_id, params.mail_id]

const listRoutes = (parts: MailboxParts): AnyRoute[] => [
  route({
    ...reads("GET", ALL),
    summary: "List the mail in the embedded mailbox, newest first",
    description:
      "Mail of this project in the embedded mailbox. `search` looks into sender, recipient and subject.",
    query: schemas.mailQuery,
    response: schemas.MailboxSummary,
    errors: ["invalid_email"],
    handle: (call) => list(parts, call),
  }),
  route({
    ...changes("DELETE", ALL),
    summary: "Delete all mail in the mailbox, or the mail of one recipient",
    description: "With `to` only the mail of that recipient goes.",
    query: schemas.clearQuery,
    response: schemas.MailboxCleared,
    errors: ["invalid_email"],
    handle: async ({ project_id, query }) => ({
      data: await mailbox.clear(parts.store, project_id, comparableFilters(query)),
    }),
  }),
]

async function list(
  { store, cursors }: MailboxParts,
  call: Call<unknown, Static<typeof schemas.mailQuery>>,
) {
  const { project_id, query } = call
  const { search, unread } = query
  const filter = { ...comparableFilters(query), search, unread, since: sinceOf(query.since) }
  return listPage(call, cursors, {
    find: (id) => mailbox.requireAllowed(store.read, project_id, id),
    list: (window) => mailbox.list(store.read, project_id, filter, window),
  })
}

function sinceOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const problems = new Problems()
  const since = readTime("since", text, problems)
  problems.throwIfAny()
  return since
}

const mailRoutes = (parts: MailboxParts): AnyRoute[] => [
  route({
    ...reads("GET", ONE),
    summary: "Show one mail, with its parsed parts",
    description:
      "Headers, bodies and the list of attachments. Reading it does not mark it as read.",
    response: schemas.MailboxMail,
    handle: async (call) => ({ data: await show(parts, ...named(call)) }),
  }),
  route({
    ...reads("PATCH", ONE),
    summary: "Mark a mail as read, or as unread",
    description: "The answer is the whole mail.",
    body: schemas.MailChange,
    example: { read: true },
    response: schemas.MailboxMail,
    handle: async (call) => {
      await parts.store.tx((tx) => mailbox.mark(tx, ...named(call), call.body.read))
      return { data: await show(parts, ...named(call)) }
    },
  }),
  route({
    ...changes("DELETE", ONE),
    summary: "Delete a mail from the mailbox",
    description: "The email that it came from stays, with its events.",
    response: Deleted,
    handle: async (call) => {
      await parts.store.tx((tx) => mailbox.remove(tx, ...named(call)))
      return deleted(call.params.mail_id)
    },
  }),
]

async function show(parts: MailboxParts, project_id: string, id: string) {
  const { secrets, workers } = parts
  const mail = await mailbox.find(parts, project_id, id)
  const { headers, html, text, attachments, parse_error } = await mailbox.parse(workers, mail)
  const { email_id, from_address, to_address, mail_from, subject, read_at, size, created_at } = mail
  const html_url = html === null ? null : htmlUrl(secrets, project_id, id)
  const raw_url = `${ALL}/${id}/raw`
  const rest = { read: read_at !== null, size, created_at }
  const sender = { envelope_from: mail_from, organizations: organizationsOf(headers, mail_from) }
  const bodies = { headers, subject, html, html_url, text, attachments, parse_error, raw_url }
  return { id, email_id, from: from_address, to: to_address, ...sender, ...bodies, ...rest }
}

const fileRoutes = (parts: MailboxParts): AnyRoute[] => [
  route({
    ...reads("GET", `${ONE}/raw`),
    summary: "Show a mail of the mailbox as it came in",
    description: "The exact bytes, with headers and signature.",
    produces: "message/rfc822",
    handle: async (call) => rawMessage((await mailbox.find(parts, ...named(call))).raw),
  }),
  route({
    ...reads("GET", `${ONE}/attachments/{attachment_id}`),
    summary: "Download one attachment of a mail in the mailbox",
    description: "The file as a download, with the content type that the mail gives it.",
    produces: "*/*",
    handle: async (call) => {
      const mail = await mailbox.find(parts, ...named(call))
      const { attachment_id } = call.params
      const file = await mailbox.attachment(parts.workers, mail, attachment_id)
      const { filename, content_type, bytes } =
        file ?? fail("not_found", `This mail has no attachment "${attachment_id}".`)
      const type = MEDIA_TYPE.test(content_type) ? content_type : "application/octet-stream"
      return download({ filename, content_type: type, bytes })
    },
  }),
]

/** For a frame, which sends no credential: the token in the path is one. */
const htmlRoute = (parts: MailPageParts): AnyRoute =>
  route({
    method: "GET",
    path: "/mailbox/html/{token}",
    scope: "-",
    callers: ["none"],
    status: [200],
    credentials: ["token"],
    summary: "The html of a mail, made harmless",
    query: t.Object({ scheme: t.Optional(t.Union([t.Literal("light"), t.Literal("dark")])) }),
    page: refusalPage,
    produces: "text/html",
    handle: ({ params, query }) => mailPage(parts, params.token, query.scheme ?? "light"),
  })
