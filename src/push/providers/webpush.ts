import { createECDH, createHash, generateKeyPairSync } from "node:crypto"
import { Type as t } from "@sinclair/typebox"
import { type NetAnswer, NetError, request, retryAfterSeconds } from "../../core/net"
import { millis } from "../../core/time"
import { type ProviderDescriptor, ProviderError } from "../../providers/provider"
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
import { encryptPush } from "./webpush/encryption"

export interface WebPushAccess {
  subject: string
  /** Absent where the project gave none: `complete` makes them. */
  vapid_public_key?: string
  vapid_private_key?: string
}

type KeyPair = Required<Pick<WebPushAccess, "vapid_public_key" | "vapid_private_key">>

const base64url = (characters: number) =>
  t.Optional(t.String({ pattern: `^[A-Za-z0-9_-]{${characters}}$` }))

export const webpushProvider: ProviderDescriptor<WebPushAccess, PushContext, OutgoingPush> = {
  name: "webpush",
  channel: "push",
  about: "Web Push",
  reports: "`sent`; the service worker reports `delivered`",
  example: "--subject mailto:ops@example.com",
  credentials: {
    subject: {
      schema: t.String({ maxLength: 300, pattern: "^(mailto:[^\\s@]+@[^\\s@]+|https://[^\\s]+)$" }),
      about: "contact that push services get: mailto:ops@example.com, or an https address",
      value: "text",
    },
    vapid_public_key: {
      schema: base64url(87),
      about: "public key of your own VAPID pair (P-256), in base64url",
      value: "key",
    },
    vapid_private_key: {
      schema: base64url(43),
      about: "private key of that pair; without both, Belfry makes a pair and keeps it",
      value: "key",
      secret: true,
    },
  },
  validate({ vapid_public_key: shown, vapid_private_key: hidden }) {
    const faultOf = (which: string, message: string) => ({
      ...{ field: `vapid_${which}_key`, code: "invalid", message },
    })
    if ((shown === undefined) !== (hidden === undefined))
      return faultOf(shown === undefined ? "public" : "private", "Give both keys, or none.")
    if (shown === undefined || hidden === undefined) return undefined
    return shown === publicKeyOf(hidden)
      ? undefined
      : faultOf("private", "It is not the private key of this public key.")
  },
  // Browsers subscribe with the public key: another one would lose every device.
  complete: (given, before) => ({ ...given, ...pairOf({ ...before, ...given }) }),
  open: sender,
}

/** The key pair in the credentials, or a new one where they have none. */
function pairOf({ vapid_public_key, vapid_private_key }: Partial<WebPushAccess>): KeyPair {
  if (vapid_public_key !== undefined && vapid_private_key !== undefined)
    return { vapid_public_key, vapid_private_key }
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { d = "" } = privateKey.export({ format: "jwk" })
  return { vapid_private_key: d, vapid_public_key: publicKeyOf(d) ?? "" }
}

/** Undefined for a number that is no key. */
function publicKeyOf(private_key: string): string | undefined {
  const curve = createECDH("prime256v1")
  try {
    curve.setPrivateKey(Buffer.from(private_key, "base64url"))
    return curve.getPublicKey("base64url")
  } catch {
    return undefined
  }
}

/** In milliseconds, for everything together. */
const TIMEOUT_MS = 15_000
const CAPTURE_BYTES = 4096

function sender(access: WebPushAccess, context: PushContext): PushSender {
  const tokens = new VapidTokens(access)
  return {
    name: "webpush",
    schedule: pushSchedule,
    async send(push) {
      const answer = await handOver(push, tokens, context)
      return pushOutcome("webpush", push, answer)
    },
    async check() {
      const token = await tokens.of("https://push.example")
      if (token === undefined) throw new ProviderError("authentication", CANNOT_SIGN)
      return "The key pair signs. Each push service answers only for its own devices: test again with a device."
    },
    close: async () => {},
  }
}

const CANNOT_SIGN = "The stored VAPID keys cannot sign. Set other keys."

async function handOver(
  push: OutgoingPush,
  tokens: VapidTokens,
  { allow_private, resolver }: PushContext,
): Promise<PushAnswer> {
  const { token: url, keys } = push.device
  const [origin, body] = await Promise.all([originOf(url), encrypted(push, keys)])
  if (origin === undefined) return { meaning: "refused", said: NO_ENDPOINT }
  if (body === undefined) return { meaning: "invalid_token", said: NO_KEYS }
  const authorization = await tokens.of(origin)
  if (authorization === undefined) return { meaning: "credentials", said: CANNOT_SIGN }
  const limits = { timeout_ms: TIMEOUT_MS, capture_bytes: CAPTURE_BYTES }
  const headers = { ...headersOf(push), authorization }
  const from = { url, allow_private, resolver, tls_outside: true }
  try {
    return read(await request({ ...from, ...limits, method: "POST", headers, body }))
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    const is_forbidden = error.kind === "invalid_url" || error.kind === "blocked_address"
    return { meaning: is_forbidden ? "refused" : "busy", said: error.message }
  }
}

const NO_ENDPOINT = "The endpoint of the subscription is not a valid URL."
const NO_KEYS = "The keys of the subscription are not valid."

const originOf = (url: string) => (URL.canParse(url) ? new URL(url).origin : undefined)

/** Undefined where the subscription has no keys that work. */
async function encrypted(push: OutgoingPush, keys: OutgoingPush["device"]["keys"]) {
  const plain = new TextEncoder().encode(webPushPayload(push))
  return keys ? encryptPush(plain, keys).catch(() => undefined) : undefined
}

/** RFC 8030, sections 5.2 to 5.4. */
function headersOf({ content, ttl_seconds }: OutgoingPush): Record<string, string> {
  const { priority, collapse_id } = content
  return {
    "content-encoding": "aes128gcm",
    "content-type": "application/octet-stream",
    ttl: String(ttl_seconds),
    urgency: priority,
    ...(collapse_id !== undefined && { topic: topicOf(collapse_id) }),
  }
}

const TOPIC_CHARACTERS = 32

/** A topic is short, and has other characters than an id may have. */
const topicOf = (collapse_id: string): string =>
  createHash("sha256").update(collapse_id).digest("base64url").slice(0, TOPIC_CHARACTERS)

function read({ status, headers, body }: NetAnswer): PushAnswer {
  const meaning = meaningOf(status)
  const words = new TextDecoder()
    .decode(body)
    .replace(/[\p{C}\s]+/gu, " ")
    .trim()
  const redirects = status >= 300 && status < 400
  return {
    meaning,
    // The address of the message at the service (Location) is kept nowhere: nobody asks for it again.
    said: redirects
      ? `${status}: the push service redirects, and Belfry does not follow.`
      : `${status} ${words}`.trim(),
    ...(meaning !== "sent" && { provider_code: String(status) }),
    retry_after: retryAfterSeconds(headers) ?? undefined,
  }
}

/** A refusal of our token (401, 403) is of this subscription: it was made with another public key. */
function meaningOf(status: number): PushMeaning {
  if (status >= 200 && status < 300) return "sent"
  if (status === 404 || status === 410) return "unregistered"
  if (status === 413) return "payload_too_large"
  // Every device has its own server, and its trouble is none of the others.
  return status === 429 || status >= 500 ? "busy" : "refused"
}

/** What browsers get: the form of Declarative Web Push, which the service worker reads too (contract 40). */
export function webPushPayload(built: BuiltFrom): string {
  const { content, badge } = built
  const { title, body, url, icon, image_url, collapse_id, action_buttons, content_available } =
    content
  const data = dataOf(built)
  const is_shown = title !== undefined || body !== undefined || !content_available
  const app_badge = badge ?? undefined
  const shown = present({
    ...{ title, body, navigate: url ?? "/", app_badge, icon, image: image_url },
    ...{ tag: collapse_id, renotify: collapse_id === undefined ? undefined : true },
    actions: action_buttons?.map(({ id, label, url: navigate }) =>
      present({ action: id, title: label, navigate }),
    ),
    data,
  })
  const whole = { web_push: 8030, notification: is_shown ? shown : present({ app_badge, data }) }
  return JSON.stringify(overridden(whole, content.webpush))
}

/** A token is good for 12 hours, and push services refuse one of more than 24 (RFC 8292, section 2). */
const RENEW_MS = 6 * 3600 * 1000

const MOST_ORIGINS = 1000

/** The proof of the sender, one for each push service: a signature costs more than all the rest of a message. */
class VapidTokens {
  readonly #access: WebPushAccess
  readonly #kept = new Map<string, { text: string; until: number }>()

  constructor(access: WebPushAccess) {
    this.#access = access
  }

  /** The field `Authorization`; undefined where the keys are none. */
  async of(origin: string): Promise<string | undefined> {
    const kept = this.#kept.get(origin)
    const now = millis()
    if (kept && now < kept.until) return kept.text
    const text = await signed(this.#access, origin)
    if (this.#kept.size >= MOST_ORIGINS) this.#kept.clear()
    if (text !== undefined) this.#kept.set(origin, { text, until: now + RENEW_MS })
    return text
  }
}

async function signed(access: WebPushAccess, origin: string): Promise<string | undefined> {
  const { subject, vapid_public_key = "", vapid_private_key = "" } = access
  // Loaded with the first message: it takes 15 MB.
  const { default: webPush } = await import("web-push")
  try {
    const keys = [vapid_public_key, vapid_private_key] as const
    return webPush.getVapidHeaders(origin, subject, ...keys, "aes128gcm").Authorization
  } catch {
    return undefined
  }
}
