import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Resend } from "resend"
import { secondsFromNow } from "../../src/core/time"
import { freshName } from "../domains/acme"
import { mail, NOBODY } from "../harness/mail"
import { root } from "../harness/migrations"
import { NOWHERE } from "../webhooks/endpoints"

type Methods = Record<string, (...given: unknown[]) => unknown>

/** Of the client's classes, what its declarations call private. */
const declared = readFileSync(join(root, "node_modules/resend/dist/index.d.mts"), "utf8")
const hidden = new Set([...declared.matchAll(/^\s*private (\w+);/gm)].map(([, name]) => name))

/** Every public method, however deep: `emails.send`, `webhooks.events.attempts.list`. */
export function methodsOf(holder: object, prefix = ""): string[] {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(holder))
  const methods = own.filter((name) => name !== "constructor" && !hidden.has(name))
  const parts = Object.entries(holder).filter(([name, part]) => name !== "resend" && isPart(part))
  return [
    ...methods.map((name) => prefix + name),
    ...parts.flatMap(([name, part]) => methodsOf(part, `${prefix}${name}.`)),
  ]
}

const isPart = (value: unknown): value is object =>
  typeof value === "object" &&
  value !== null &&
  !(value instanceof Headers) &&
  Object.getPrototypeOf(value) !== Object.prototype

/** Things of the project that methods are called for. */
export interface Things {
  email: string
  waiting: string
  scheduled: string
  domain: string
  verified: string
  webhook: string
  key: string
  suppression: string
  template: string
  topic: string
  attachment: string
}

/** Names everything that such a method could ask for, of things that are not there. */
const ANYTHING = {
  id: NOBODY,
  name: "Any",
  email: "ann@example.test",
  emailId: NOBODY,
  inboxId: NOBODY,
  threadId: NOBODY,
  draftId: NOBODY,
  labelId: NOBODY,
  contactId: NOBODY,
  segmentId: NOBODY,
  automationId: NOBODY,
  runId: NOBODY,
  webhookId: NOBODY,
  eventId: NOBODY,
  emailAddress: "ann@example.test",
  to: ["ann@example.test"],
  from: "bell@example.test",
  subject: "Ding",
  html: "<p>Dong</p>",
  steps: [],
  connections: [],
  topics: [],
  labels: [],
  fallbackValue: "there",
  file: new Blob(["a,b"]),
}

const letter = () => mail({ html: "<p>Dong</p>" })

/** What methods are called with; those that are missing get an id, or `ANYTHING`. */
const GIVEN: Record<string, (things: Things) => unknown[]> = {
  post: () => ["/emails", letter()],
  get: () => ["/emails"],
  put: ({ webhook }) => [`/webhooks/${webhook}`, { description: "put" }],
  patch: ({ webhook }) => [`/webhooks/${webhook}`, { description: "patched" }],
  delete: () => [`/webhooks/${NOBODY}`],
  fetchRequest: () => ["/health"],
  "emails.send": () => [letter()],
  "emails.create": () => [letter()],
  "emails.get": ({ email }) => [email],
  "emails.list": () => [{ limit: 2 }],
  "emails.update": ({ scheduled }) => [{ id: scheduled, scheduledAt: secondsFromNow(7200) }],
  "emails.cancel": ({ waiting }) => [waiting],
  "emails.share": ({ email }) => [email],
  "emails.metrics": () => [],
  "emails.attachments.get": ({ email, attachment }) => [{ emailId: email, id: attachment }],
  "emails.attachments.list": ({ email }) => [{ emailId: email }],
  "batch.send": () => [[letter()]],
  "batch.create": () => [[letter()]],
  "domains.create": () => [{ name: freshName() }],
  "domains.list": () => [{ limit: 2 }],
  "domains.get": ({ domain }) => [domain],
  "domains.update": ({ domain }) => [{ id: domain, openTracking: true }],
  "domains.verify": ({ domain }) => [domain],
  "domains.remove": ({ domain }) => [domain],
  "domains.claims.get": ({ verified }) => [verified],
  "domains.claims.verify": ({ verified }) => [verified],
  "apiKeys.create": ({ verified }) => [
    { name: "shop", permission: "sending_access", domain_id: verified },
  ],
  "apiKeys.list": () => [{ limit: 2 }],
  "apiKeys.update": ({ key }) => [key, { name: "other" }],
  "apiKeys.remove": ({ key }) => [key],
  "webhooks.create": () => [{ endpoint: NOWHERE, events: ["email.sent"] }],
  "webhooks.list": () => [{ limit: 2 }],
  "webhooks.get": ({ webhook }) => [webhook],
  "webhooks.update": ({ webhook }) => [webhook, { events: ["email.delivery_delayed"] }],
  "webhooks.remove": ({ webhook }) => [webhook],
  "webhooks.rotateSigningSecret": ({ webhook }) => [webhook],
  "suppressions.add": () => [{ email: "gone@example.test" }],
  "suppressions.list": () => [{ limit: 2 }],
  "suppressions.get": ({ suppression }) => [suppression],
  "suppressions.remove": ({ suppression }) => [suppression],
  "templates.create": () => [
    {
      name: "welcome",
      html: "<p>Hello {{{NAME}}}</p>",
      variables: [{ key: "NAME", type: "string", fallbackValue: "friend" }],
    },
  ],
  "templates.list": () => [{ limit: 2 }],
  "templates.get": ({ template }) => [template],
  "templates.update": ({ template }) => [template, { subject: "Hello" }],
  "templates.publish": ({ template }) => [template],
  "templates.duplicate": ({ template }) => [template],
  "templates.remove": ({ template }) => [template],
  "events.list": () => [{ limit: 2 }],
  "usage.get": () => [],
  "topics.create": () => [{ name: "Offers", defaultSubscription: "opt_out" }],
  "topics.list": () => [],
  "topics.get": ({ topic }) => [topic],
  "topics.update": ({ topic }) => [{ id: topic, name: "More news" }],
  "topics.remove": ({ topic }) => [topic],
}

/** Ways that end in one id, and a body or options behind it. */
const BY_ID =
  /\.(get|update|remove|publish|duplicate|revoke|stop|cancel|send|recipients|clickedLinks)$/
const BY_OPTIONS =
  /^(contacts|emails|contactProperties|topics)\.update$|^(contacts|automations\.runs|inboxes\.(threads|drafts|labels|agent)|webhooks\.events|emails\.receiving\.attachments)\./
const LISTS = /\.list$/

function givenTo(method: string, things: Things): unknown[] {
  const own = GIVEN[method]
  if (own) return own(things)
  if (BY_OPTIONS.test(method)) return [ANYTHING]
  if (method.startsWith("events.") && method !== "events.get") return [ANYTHING, ANYTHING]
  if (LISTS.test(method)) return [{ limit: 2 }]
  return BY_ID.test(method) ? [NOBODY, ANYTHING] : [ANYTHING]
}

/** Calls a method by its whole name. */
export function callMethod(resend: Resend, method: string, things: Things): unknown {
  const names = method.split(".")
  const last = names.pop() ?? ""
  const holder = names.reduce<object>((at, name) => at[name as keyof typeof at], resend)
  return (holder as Methods)[last]?.(...givenTo(method, things))
}
