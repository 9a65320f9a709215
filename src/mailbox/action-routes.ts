import { Type as t } from "@sinclair/typebox"
import { reply } from "../emails/channel"
import { Accepted, acceptedTop, address, SEND_ERRORS } from "../emails/schemas"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { count, flag, maybe, rarely, text, word } from "../lib/record-fields"
import { entryOf, isFrozen, refuseFrozen, type SendBatcher } from "../messages/accept"
import type { Store } from "../store/store"
import * as settings from "../tenancy/settings"
import { chaosOf, wholeChaos } from "./chaos"
import type { MailCheckParts } from "./check-mail"
import * as mailbox from "./mailbox"
import { type ReleaseParts, type ReleaseWish, readRelease, release, releasing } from "./release"

export interface MailActionParts extends MailCheckParts, ReleaseParts {
  store: Store
  intake: SendBatcher
}

export const mailActionRoutes = (parts: MailActionParts): AnyRoute[] => [
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

/** What goes wrong in the mailbox on purpose. */
const chaosRoutes = ({ store }: MailActionParts): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/mailbox/chaos", "email:read"),
    summary: "Show what goes wrong in the embedded mailbox on purpose",
    description: "All values are 0 where nothing was set.",
    response: Chaos,
    handle: ({ caller }) => ({ data: chaosOf(caller.project_settings) }),
  }),
  route({
    ...projectRow("PUT", "/v1/mailbox/chaos", "email:send"),
    summary: "Make mail of the project go wrong in the embedded mailbox",
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
      { description: "What some mail programs do not show. What most of them lack comes first." },
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
      description: "What filters count, and faults of markup, links and accessibility.",
    }),
    size: t.Object({
      bytes: count(4_213, "Of the whole mail."),
      html_bytes: count(1_920),
      clipped: flag(false, "The html has over 102 KB, and some mail programs show a part of it."),
    }),
  },
  { title: "MailCheck" },
)

/** What receivers will make of a mail. */
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

/** A mail that was caught goes on into the world. */
const releaseRoutes = (parts: MailActionParts): AnyRoute[] => [
  route({
    ...projectRow("POST", "/v1/mailbox/{mail_id}/release", "email:send", 201),
    summary: "Release a mail from the mailbox to a real provider",
    description:
      "Sends the mail as it stands to `to`, or else to its recipient. `provider` is the id of a configuration, by default the first provider other than the mailbox. The sender's domain must be verified.",
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
  if (isFrozen(caller)) await refuseFrozen(parts.store.read, caller, "email", 1)
  const sender = { caller, signal, idempotency_key: claim?.key ?? null }
  const message = await release(parts, params.mail_id, body, sender)
  return reply(await parts.intake.submit(entryOf(message, caller), call, reply))
}
