import { type Static, Type as t } from "@sinclair/typebox"
import { fail, Problems } from "../core/errors"
import { organizational } from "../domains/names"
import { MEDIA_TYPE } from "../emails/attachments"
import { reply } from "../emails/channel"
import { Accepted, acceptedTop, address, SEND_ERRORS } from "../emails/schemas"
import { download, rawMessage } from "../http/download"
import { Deleted, deleted } from "../http/field-schemas"
import { type Cursors, comparableFilters, listPage, readTime } from "../http/page"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import { count, flag, maybe, rarely, text, word } from "../lib/record-fields"
import { entryOf, refuseFrozen, type SendBatcher } from "../messages/accept"
import { refusalPage } from "../pages/small-page"
import type { Store } from "../store/store"
import * as settings from "../tenancy/settings"
import type { MailCheckParts } from "./check-mail"
import { htmlUrl, type MailPageParts, mailPage } from "./mail-page"
import * as mailbox from "./mailbox"
import type { ParsedMail } from "./parse-task"
import {
  type ReleaseParts,
  type ReleaseWish,
  readRelease,
  release,
  releaseRefusal,
  releasing,
} from "./release"
import * as schemas from "./schemas"
import { chaosOf, wholeChaos } from "./simulator"

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
    description: "With `to` it deletes only the mail of that recipient.",
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
    handle: async (call) => ({ data: await show(parts, call) }),
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
      return { data: await show(parts, call) }
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

async function show(parts: MailboxParts, call: OfMail) {
  const { secrets, workers, store } = parts
  const [project_id, id] = named(call)
  const mail = await mailbox.find(parts, project_id, id)
  const { headers, html, text, attachments, parse_error } = await mailbox.parse(workers, mail)
  const { email_id, from_address, to_address, mail_from, subject, read_at, size, created_at } = mail
  const html_url = html === null ? null : htmlUrl(secrets, project_id, id)
  const release_refusal = await releaseRefusal(parts, call.caller, mail)
  const raw_url = `${ALL}/${id}/raw`
  const statusOf = await mailbox.statusesOf(store.read, project_id, [mail])
  const rest = { status: statusOf(mail), release_refusal, read: read_at !== null, size, created_at }
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
    query: t.Object({
      scheme: t.Optional(t.Union([t.Literal("light"), t.Literal("dark")])),
      images: t.Optional(t.Literal("remote")),
    }),
    page: refusalPage,
    produces: "text/html",
    handle: ({ params, query: { scheme = "light", images } }) =>
      mailPage(parts, params.token, { scheme, images }),
  })

interface MailActionParts extends MailCheckParts, ReleaseParts {
  store: Store
  intake: SendBatcher
}

const mailActionRoutes = (parts: MailActionParts): AnyRoute[] => [
  ...chaosRoutes(parts),
  ...checkRoutes(parts),
  ...releaseRoutes(parts),
]

const rate = (what: string) =>
  t.Optional(t.Number({ minimum: 0, maximum: 1, examples: [0.1], description: what }))

const delay = t.Integer({ minimum: 0, maximum: 60_000, examples: [0] })

const Chaos = t.Object(
  {
    bounce_rate: t.Number({ examples: [0.1], description: "Share that bounces, as `bounce@`." }),
    defer_rate: t.Number({
      examples: [0.2],
      description: "Share that is deferred once, as `defer@`.",
    }),
    delay_ms: delay,
    refuse_rate: t.Number({ examples: [0], description: "Share that is refused, as `reject@`." }),
  },
  { title: "MailboxChaos" },
)

const WantedChaos = t.Object({
  bounce_rate: rate("Share of the recipients whose mail bounces, from 0 to 1."),
  defer_rate: rate("Share of the recipients whose mail is deferred once, from 0 to 1."),
  delay_ms: t.Optional({ ...delay, description: "Milliseconds before each mail is answered." }),
  refuse_rate: rate("Share of the recipients whose mail is refused by policy, from 0 to 1."),
})

const chaosRoutes = ({ store }: MailActionParts): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/mailbox/chaos", "email:read"),
    summary: "Show which mail fails in the embedded mailbox on purpose",
    description: "All values are 0 where nothing was set.",
    response: Chaos,
    handle: ({ caller }) => ({ data: chaosOf(caller.project_settings) }),
  }),
  route({
    ...projectRow("PUT", "/v1/mailbox/chaos", "email:send"),
    summary: "Make mail of the project fail in the embedded mailbox",
    description:
      "The rates are shares of the recipients, together at most 1. Absent fields are 0, so `{}` ends it. Under `belfry serve`, mails that wait hold at most a quarter of the deliveries, and further ones are not delayed. An address that bounced is suppressed, as every other one. The addresses of `mailbox.test` with an outcome of their own keep it.",
    body: WantedChaos,
    example: { bounce_rate: 0.1, defer_rate: 0.2, delay_ms: 500 },
    response: Chaos,
    handle: async ({ caller, body }) => {
      const change = { mailbox_chaos: wholeChaos(body) }
      return { data: chaosOf(await store.tx((tx) => settings.patch(tx, caller, change))) }
    },
  }),
]

const Check = t.Object(
  {
    html: t.Array(
      t.Object({
        feature: text("display:flex"),
        count: count(2, "Number of times that the html uses it."),
        programs: t.Array(
          t.Object({ name: text("Outlook (Windows)"), support: word(["no", "partial"]) }),
        ),
      }),
      {
        description:
          "What some mail programs do not show. The list begins with what most of them lack.",
      },
    ),
    links: rarely(
      t.Array(
        t.Object({
          url: text("https://example.com/order"),
          status: maybe(count(200)),
          ok: maybe(
            flag(
              true,
              "Null is not known: nobody asked, or the server refuses programs. `error` says which.",
            ),
          ),
          error: rarely(text("The server answered 404.")),
        }),
        { description: "Null where `links` was not asked for." },
      ),
    ),
    content: t.Array(t.Object({ rule: text("capitals"), detail: text("The subject is loud.") }), {
      description:
        "Signs that spam filters look for, and faults of markup, links and accessibility.",
    }),
    size: t.Object({
      bytes: count(4_213, "Bytes of the whole mail."),
      html_bytes: count(1_920),
      clipped: flag(false, "The html has over 102 KB, and some mail programs show a part of it."),
    }),
  },
  { title: "MailCheck" },
)

const checkRoutes = (parts: MailActionParts): AnyRoute[] => [
  route({
    ...projectRow("POST", "/v1/mailbox/{mail_id}/check", "email:read"),
    summary: "Check a mail: mail programs, links, content and size",
    description:
      "`links: true` asks the servers of up to 50 links, by HEAD and where that is refused by GET. Links that may end a subscription are never asked. Nothing is stored.",
    body: t.Object({ links: t.Optional(t.Boolean({ default: false })) }),
    example: { links: true },
    response: Check,
    handle: async ({ project_id, params, body }) => {
      const mail = await mailbox.find(parts, project_id, params.mail_id)
      const { checkMail } = await import("./check-mail") // with its lists of words, which few ever need
      return { data: await checkMail(parts, mail, { links: body.links ?? false }) }
    },
  }),
]

const releaseRoutes = (parts: MailActionParts): AnyRoute[] => [
  route({
    ...projectRow("POST", "/v1/mailbox/{mail_id}/release", "email:send", 201),
    summary: "Release a mail from the mailbox to a real provider",
    description:
      "Sends the mail, with a new Message-ID and signature, to `to` or else to its recipient. `provider` is the id of a configuration, by default the first provider other than the mailbox. The sender's domain must be verified.",
    sends: true,
    body: t.Object({ to: t.Optional(address), provider: t.Optional(t.String()) }),
    example: { to: "ann@example.com" },
    readRaw: readRelease,
    response: Accepted,
    top: acceptedTop,
    errors: SEND_ERRORS,
    idempotent: true,
    handle: (call) => sendReleased(parts, call),
  }),
]

/** Through the door of every email: quotas, rules and the idempotency key apply. */
async function sendReleased(
  parts: MailActionParts,
  call: Call<ReleaseWish, unknown, { mail_id: string }>,
) {
  const { claim, signal, params, body } = call
  const caller = releasing(call.caller)
  await refuseFrozen(parts.store.read, caller, "email", 1)
  const sender = { caller, signal, idempotency_key: claim?.key ?? null }
  const message = await release(parts, params.mail_id, body, sender)
  return reply(await parts.intake.submit(entryOf(message, caller), call, reply))
}

/** Header fields in which a domain speaks for the sender. */
const FIELDS = ["from", "return-path", "message-id", "dkim-signature"]

const MOST_DOMAINS = 50
const MOST_CHARACTERS = 4_000

const DOMAIN = /(?<=@|\bd\s*=\s*)[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+/giu

/**
 * The organizational domain of each domain that the sender names, by which DMARC compares them (RFC 7489,
 * 3.2). All are in lower case.
 */
export function organizationsOf(
  headers: ParsedMail["headers"],
  envelope_from: string,
): Record<string, string> {
  const values = FIELDS.flatMap((name) => headers[name] ?? []).concat(envelope_from)
  const named = values.flatMap((value) => value.slice(0, MOST_CHARACTERS).match(DOMAIN) ?? [])
  const domains = new Set(named.map((domain) => domain.toLowerCase()))
  const pairs = [...domains].slice(0, MOST_DOMAINS).map((one) => [one, organizational(one)])
  return Object.fromEntries(pairs)
}
