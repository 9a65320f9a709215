import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Type as t } from "@sinclair/typebox"
import { SignJWT } from "jose"
import type { Settings } from "../../core/config"
import { retryAfterSeconds } from "../../core/net"
import { isoFrom, millis } from "../../core/time"
import { oneOf } from "../../http/field-schemas"
import type { ProviderDescriptor } from "../../providers/provider"
import { oncePer } from "../../store/cached"
import { type BuiltFrom, dataOf } from "../push-content"
import { overridden, present } from "./overrides"
import {
  type OutgoingPush,
  type PushAnswer,
  type PushContext,
  type PushMeaning,
  type PushSender,
  pushOutcome,
  pushSchedule,
} from "./provider"
import { asked, checked, KeptToken, NoTokenError, PrivateKey, privateKey } from "./vendor"

const ENVIRONMENTS = ["production", "sandbox"] as const

export interface ApnsAccess {
  key_id: string
  team_id: string
  bundle_id: string
  private_key: string
  apns_environment: (typeof ENVIRONMENTS)[number]
}

const AppleId = t.String({ pattern: "^[A-Z0-9]{10}$" })

export const apnsProvider: ProviderDescriptor<ApnsAccess, PushContext, OutgoingPush> = {
  name: "apns",
  channel: "push",
  about: "Apple Push Notification service",
  reports: "`sent` when Apple takes it, then `delivered` when the device acknowledges it",
  example:
    "--key-id ABC123DEFG --team-id DEF123GHIJ --bundle-id com.example.app --private-key @AuthKey.p8",
  credentials: {
    key_id: { schema: AppleId, about: "id of the key for APNs" },
    team_id: { schema: AppleId, about: "id of the team in the developer account" },
    bundle_id: {
      schema: t.String({ pattern: "^[A-Za-z0-9.-]{1,155}$" }),
      about: "bundle id of the app: the topic of devices that name no other app",
    },
    private_key: {
      schema: PrivateKey,
      about: "key for APNs: the content of the .p8 file",
      value: "pem",
      secret: true,
    },
    apns_environment: {
      schema: oneOf(...ENVIRONMENTS),
      about: "production or sandbox, for devices that name none",
      fallback: "production",
    },
  },
  validate: ({ private_key }) =>
    privateKey(private_key, "ec") ? undefined : { field: "private_key", ...NO_KEY },
  open: apns,
}

const NO_KEY = { code: "invalid", message: "It is not an EC private key in PEM, on P-256." }

/** Apple takes a token for an hour, and no newer one more often than every 20 minutes. */
const TOKEN_MS = 50 * 60_000

/** How the server of APNs is reached, by the settings; the file is read once. Throws where it cannot be. */
const apnsServer = oncePer((settings: Settings) => {
  const { "providers.apns.endpoint": endpoint, "providers.apns.ca": file } = settings
  return { endpoint, ...(file !== null && { ca: readFileSync(file, "utf8") }) }
})

const HOSTS = {
  production: "https://api.push.apple.com",
  sandbox: "https://api.sandbox.push.apple.com",
}

/** Sets of connections that take turns after a timeout. */
const MOST_TURNS = 8

function apns(access: ApnsAccess, { settings }: PushContext): PushSender {
  const { endpoint, ca } = apnsServer(settings)
  // The operator names the address, so it may be a private one. The list is read once, if it stays the same one.
  const allow_private = endpoint === null ? [] : [new URL(endpoint).hostname]
  const token = new KeptToken(() => signed(access))
  const keys = keysWord(access)
  let turn = 0

  const post = (push: ApnsRequest) => {
    const url = endpoint ?? HOSTS[environmentOf(push, access)]
    const ask = async (signature: string) => {
      const mine = turn
      const answer = await asked(
        {
          url: `${url}/3/device/${encodeURIComponent(push.device.token)}`,
          method: "POST",
          headers: { ...headersFor(push, access), authorization: `bearer ${signature}` },
          body: JSON.stringify(push.payload),
          allow_private,
          ca,
          http2: `${keys} ${turn}`,
        },
        ({ status, headers }, body) => readAnswer({ status, headers, body }, push, access),
      )
      // A connection that went silent stays open for long, and would take what comes next.
      if (answer.meaning === "unreachable" && mine === turn) turn = (turn + 1) % MOST_TURNS
      return answer
    }
    return token.use(ask, ({ provider_code }) => provider_code === "ExpiredProviderToken")
  }

  return {
    name: "apns",
    schedule: pushSchedule,
    send: async (push) =>
      pushOutcome("apns", push, await post({ ...push, payload: payloadOf(push) })),
    check: () => checked("apns", post(PROBE).then(readProbe)),
    close: async () => {},
  }
}

/**
 * Apple wants the keys of one team alone on a connection. A project that only knows the ids of
 * another one's key does not get onto its connections.
 */
const keysWord = ({ team_id, key_id, private_key }: ApnsAccess): string =>
  createHash("sha256").update(`${team_id} ${key_id} ${private_key}`).digest("base64url")

async function signed({ key_id, team_id, private_key }: ApnsAccess) {
  const key = privateKey(private_key, "ec")
  if (!key)
    throw new NoTokenError({ meaning: "credentials", said: "The private key is not valid." })
  const jwt = new SignJWT().setProtectedHeader({ alg: "ES256", kid: key_id }).setIssuer(team_id)
  const text = await jwt.setIssuedAt(Math.floor(millis() / 1000)).sign(key)
  return { text, lifetime_ms: TOKEN_MS }
}

type ApnsRequest = Pick<OutgoingPush, "device" | "ttl_seconds" | "content"> & {
  message_id?: string
  payload: ApnsPayload
}

type ApnsPayload = Record<string, unknown> & { aps?: Record<string, unknown> }

/** A token that no device has: Apple looks at it only after the login. */
const PROBE: ApnsRequest = {
  device: { token: "0".repeat(64), keys: null, app_id: null, apns_environment: null },
  ttl_seconds: 0,
  content: { priority: "normal" },
  payload: { aps: { "content-available": 1 } },
}

const readProbe = (answer: PushAnswer): PushAnswer =>
  answer.meaning === "invalid_token"
    ? { meaning: "sent", said: "APNs accepts the credentials." }
    : answer

const environmentOf = ({ device }: ApnsRequest, access: ApnsAccess) =>
  device.apns_environment ?? access.apns_environment

function headersFor(push: ApnsRequest, { bundle_id }: ApnsAccess): Record<string, string> {
  const { device, content, ttl_seconds, message_id, payload } = push
  const is_background = isBackground(payload)
  const is_soon = content.priority === "high" && !is_background
  return {
    "apns-topic": headerText(device.app_id ?? bundle_id),
    "apns-push-type": is_background ? "background" : "alert",
    "apns-priority": is_soon ? "10" : "5",
    "apns-expiration": String(ttl_seconds && Math.floor(millis() / 1000) + ttl_seconds),
    ...(message_id !== undefined && { "apns-id": message_id }),
    ...(content.collapse_id !== undefined && {
      "apns-collapse-id": headerText(content.collapse_id),
    }),
  }
}

/** Apple delays, or refuses, what shows nothing and says that it does. */
const isBackground = ({ aps }: ApnsPayload): boolean =>
  !["alert", "badge", "sound"].some((name) => aps?.[name] !== undefined)

/** What no header can carry has a name of its own. */
export const headerText = (text: string): string =>
  /^[!-~]+$/.test(text) ? text : createHash("sha256").update(text).digest("base64url")

/** The body of the request. */
export const apnsPayload = (built: BuiltFrom): string => JSON.stringify(payloadOf(built))

/** "Generating a remote notification" of Apple, with all that the app may want to know. */
function payloadOf(built: BuiltFrom): ApnsPayload {
  const { content, badge } = built
  const { title, body, sound, image_url, url, action_buttons, content_available } = content
  const is_shown = title !== undefined || body !== undefined
  const aps = present({
    alert: is_shown ? present({ title, body }) : undefined,
    badge: badge ?? undefined,
    sound,
    "content-available": content_available && 1,
    // An extension of the app loads the image.
    "mutable-content": image_url === undefined ? undefined : 1,
  })
  const own = present({ url, image_url, action_buttons })
  return overridden({ ...own, ...dataOf(built), aps }, content.apns)
}

/** Reasons that say something else than their status does. */
const REASONS: ReadonlyMap<string, PushMeaning> = new Map([
  ["BadDeviceToken", "invalid_token"],
  ["DeviceTokenNotForTopic", "invalid_token"],
  ["IdleTimeout", "outage"],
  // To this one device.
  ["TooManyRequests", "busy"],
])

const meaningOf = (status: number): PushMeaning => {
  if (status === 403) return "credentials"
  if (status === 410) return "unregistered"
  if (status === 413) return "payload_too_large"
  if (status === 429) return "throttled"
  return status >= 400 && status < 500 ? "refused" : "outage"
}

interface ApnsAnswer {
  status: number
  headers: Headers
  body: Record<string, unknown>
}

/** By the table "Handling notification responses from APNs" of Apple. */
function readAnswer(
  { status, headers, body: { reason, timestamp } }: ApnsAnswer,
  push: ApnsRequest,
  access: ApnsAccess,
): PushAnswer {
  const id = headers.get("apns-id")
  if (status === 200)
    return { meaning: "sent", said: "200", ...(id !== null && { provider_message_id: id }) }
  const word = typeof reason === "string" ? reason : undefined
  const meaning = REASONS.get(word ?? "") ?? meaningOf(status)
  // A key may be for one environment: then a device of the other one says nothing about the rest.
  const is_elsewhere = environmentOf(push, access) !== access.apns_environment
  const is_foreign = word === "BadEnvironmentKeyIdInToken" && is_elsewhere
  return {
    meaning: is_foreign ? "other_sender" : meaning,
    said: `APNs answered ${status}: ${word ?? "no reason was given"}`,
    provider_code: word ?? String(status),
    retry_after: retryAfterSeconds(headers) ?? undefined,
    ...(meaning === "unregistered" && isMoment(timestamp) && { gone_since: isoFrom(timestamp) }),
  }
}

/** In epoch milliseconds. */
const isMoment = (value: unknown): value is number =>
  typeof value === "number" && value > 0 && value < 8.64e15
