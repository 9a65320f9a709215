import { always, EXAMPLE_ID, maybe, type Shown, timestamp } from "./field"

const where = {
  ip_address: "192.0.2.7",
  session_id: `${EXAMPLE_ID}08`,
  environment: "live",
}

const user: Shown[] = [
  always("application_id", `${EXAMPLE_ID}06`, "The application that the user belongs to."),
  always("user", { id: `${EXAMPLE_ID}07`, email: "ann@example.com" }, "The end user."),
  always("user.id", `${EXAMPLE_ID}07`, "The user's id."),
  maybe("user.email", "string", "The user's address; null where there is none.", "ann@example.com"),
  always("metadata", where, "What applies of the fields below; the others are absent."),
  maybe("metadata.provider", "string", "The method of the sign-in."),
  maybe("metadata.ip_address", "string", "From where."),
  maybe("metadata.session_id", "string", "The session it is about."),
  maybe("metadata.mfa_method", "string", "totp, sms, email or recovery code."),
  maybe("metadata.environment", "string", "live or test."),
  maybe("metadata.organization_id", "string", "The active organization."),
  maybe("metadata.actor_id", "string", "The person that acted, where it was not the user."),
  maybe("metadata.reason", "string", "Why."),
]

const subscriber: Shown[] = [
  maybe(
    "subscriber_id",
    "string",
    "The subscriber; null where it is not known.",
    `${EXAMPLE_ID}05`,
  ),
  maybe("external_id", "string", "The subscriber's id in your own system.", "user-42"),
  always("channel", "email", "email, push, sms or in_app."),
  always("scope", { type: "category", key: "newsletter" }, "What of."),
  always("scope.type", "category", "all, category or topic."),
  maybe("scope.key", "string", "Its key; null for everything.", "newsletter"),
  maybe("reason", "string", "By which way: page, one click, API, STOP or START.", "one_click"),
  timestamp,
]

const suppression: Shown[] = [
  always("id", `${EXAMPLE_ID}09`, "The entry of the list."),
  always("channel", "email", "email or sms."),
  always("address", "ann@example.com", "What nothing is sent to."),
  always("reason", "bounce", "bounce, complaint, unsubscribe or manual."),
  maybe("origin", "string", "The message or the person it comes from.", "email"),
  timestamp,
]

export const peopleFields: Record<string, Shown[]> = { user, subscriber, suppression }

export const peopleExamples: Record<string, Record<string, unknown>> = {
  "user.login": { metadata: { ...where, provider: "password" } },
  "user.created": { metadata: { ...where, provider: "password" } },
  "user.mfa_enabled": { metadata: { ...where, mfa_method: "totp" } },
  "user.mfa_disabled": { metadata: { ...where, mfa_method: "totp" } },
  "user.session_revoked": { metadata: { ...where, reason: "token_reuse" } },
  "user.impersonated": {
    metadata: { ...where, actor_id: `${EXAMPLE_ID}10`, reason: "A question to support." },
  },
  "subscriber.resubscribed": { reason: "page" },
  "suppression.deleted": { reason: "manual" },
}
