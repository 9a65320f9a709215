import { API_VERSION } from "./api-version"
import { dataOf, EXAMPLE_TIME, type Field, listed, type Shown } from "./catalog/field"
import { messageExamples, messageFields } from "./catalog/messages"
import { peopleExamples, peopleFields } from "./catalog/people"
import { sendingExamples, sendingFields } from "./catalog/sending"

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

export type Category = (typeof CATEGORIES)[number]

export interface EventType {
  type: string
  category: Category
  /** When it is emitted. */
  description: string
  api_version: string
  fields: Field[]
  example: Example
}

/** A whole envelope. */
export interface Example {
  id: string
  type: string
  api_version: string
  created_at: string
  data: Record<string, unknown>
}

const shown: Record<string, Shown[]> = { ...messageFields, ...peopleFields, ...sendingFields }
const special = { ...messageExamples, ...peopleExamples, ...sendingExamples }

function example(type: string, fields: Shown[]): Example {
  return {
    // Made of the type, so that types to come change no other example.
    id: `evt_0199a1c2-0000-7000-8000-${Bun.SHA256.hash(type, "hex").slice(0, 12)}`,
    type,
    api_version: API_VERSION,
    created_at: EXAMPLE_TIME,
    data: { ...dataOf(fields), ...special[type] },
  }
}

function eventType(category: Category, type: string, description: string): EventType {
  const fields = shown[type] ?? shown[type.split(".", 1)[0] ?? ""] ?? []
  return {
    type,
    category,
    description,
    api_version: API_VERSION,
    fields: fields.map(listed),
    example: example(type, fields),
  }
}

const group = (category: Category, prefix: string, events: Record<string, string>): EventType[] =>
  Object.entries(events).map(([name, description]) =>
    eventType(category, `${prefix}.${name}`, description),
  )

/** Every type of event that this service speaks of, also those of features that are to come. */
export const eventTypes: readonly EventType[] = [
  ...group("email", "email", {
    queued: "Accepted and queued.",
    sent: "Handed to the provider or the recipient's server.",
    delivered: "Delivered to the recipient.",
    bounced: "Bounced for good.",
    soft_bounced: "Put off by the other side, and tried again.",
    complained: "Marked as spam.",
    opened: "Its tracking pixel was loaded.",
    clicked: "A tracked link in it was clicked.",
    failed: "Could not be processed, was cancelled or excluded.",
    received: "An email came in.",
  }),
  ...group("push", "push", {
    sent: "Accepted by the provider.",
    delivered: "Acknowledged by the device.",
    failed: "Could not be delivered.",
    expired: "Its time to live was over before it was delivered.",
  }),
  ...group("auth", "user", {
    created: "An end user was created.",
    login: "Signed in.",
    logout: "Signed out.",
    password_changed: "The password was changed, reset or set.",
    password_reset_requested: "A reset of the password was requested.",
    email_verified: "The email address was verified.",
    phone_verified: "The phone number was verified.",
    deleted: "The user was deleted.",
    session_revoked: "A session was revoked, or the reuse of a token was found.",
    mfa_enabled: "The first second factor became active.",
    mfa_disabled: "The last second factor was removed or reset.",
    impersonated: "Somebody began to act as this user.",
  }),
  ...group("domain", "domain", {
    verified: "The domain reached verified.",
    verification_failed: "The domain reached failed.",
    degraded: "A verified domain lost a record.",
  }),
  ...group("sms", "sms", {
    queued: "Accepted and queued.",
    sent: "Handed to the provider.",
    delivered: "Delivered to the phone.",
    undelivered: "The network could not deliver it.",
    failed: "Could not be sent.",
    received: "An SMS came in.",
  }),
  ...group("in_app", "inbox", {
    created: "Put into the inbox.",
    seen: "Seen for the first time.",
    read: "Read for the first time.",
    archived: "Archived for the first time.",
    action: "One of its actions was used.",
    expired: "Its time was over.",
  }),
  ...group("subscriber", "subscriber", {
    unsubscribed: "Unsubscribed by page, one click, API or STOP.",
    resubscribed: "Subscribed again by page, API or START.",
  }),
  ...group("suppression", "suppression", {
    created: "An address was put on the list.",
    deleted: "An address was taken off the list.",
  }),
  ...group("topic", "topic", { publish_completed: "A publication reached its whole audience." }),
  ...group("workflow", "workflow", {
    execution_completed: "An execution ended.",
    execution_failed: "An execution failed.",
  }),
  ...group("broadcast", "broadcast", {
    completed: "Finished.",
    paused: "Stopped by canary, reputation or hand.",
  }),
  ...group("webhook", "webhook", {
    disabled: "An endpoint was disabled by the breaker, a 410 or by hand.",
    test: "A test call.",
  }),
  ...group("account", "account", {
    sending_status_changed: "Sending became active, throttled or frozen.",
  }),
]

const byType = new Map(eventTypes.map((entry) => [entry.type, entry]))

/** The entry of a type; undefined for one that is not registered. */
export const lookup = (type: string): EventType | undefined => byType.get(type)

const patterns = new Set(["*", ...eventTypes.map(({ type }) => `${type.split(".", 1)[0]}.*`)])

/** What may be asked for: a registered type, `prefix.*` of one, or `*`. */
export const isPattern = (text: string): boolean => byType.has(text) || patterns.has(text)
