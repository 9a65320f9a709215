import type { Static } from "@sinclair/typebox"
import { API_VERSION } from "../events/api-version"
import { noSuchType } from "../events/patterns"
import { isPattern } from "../events/registry"
import { checkMetadata } from "../http/metadata"
import { invalid, type Problems } from "../http/problems"
import { check } from "../http/validate"
import { parseRule } from "../lib/rule"
import { isSecret } from "../lib/signature"
import { MASK, NOTHING_STORED } from "./custom-headers"
import { checkHeaders } from "./headers"
import { NewWebhook, WebhookPatch } from "./schemas"
import type { HeaderFormat, RetryPolicy, WebhookStatus } from "./tables"

/** The schedule of the contract, 30 section 2: seconds after the attempt before. */
const DEFAULT_POLICY: RetryPolicy = {
  max_attempts: 6,
  intervals: [60, 300, 1800, 7200, 43_200, 86_400],
}

/** What an endpoint is, as its owner says it. */
export interface Wanted {
  url: string
  events: string[]
  description: string | null
  headers: Record<string, string>
  header_format: HeaderFormat
  retry_policy: RetryPolicy
  rate_limit: number | null
  filter: Record<string, unknown> | null
  transform: string | null
  metadata: Record<string, unknown>
  version: string
}

export type NewEndpoint = Wanted & { secret: string | undefined }

/** What is absent stays as it is. */
export type Changes = Partial<Wanted> & {
  enabled?: boolean
  /** As the sender believes it to be. */
  status?: unknown
}

/** Names of other services for types of ours. */
const OTHER_NAMES: Record<string, string> = { "email.delivery_delayed": "email.soft_bounced" }

/** A type under our name for it. */
export const ownTypeOf = (type: string): string => OTHER_NAMES[type] ?? type

const typesOf = (events: string[]) => [...new Set(events.map(ownTypeOf))]

/** Reads a new endpoint. Whether its address may be called, and its transform, is asked later. */
export function readWebhook(body: unknown, problems: Problems): NewEndpoint {
  check(NewWebhook, body, problems)
  if (problems.any) return NOTHING
  const given = body as Static<typeof NewWebhook>
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
    ...wantedOf(given),
    url: given.url,
    events: typesOf(given.events),
    secret: given.secret,
  }
}

/** Reads changes. The secret is not among them: it rotates. */
export function readPatch(body: unknown, problems: Problems): Changes {
  check(WebhookPatch, body, problems)
  if (problems.any) return {}
  const given = body as Static<typeof WebhookPatch>
  checkFields(given, problems)
  if ("secret" in given) {
    problems.add(
      "secret",
      "unchangeable",
      "You cannot set the secret here. Use POST /v1/webhooks/{webhook_id}/rotate-secret.",
    )
  }
  return {
    ...wantedOf(given),
    ...(given.enabled !== undefined && { enabled: given.enabled }),
    ...(given.status !== undefined && { status: given.status }),
  }
}

const isOtherStatus = (given: unknown, stored: WebhookStatus) =>
  given !== undefined && given !== null && given !== stored

const WRITE_ENABLED =
  "You cannot set the status. Set `enabled`: false pauses the endpoint, true activates it."

/** A record may be sent back as it was read, but no other status. Throws 422. */
export function refuseOtherStatus(given: unknown, stored: WebhookStatus) {
  if (isOtherStatus(given, stored)) throw invalid("status", "not_available", WRITE_ENABLED)
}

type Given = Static<typeof WebhookPatch>

/** What a schema cannot say. */
function checkFields(given: Given, problems: Problems) {
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

/** What a database cannot keep as it is. */
function refuseBroken({ description, transform }: Given, problems: Problems) {
  for (const [name, text] of Object.entries({ description, transform })) {
    if (text?.includes("\0") || text?.isWellFormed() === false) {
      problems.add(name, "invalid", "The text must not contain NUL or half of a surrogate pair.")
    }
  }
}

/** Unknown fields are ignored, so they are not stored either. */
function policyOf({ max_attempts, intervals }: Partial<RetryPolicy>): RetryPolicy {
  return {
    max_attempts: max_attempts ?? DEFAULT_POLICY.max_attempts,
    intervals: intervals ?? DEFAULT_POLICY.intervals,
  }
}

function wantedOf({ enabled: _, retry_policy, ...given }: Given): Partial<Wanted> {
  const policy = retry_policy && policyOf(retry_policy)
  const known = Object.entries(given).filter(
    ([name, value]) => Object.hasOwn(EMPTY, name) && value !== undefined,
  )
  return {
    ...(Object.fromEntries(known) as Partial<Wanted>),
    ...(given.events && { events: typesOf(given.events) }),
    ...(policy && { retry_policy: policy }),
  }
}

const EMPTY: Wanted = {
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

const NOTHING: NewEndpoint = { ...EMPTY, secret: undefined }
