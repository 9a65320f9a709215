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
  maybe(
    "user.email",
    "string",
    "The user's email address. Null if there is none.",
    "ann@example.com",
  ),
  always("metadata", where, "Those of the fields below that apply. The others are absent."),
  maybe("metadata.provider", "string", "The method of the sign-in."),
  maybe("metadata.ip_address", "string", "The IP address of the request."),
  maybe("metadata.session_id", "string", "The id of the session."),
  maybe("metadata.mfa_method", "string", "`totp`, `sms`, `email` or a recovery code."),
  maybe("metadata.environment", "string", "`live` or `test`."),
  maybe("metadata.organization_id", "string", "The active organization."),
  maybe("metadata.actor_id", "string", "The person that acted, if it was not the user."),
  maybe("metadata.reason", "string", "The reason of the event."),
]

const subscriber: Shown[] = [
  maybe(
    "subscriber_id",
    "string",
    "The id of the subscriber. Null if it is not known.",
    `${EXAMPLE_ID}05`,
  ),
  maybe("external_id", "string", "The subscriber's id in your own system.", "user-42"),
  always("channel", "email", "`email`, `push`, `sms` or `in_app`."),
  always(
    "scope",
    { type: "category", key: "newsletter" },
    "The messages that the change is about.",
  ),
  always("scope.type", "category", "`all`, `category` or `topic`."),
  maybe("scope.key", "string", "The key of the category or topic. Null for `all`.", "newsletter"),
  maybe(
    "reason",
    "string",
    "The way of the change: page, one click, API, STOP or START.",
    "one_click",
  ),
  timestamp,
]

const suppression: Shown[] = [
  always("id", `${EXAMPLE_ID}09`, "The id of the entry in the suppression list."),
  always("channel", "email", "`email` or `sms`."),
  always("address", "ann@example.com", "The address that gets no more messages."),
  always("reason", "bounce", "`bounce`, `complaint`, `unsubscribe` or `manual`."),
  maybe("origin", "string", "The message or the person that caused the entry.", "email"),
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
