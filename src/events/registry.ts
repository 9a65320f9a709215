import { invalid } from "../core/errors"
import { nearest } from "../lib/text"
import {
  always,
  dataOf,
  type EventField,
  EXAMPLE_ID,
  EXAMPLE_TIME,
  type ExampleField,
  examplesByType,
  fieldsByType,
  maybe,
  timestamp,
} from "./event-fields"

/** Of the payload of every event; an endpoint keeps the version it was created with. */
export const API_VERSION = "2026-02-01"

export const CATEGORIES = [
  "email",
  "push",
  "auth",
  "domain",
  "sms",
  "in_app",
  "subscriber",
  "suppression",
  "topic",
  "workflow",
  "broadcast",
  "webhook",
  "account",
] as const

type Category = (typeof CATEGORIES)[number]

export interface EventType {
  type: string
  category: Category
  description: string
  api_version: string
  fields: EventField[]
  example: Example
}

interface Example {
  id: string
  type: string
  api_version: string
  created_at: string
  data: Record<string, unknown>
}

function eventType(
  category: Category,
  type: string,
  description: string,
  own: ExampleField[] | undefined,
): EventType {
  const fields = own ?? fieldsByType[type] ?? fieldsByType[type.split(".", 1)[0] ?? ""] ?? []
  // Made of the type, so that types to come change no other example.
  const id = `evt_0199a1c2-0000-7000-8000-${Bun.SHA256.hash(type, "hex").slice(0, 12)}`
  const data = { ...dataOf(fields), ...examplesByType[type] }
  const example = { id, type, api_version: API_VERSION, created_at: EXAMPLE_TIME, data }
  const shown = fields.map(({ example: _, ...field }) => field)
  return { type, category, description, api_version: API_VERSION, fields: shown, example }
}

/** Events of one noun. `fields` are those of each of them, where they do not stand in `event-fields.ts`. */
const group = (
  category: Category,
  prefix: string,
  events: Record<string, string>,
  fields?: ExampleField[],
): EventType[] =>
  Object.entries(events).map(([name, description]) =>
    eventType(category, `${prefix}.${name}`, description, fields),
  )

/** Every type of event that this service speaks of, also those of features that are to come. */
export const eventTypes: readonly EventType[] = [
  ...group("email", "email", {
    queued: "The email was accepted and queued.",
    sent: "The email was handed to the provider or to the recipient's server.",
    delivered: "The email was delivered to the recipient.",
    bounced: "The email bounced. It is not tried again.",
    soft_bounced: "The recipient's side deferred the email. It is tried again.",
    complained: "The recipient marked the email as spam.",
    opened: "The tracking pixel of the email was loaded.",
    clicked: "A tracked link of the email was clicked.",
    failed: "The email could not be processed, was cancelled or was excluded.",
    received: "An email came in.",
  }),
  ...group("push", "push", {
    sent: "The provider accepted the push message.",
    delivered: "The device acknowledged the push message.",
    failed: "The push message could not be delivered.",
    expired: "The time to live of the push message ended before its delivery.",
  }),
  ...group("auth", "user", {
    created: "An end user was created.",
    login: "The user signed in.",
    logout: "The user signed out.",
    password_changed: "The password was changed, reset or set.",
    password_reset_requested: "Somebody requested a reset of the password.",
    email_verified: "The email address was verified.",
    phone_verified: "The phone number was verified.",
    deleted: "The user was deleted.",
    session_revoked: "A session was revoked, or a used token was sent again.",
    mfa_enabled: "The first second factor became active.",
    mfa_disabled: "The last second factor was removed or reset.",
    impersonated: "Somebody began to act as this user.",
  }),
  ...group("domain", "domain", {
    verified: "The domain was verified.",
    verification_failed: "The verification of the domain failed.",
    degraded: "A verified domain lost a DNS record.",
  }),
  ...group("sms", "sms", {
    queued: "The SMS was accepted and queued.",
    sent: "The SMS was handed to the provider.",
    delivered: "The SMS was delivered to the phone.",
    undelivered: "The network could not deliver the SMS.",
    failed: "The SMS could not be sent.",
    received: "An SMS came in.",
  }),
  ...group("in_app", "inbox", {
    created: "The message was put into the inbox.",
    seen: "The message was seen for the first time.",
    read: "The message was read for the first time.",
    archived: "The message was archived for the first time.",
    action: "An action of the message was used.",
    expired: "The message expired.",
  }),
  ...group("subscriber", "subscriber", {
    unsubscribed: "The subscriber unsubscribed by page, one click, API or STOP.",
    resubscribed: "The subscriber subscribed again by page, API or START.",
  }),
  ...group("suppression", "suppression", {
    created: "An address was added to the suppression list.",
    deleted: "An address was removed from the suppression list.",
  }),
  ...group("topic", "topic", { publish_completed: "A publication reached its whole audience." }, [
    always("publish_id", `${EXAMPLE_ID}12`, "The id of the publication."),
    always("topic_key", "releases", "The key of the topic."),
    always("audience", 123, "The number of subscribers in the audience."),
    always("counts", { email: { sent: 120, skipped: 3 } }, "The results by channel."),
    timestamp,
  ]),
  ...group("workflow", "workflow", {
    execution_completed: "An execution of a workflow ended.",
    execution_failed: "An execution of a workflow failed.",
  }),
  ...group("broadcast", "broadcast", {
    completed: "The broadcast was completed.",
    paused: "The canary, the reputation or a person paused the broadcast.",
  }),
  ...group("webhook", "webhook", {
    disabled: "The circuit breaker, an answer 410 or a person disabled an endpoint.",
    test: "A test of an endpoint was requested.",
  }),
  ...group(
    "account",
    "account",
    {
      sending_status_changed: "The sending status became active, throttled or frozen.",
    },
    [
      always("account_id", `${EXAMPLE_ID}17`, "The id of the account."),
      always("from", "active", "The old status: `active`, `throttled` or `frozen`."),
      always("to", "throttled", "The new status."),
      maybe("reason", "The reason of the change.", "bounce_rate=6.1%;threshold=5%;window=7d"),
      maybe("bounce_rate", "Share of bounces, 0 to 1.", 0.061),
      maybe("complaint_rate", "Share of complaints, 0 to 1.", 0.0004),
      timestamp,
    ],
  ),
]

/** Their features are to come: endpoints may ask for them, and the reference does not describe them. */
const TO_COME = new Set<Category>(["auth", "workflow", "broadcast"])

export const builtEventTypes = eventTypes.filter(({ category }) => !TO_COME.has(category))

const byType = new Map(eventTypes.map((entry) => [entry.type, entry]))

/** Undefined for a type that is not registered. */
export const lookup = (type: string): EventType | undefined => byType.get(type)

const patterns = new Set(["*", ...eventTypes.map(({ type }) => `${type.split(".", 1)[0]}.*`)])

/** What may be asked for: a registered type, `prefix.*` of one, or `*`. */
export const isPattern = (text: string): boolean => byType.has(text) || patterns.has(text)

/** A comma list of patterns. Throws 422 for what is no type, no `prefix.*` of one, and not `*`. */
export function askedTypes(list: string): string[] {
  const types = list.split(",").flatMap((type) => type.trim() || [])
  const unknown = types.find((type) => !isPattern(type))
  if (unknown === undefined) return types
  throw invalid("types", "unknown_type", noSuchType(unknown))
}

export function noSuchType(unknown: string): string {
  const near = nearest(unknown, NAMES)
  return `There is no event type ${unknown}.${near ? ` The nearest is ${near}.` : ""}`
}

const NAMES = eventTypes.map(({ type }) => type)
