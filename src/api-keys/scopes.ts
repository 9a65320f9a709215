/** Every scope a key may hold (contract 00, section 5), and `*` for all of them. */
export const SCOPES = [
  "email:send",
  "email:read",
  "push:send",
  "push:read",
  "push:write",
  "sms:send",
  "sms:read",
  "sms:write",
  "inbox:send",
  "inbox:read",
  "domains:read",
  "domains:write",
  "api_keys:read",
  "api_keys:write",
  "templates:read",
  "templates:write",
  "webhooks:read",
  "webhooks:write",
  "subscribers:read",
  "subscribers:write",
  "topics:read",
  "topics:write",
  "topics:publish",
  "suppressions:read",
  "suppressions:write",
  "workflows:read",
  "workflows:write",
  "workflows:trigger",
  "broadcasts:read",
  "broadcasts:write",
  "broadcasts:send",
  "inbound:read",
  "inbound:write",
  "auth:read",
  "auth:write",
  "providers:read",
  "settings:read",
  "settings:write",
  "usage:read",
  "ai:use",
  "*",
] as const

export const isScope = (text: string) => (SCOPES as readonly string[]).includes(text)

/**
 * Whether these scopes satisfy what a route asks for: one scope, or several joined by `|`. `*` is
 * everything that a key may do, which no role is.
 */
export const grants = (scopes: string[], required: string) =>
  required === "-" ||
  required
    .split("|")
    .some((one) => scopes.includes(one) || (scopes.includes("*") && !one.startsWith("role:")))

/** What may be handed on: nobody grants more than he has. */
export const isWithinOwn = (own: string[], wanted: string[]) =>
  own.includes("*") || wanted.every((scope) => own.includes(scope))
