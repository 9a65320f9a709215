import type { Static } from "@sinclair/typebox"
import { fail, invalid, type Problems } from "../core/errors"
import { type AddressPolicy, assertPublic, NetError } from "../core/net"
import { API_VERSION, isPattern, noSuchType } from "../events/registry"
import { checkMetadata } from "../http/field-schemas"
import { parseRule } from "../lib/filter-rule"
import { isSecret } from "../lib/signature"
import { MASK, NOTHING_STORED } from "./receiver"
import {
  type EndpointFieldsInput,
  MOST_HEADERS,
  type NewWebhook,
  type WebhookPatch,
} from "./schemas"
import type { RetryPolicy, WebhookStatus } from "./tables"

/** The schedule of the contract, 30 section 2: seconds after the attempt before. */
const DEFAULT_POLICY: RetryPolicy = {
  max_attempts: 6,
  intervals: [60, 300, 1800, 7200, 43_200, 86_400],
}

type EndpointFields = Omit<Static<typeof EndpointFieldsInput>, "retry_policy"> & {
  retry_policy: RetryPolicy
}

export type NewEndpoint = EndpointFields & { secret: string | undefined }

export type EndpointChanges = Partial<EndpointFields> & {
  enabled?: boolean
  /** As the sender believes it to be. */
  status?: unknown
}

/** Names that other services give to our event types. */
const OTHER_NAMES: Record<string, string> = { "email.delivery_delayed": "email.soft_bounced" }

export const ownTypeOf = (type: string): string => OTHER_NAMES[type] ?? type

const typesOf = (events: string[]) => [...new Set(events.map(ownTypeOf))]

/** Reads a new endpoint. The address of its URL and its transform are checked later. */
export function readWebhook(given: Static<typeof NewWebhook>, problems: Problems): NewEndpoint {
  checkFields(given, problems)
  for (const [name, value] of Object.entries(given.headers ?? {})) {
    if (value === MASK) problems.add(`headers.${name}`, "invalid", NOTHING_STORED)
  }
  if (isOtherStatus(given.status, "active")) problems.add("status", "not_available", WRITE_ENABLED)
  if (given.secret !== undefined && !isSecret(given.secret)) {
    const text =
      "The secret must be `whsec_` and the base64 of 24 to 64 bytes. Leave it out to get a new one."
    problems.add("secret", "invalid", text)
  }
  return {
    ...EMPTY,
    ...fieldsOf(given),
    url: given.url,
    events: typesOf(given.events),
    secret: given.secret,
  }
}

/** Reads changes of an endpoint. The secret is not among them: it rotates. */
export function readPatch(given: Static<typeof WebhookPatch>, problems: Problems): EndpointChanges {
  checkFields(given, problems)
  if ("secret" in given) {
    problems.add(
      "secret",
      "unchangeable",
      "You cannot set the secret here. Use POST /v1/webhooks/{webhook_id}/rotate-secret.",
    )
  }
  return {
    ...fieldsOf(given),
    ...(given.enabled !== undefined && { enabled: given.enabled }),
    ...(given.status !== undefined && { status: given.status }),
  }
}

const isOtherStatus = (given: unknown, stored: WebhookStatus) =>
  given !== undefined && given !== null && given !== stored

const WRITE_ENABLED =
  "You cannot set the status. Set `enabled`: false pauses the endpoint, true activates it."

/** A record may be sent back as it was read, but not with another status. Throws 422. */
export function refuseOtherStatus(given: unknown, stored: WebhookStatus) {
  if (isOtherStatus(given, stored)) throw invalid("status", "not_available", WRITE_ENABLED)
}

type FieldsInput = Static<typeof WebhookPatch>

function checkFields(given: FieldsInput, problems: Problems) {
  for (const [at, pattern] of (given.events ?? []).entries()) {
    if (isPattern(ownTypeOf(pattern))) continue
    problems.add(`events.${at}`, "unknown_type", noSuchType(pattern))
  }
  refuseBroken(given, problems)
  if (given.headers) checkHeaders(given.headers, problems)
  if (given.metadata) checkMetadata(given.metadata, problems)
  const rule = given.filter ? parseRule(given.filter) : undefined
  if (rule && "problem" in rule) {
    const { path, message } = rule.problem
    problems.add(path ? `filter.${path}` : "filter", "invalid", message)
  }
}

/** Refuses text that a database cannot keep unchanged. */
function refuseBroken({ description, transform }: FieldsInput, problems: Problems) {
  for (const [name, text] of Object.entries({ description, transform })) {
    if (text?.includes("\0") || text?.isWellFormed() === false) {
      problems.add(name, "invalid", "The text must not contain NUL or half of a surrogate pair.")
    }
  }
}

/** Unknown fields are ignored, so they are not stored either. */
function fieldsOf({ retry_policy, ...given }: FieldsInput): Partial<EndpointFields> {
  const own = Object.entries(given).filter(
    ([name, value]) => Object.hasOwn(EMPTY, name) && value !== undefined,
  )
  const { max_attempts = DEFAULT_POLICY.max_attempts, intervals = DEFAULT_POLICY.intervals } =
    retry_policy ?? {}
  return {
    ...(Object.fromEntries(own) as Partial<EndpointFields>),
    ...(given.events && { events: typesOf(given.events) }),
    ...(retry_policy && { retry_policy: { max_attempts, intervals } }),
  }
}

const EMPTY: EndpointFields = {
  url: "",
  events: [],
  description: null,
  headers: {},
  header_format: "standard",
  retry_policy: DEFAULT_POLICY,
  rate_limit: null,
  filter: null,
  transform: null,
  metadata: {},
  version: API_VERSION,
}

const LONGEST_NAME = 64
const LONGEST_VALUE = 1024

/** A field name of RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** A value that every reader takes for the same text. */
const VISIBLE = /^[\x20-\x7e]*$/

/** Headers that the delivery itself writes, and those that change how the connection works. */
const PROTECTED =
  /^(host|content-.*|transfer-encoding|connection|keep-alive|proxy-.*|te|trailer|upgrade|expect|webhook-.*|x-svc-.*)$/i

const TOO_MANY = `An endpoint can have at most ${MOST_HEADERS} custom headers.`
const BAD_NAME = `A header name must be 1 to ${LONGEST_NAME} letters, digits and hyphens.`
const BAD_VALUE = `The value must be one line of at most ${LONGEST_VALUE} visible ASCII characters.`
const OURS = "Belfry writes this header itself. Leave it out."
const TWICE = "This header is given twice. Upper and lower case make no difference."

function checkHeaders(headers: Record<string, string>, problems: Problems): void {
  const entries = Object.entries(headers)
  if (entries.length > MOST_HEADERS) {
    problems.add("headers", "too_many", TOO_MANY)
    return
  }
  const seen = new Set<string>()
  for (const [name, value] of entries) {
    if (name.length > LONGEST_NAME || !TOKEN.test(name)) {
      problems.add("headers", "invalid", BAD_NAME)
      continue
    }
    const path = `headers.${name}`
    const is_value = value.length <= LONGEST_VALUE && VISIBLE.test(value)
    if (PROTECTED.test(name)) problems.add(path, "protected", OURS)
    if (seen.has(name.toLowerCase())) problems.add(path, "duplicate", TWICE)
    if (!is_value) problems.add(path, "invalid", BAD_VALUE)
    seen.add(name.toLowerCase())
  }
}

const LONGEST_URL = 2048
const NAMES_MS = 3000

export interface EndpointUrlRules extends AddressPolicy {
  /** False where the operator takes plain http, too. */
  require_https: boolean
}

type Reason = "malformed" | "https_required" | "userinfo" | "port" | "blocked_address"

/**
 * Whether the host has an address now. Refuses a URL that is not http(s), that holds a user name,
 * whose port is not 443 or at least 1024, or whose address is not public, not on the operator's list,
 * or one of our own listeners: `invalid_url`, with `field` and `reason`. A name without an address
 * passes, because its addresses are checked again before each attempt.
 */
export async function assertPublicUrl(url: string, rules: EndpointUrlRules): Promise<boolean> {
  assertForm(url, rules)
  try {
    await assertPublic(url, rules, AbortSignal.timeout(NAMES_MS))
    return true
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.kind === "invalid_url")
      refuse("malformed", "The URL is not valid. Give an absolute https:// URL.")
    if (error.kind === "blocked_address") {
      refuse(
        "blocked_address",
        "The URL leads to an address that is not public. Use a public host, or ask the operator to allow it.",
      )
    }
    return false
  }
}

/** The checks of `assertPublicUrl` that need no DNS. */
export function assertForm(
  url: string,
  { require_https }: Pick<EndpointUrlRules, "require_https">,
): void {
  // The parser removes line breaks and spaces, but the stored URL would still hold them.
  const written = url.length <= LONGEST_URL && !/[\s\p{C}]/u.test(url)
  const parsed = written && URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    refuse(
      "malformed",
      `The URL must be an absolute https:// URL of at most ${LONGEST_URL} characters.`,
    )
  }
  if (parsed.username || parsed.password || EMPTY_USERINFO.test(url)) {
    refuse("userinfo", "The URL must not hold a user name or a password.")
  }
  if (require_https && parsed.protocol !== "https:") {
    refuse("https_required", "The URL must begin with https://.")
  }
  const port = Number(parsed.port || (parsed.protocol === "https:" ? 443 : 80))
  if (port < 1024 && port !== 443) refuse("port", "The port must be 443, 8443 or at least 1024.")
}

/** `https://@host/` has no user name for this parser. A person or another parser may see one. */
const EMPTY_USERINFO = /^https?:[\\/]*[^\\/?#]*@/i

function refuse(reason: Reason, message: string): never {
  fail("invalid_url", message, { field: "url", reason })
}
