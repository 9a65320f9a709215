import { createPublicKey } from "node:crypto"
import type { Static } from "@sinclair/typebox"
import { addressFor, destinationOf, isAllowed, NetError } from "../core/destination"
import { invalid, type Problems } from "../core/errors"
import { checkMetadata } from "../http/field-schemas"
import { type Caller, isBrowserCaller } from "../identity/caller"
import { reservedProblem } from "../lib/reserved-names"
import type * as schemas from "./schemas"
import type { DeviceRow, Platform, PushProvider, SubscriptionKeys } from "./tables"

/** How a provider knows a device. Of Web Push the token is the endpoint. */
export interface DeviceToken {
  provider: PushProvider
  token: string
  keys: SubscriptionKeys | null
}

type Described = "device_name" | "app_id" | "app_version" | "os_version" | "locale" | "timezone"

/** What is absent stays as it is. */
type DeviceFields = Partial<Pick<DeviceRow, Described | "metadata" | "apns_environment">>

export interface NewDevice extends DeviceToken {
  device_id: string | undefined
  user_id: string | undefined
  platform: Platform
  fields: DeviceFields
}

export interface DeviceChanges {
  /** Which provider it belongs to, only the device knows. */
  token: string | undefined
  subscription: Omit<DeviceToken, "provider"> | undefined
  enabled: boolean | undefined
  fields: DeviceFields
}

const PROVIDER_OF: Record<Platform, PushProvider> = {
  ios: "apns",
  macos: "apns",
  android: "fcm",
  web: "webpush",
}

/** Reads a device. Whose it is, its caller says. */
export function readDevice(
  given: Static<typeof schemas.DeviceInput>,
  problems: Problems,
): NewDevice {
  const { device_id, user_id, platform, token, subscription, ...rest } = given
  const { provider = PROVIDER_OF[platform], ...fields } = rest
  const reserved = reservedProblem(device_id ?? "")
  if (reserved !== undefined) problems.add("device_id", "reserved", reserved)
  if (fields.metadata) checkMetadata(fields.metadata, problems)
  if (fields.apns_environment && provider !== "apns") {
    problems.add("apns_environment", "invalid", "Only devices of apns have this field.")
  }
  const read = subscription && readSubscription(subscription, problems)
  const known = requireToken({ provider, token, subscription: read }, problems)
  return { device_id, user_id, platform, ...known, fields: defined(fields) }
}

/** A key has to say whose device it registers. Throws 422. */
export function requireUser({ kind }: Pick<Caller, "kind">, { user_id }: NewDevice): void {
  if (isBrowserCaller(kind) || user_id !== undefined) return
  throw invalid("user_id", "required", "The field is required.")
}

export function readDeviceChange(
  given: Static<typeof schemas.DeviceChange>,
  problems: Problems,
): DeviceChanges {
  const { token, subscription, enabled, ...fields } = given
  if (fields.metadata) checkMetadata(fields.metadata, problems)
  const read = subscription && readSubscription(subscription, problems)
  return { token, subscription: read, enabled, fields: defined(fields) }
}

interface GivenToken {
  provider: PushProvider
  token: string | undefined
  subscription: Omit<DeviceToken, "provider"> | undefined
}

/** Web Push has a subscription, and the others have a token. */
export function requireToken(
  { provider, token, subscription }: GivenToken,
  problems: Problems,
): DeviceToken {
  const [wanted, other] =
    provider === "webpush"
      ? (["subscription", "token"] as const)
      : (["token", "subscription"] as const)
  const given = { token: token === undefined ? undefined : { token, keys: null }, subscription }
  if (given[other]) {
    problems.add(other, "invalid", `A device of ${provider} has a ${wanted} instead.`)
  }
  const found = given[wanted]
  if (!found) problems.add(wanted, "required", `A device of ${provider} needs a ${wanted}.`)
  return { provider, ...(found ?? { token: "", keys: null }) }
}

const POINT_BYTES = 65
const AUTH_BYTES = 16

function readSubscription(
  { endpoint, keys }: NonNullable<Static<typeof schemas.DeviceInput>["subscription"]>,
  problems: Problems,
): Omit<DeviceToken, "provider"> {
  if (!isEndpoint(endpoint)) {
    const text = "The endpoint must be an absolute https URL without a user name."
    problems.add("subscription.endpoint", "invalid_url", text)
  }
  const [p256dh, auth] = [bytesOf(keys.p256dh), bytesOf(keys.auth)]
  if (!p256dh || !isPoint(p256dh)) {
    const text = "The value must be an uncompressed point of P-256, 65 bytes in base64url."
    problems.add("subscription.keys.p256dh", "invalid", text)
  }
  if (auth?.length !== AUTH_BYTES) {
    const text = "The value must be 16 bytes in base64url."
    problems.add("subscription.keys.auth", "invalid", text)
  }
  const shown = (bytes: Buffer | undefined) => bytes?.toString("base64url") ?? ""
  return { token: endpoint, keys: { p256dh: shown(p256dh), auth: shown(auth) } }
}

/** The parser removes line breaks and spaces, but the stored URL would still hold them. */
function isEndpoint(text: string): boolean {
  const url = /[\s\p{C}]/u.test(text) ? null : URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password
}

const bytesOf = (text: string): Buffer | undefined =>
  /^[\w-]+={0,2}$/.test(text) ? Buffer.from(text, "base64url") : undefined

function isPoint(bytes: Buffer): boolean {
  if (bytes.length !== POINT_BYTES || bytes[0] !== 4) return false
  const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33)].map((one) => one.toString("base64url"))
  try {
    createPublicKey({ key: { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "" }, format: "jwk" })
    return true
  } catch {
    return false
  }
}

/** What one request waits for the name servers at most. */
const NAMES_MS = 3000

/** Throws 422 `invalid_url` for an endpoint with a problem. */
export async function requirePublic(endpoint: string, allow_private: readonly string[]) {
  const signal = AbortSignal.timeout(NAMES_MS)
  const problem = await endpointProblem(endpoint, allow_private, signal)
  if (problem !== undefined) throw badEndpoint(problem)
}

/** `place` is where the device is in the body; it ends with a dot. */
export const badEndpoint = (problem: string, place = "") =>
  invalid(`${place}subscription.endpoint`, "invalid_url", problem)

/**
 * What is wrong with an endpoint that is not https, or not public, where the operator does not allow its host. A name
 * without an address passes: each send checks it again.
 */
export async function endpointProblem(
  endpoint: string,
  allow_private: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const place = destinationOf(endpoint)
  let address = ""
  try {
    address = await addressFor(place, { allow_private }, signal)
  } catch (error) {
    if (error instanceof NetError && error.kind === "blocked_address") return NOT_PUBLIC
  }
  if (place.protocol === "https:" || isAllowed(place.host, address, allow_private)) return undefined
  return "The endpoint must begin with https://."
}

const NOT_PUBLIC =
  "The endpoint leads to an address that is not public. An operator can allow it in providers.allow_private."

const defined = <Fields extends object>(fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
