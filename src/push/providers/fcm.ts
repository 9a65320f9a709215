import { Type as t } from "@sinclair/typebox"
import { SignJWT } from "jose"
import type { Settings } from "../../core/config"
import { type NetAnswer, retryAfterSeconds } from "../../core/net"
import { millis } from "../../core/time"
import { objectIn } from "../../lib/text"
import type { ProviderDescriptor } from "../../providers/provider"
import { type BuiltFrom, dataOf, LONGEST_TTL_SECONDS } from "../push-content"
import { headerText } from "./apns"
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

export interface FcmAccess {
  /** As Google's console gives it. Its `token_uri` may lead anywhere, so nothing reads it. */
  service_account: { client_email: string; private_key: string; project_id: string }
}

export const fcmProvider: ProviderDescriptor<FcmAccess, PushContext, OutgoingPush> = {
  name: "fcm",
  channel: "push",
  about: "Firebase Cloud Messaging",
  reports: "`sent` when Google takes it, then `delivered` when the device acknowledges it",
  example: "--service-account @service-account.json",
  credentials: {
    service_account: {
      schema: t.Object(
        {
          client_email: t.String({ pattern: "^[!-~]{1,320}$" }),
          private_key: PrivateKey,
          project_id: t.String({ pattern: "^[a-z0-9:.-]{1,100}$" }),
        },
        { maxProperties: 30 },
      ),
      about: "key file of the service account, as JSON",
      value: "json",
      secret: true,
    },
  },
  validate: ({ service_account: { private_key } }) =>
    privateKey(private_key, "rsa") ? undefined : { field: "service_account", ...NO_KEY },
  open: fcm,
}

const NO_KEY = { code: "invalid", message: "Its private_key is not an RSA key in PEM." }

function fcm(access: FcmAccess, { settings }: PushContext): PushSender {
  const endpoint = settings["providers.fcm.endpoint"]
  const allow_private = hostOf(endpoint)
  const token = new KeptToken(() => accessToken(access, settings))
  const url = `${endpoint}/v1/projects/${access.service_account.project_id}/messages:send`

  const post = (body: object) => {
    const ask = (bearer: string) =>
      asked(
        {
          ...{ url, method: "POST", allow_private, body: JSON.stringify(body) },
          headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
        },
        readAnswer,
      )
    return token.use(ask, ({ provider_code }) => provider_code === "UNAUTHENTICATED")
  }

  return {
    name: "fcm",
    schedule: pushSchedule,
    send: async (push) =>
      pushOutcome(
        "fcm",
        push,
        await post({ message: { ...messageOf(push, push.ttl_seconds), token: push.device.token } }),
      ),
    check: () => checked("fcm", post(PROBE).then(readProbe)),
    close: async () => {},
  }
}

/** The operator names the address, so it may be a private one. */
const hostOf = (url: string): string[] => [new URL(url).hostname]

/** Google validates it and sends nothing. */
const PROBE = { validate_only: true, message: { topic: "belfry-check" } }

const readProbe = (answer: PushAnswer): PushAnswer =>
  answer.meaning === "sent" ? { meaning: "sent", said: "FCM accepts the service account." } : answer

const SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
const ASSERTION_SECONDS = 3600
/** A token is replaced so long before it ends. */
const EARLY_SECONDS = 300

/** By the service account's word alone (RFC 7523). Rejects with NoTokenError. */
async function accessToken({ service_account }: FcmAccess, settings: Settings) {
  const { client_email, private_key } = service_account
  const audience = settings["providers.fcm.token_endpoint"]
  const key = privateKey(private_key, "rsa")
  if (!key)
    throw new NoTokenError({ meaning: "credentials", said: "The private key is not valid." })
  const issued = Math.floor(millis() / 1000)
  const assertion = await new SignJWT({ scope: SCOPE })
    .setProtectedHeader({ alg: "RS256", typ: "JWT" })
    .setIssuer(client_email)
    .setAudience(audience)
    .setIssuedAt(issued)
    .setExpirationTime(issued + ASSERTION_SECONDS)
    .sign(key)
  let made: { text: string; lifetime_ms: number } | undefined
  const answer = await asked(
    {
      ...{ url: audience, method: "POST", allow_private: hostOf(audience) },
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
    },
    (given, { access_token: text, expires_in, error, error_description }) => {
      if (given.status !== 200 || typeof text !== "string")
        return refusedToken(given, error_description ?? error)
      const seconds = Number(expires_in) || ASSERTION_SECONDS
      made = { text, lifetime_ms: Math.max(0, seconds - EARLY_SECONDS) * 1000 }
      return { meaning: "sent", said: null }
    },
  )
  if (!made) throw new NoTokenError(answer)
  return made
}

function refusedToken({ status, headers }: NetAnswer, words: unknown): PushAnswer {
  const is_refusal = status >= 400 && status < 500 && status !== 429
  return {
    meaning: is_refusal ? "credentials" : "outage",
    said: `Google gave no access token and answered ${status}: ${words ?? "no reason was given"}`,
    provider_code: String(status),
    retry_after: retryAfterSeconds(headers) ?? undefined,
  }
}

/** The JSON of `message` without the token of the device: what counts for the most that a payload may have. */
export const fcmPayload = (built: BuiltFrom): string =>
  JSON.stringify(messageOf(built, LONGEST_TTL_SECONDS))

/** The message of the HTTP v1 API. Devices with Apple's or a browser's service may have FCM tokens, too. */
function messageOf(built: BuiltFrom, ttl_seconds: number): Record<string, unknown> {
  const { content } = built
  const { title, body, image_url, url, action_buttons, collapse_id, fcm: overrides } = content
  const is_shown = title !== undefined || body !== undefined
  const message = {
    notification: is_shown ? present({ title, body, image: image_url }) : undefined,
    // Its values are texts.
    data: present({
      ...{ url, image_url },
      action_buttons: action_buttons && JSON.stringify(action_buttons),
      ...dataOf(built),
    }),
    android: present({
      priority: content.priority === "high" ? "HIGH" : "NORMAL",
      ttl: `${ttl_seconds}s`,
      collapse_key: collapse_id,
      notification: is_shown ? shownByAndroid(built) : undefined,
    }),
    apns: forApple(built, is_shown),
    webpush: is_shown ? forBrowser(content) : undefined,
  }
  return overridden(present(message), overrides)
}

const shownByAndroid = ({ content: { icon, sound, collapse_id: tag }, badge }: BuiltFrom) =>
  present({ icon, sound, tag, notification_count: badge ?? undefined })

function forApple({ content, badge }: BuiltFrom, is_shown: boolean) {
  const { sound, image_url, content_available, collapse_id } = content
  const aps = present({
    ...{ badge: badge ?? undefined, sound },
    "content-available": content_available && 1,
    "mutable-content": image_url === undefined ? undefined : 1,
  })
  const headers = present({
    "apns-priority": content.priority === "high" && is_shown ? "10" : "5",
    "apns-collapse-id": collapse_id && headerText(collapse_id),
  })
  const fcm_options = image_url === undefined ? undefined : { image: image_url }
  return present({ headers, payload: { aps }, fcm_options })
}

function forBrowser({ priority, icon, collapse_id, url }: BuiltFrom["content"]) {
  const shown = present({ icon, tag: collapse_id, renotify: collapse_id && true })
  return present({
    headers: { Urgency: priority },
    notification: shown,
    // Google refuses any other scheme.
    fcm_options: url?.startsWith("https://") ? { link: url } : undefined,
  })
}

/** The words of `google.firebase.fcm.v1.FcmError`, and of Google's APIs where that one is missing. */
const CODES: ReadonlyMap<string, PushMeaning> = new Map([
  ["UNREGISTERED", "unregistered"],
  ["SENDER_ID_MISMATCH", "other_sender"],
  ["QUOTA_EXCEEDED", "throttled"],
  ["UNAVAILABLE", "outage"],
  ["INTERNAL", "outage"],
])

const ABOUT_TOKEN = /registration token/i
const TOO_BIG = /too (big|large|long)/i

function readAnswer({ status, headers }: NetAnswer, body: Record<string, unknown>): PushAnswer {
  if (status === 200) {
    const id = typeof body.name === "string" ? body.name : undefined
    return { meaning: "sent", said: "200", provider_message_id: id }
  }
  const { code, words, fields } = errorIn(body)
  return {
    meaning: CODES.get(code ?? "") ?? meaningOf(status, words, fields),
    said: `FCM answered ${status}: ${words ?? "no reason was given"}`,
    provider_code: code ?? String(status),
    retry_after: retryAfterSeconds(headers) ?? undefined,
  }
}

function meaningOf(status: number, words = "", fields: string[]): PushMeaning {
  if (status === 401 || status === 403) return "credentials"
  if (status === 429) return "throttled"
  if (status !== 400) return status >= 400 && status < 500 ? "refused" : "outage"
  if (fields.includes("message.token") || ABOUT_TOKEN.test(words)) return "invalid_token"
  return TOO_BIG.test(words) ? "payload_too_large" : "refused"
}

interface ErrorDetail {
  errorCode?: unknown
  fieldViolations?: { field?: unknown }[]
}

/** `google.rpc.Status`, with what its details say. */
function errorIn({ error }: Record<string, unknown>) {
  const { message, status, details } = objectIn(JSON.stringify(error ?? null)) ?? {}
  const all: ErrorDetail[] = Array.isArray(details) ? details.filter(Boolean) : []
  const codes = [...all.map(({ errorCode }) => errorCode), status]
  const violations = all.flatMap(({ fieldViolations: some }) => (Array.isArray(some) ? some : []))
  return {
    code: codes.find((code) => typeof code === "string"),
    words: typeof message === "string" ? message : undefined,
    fields: violations.map((one) => String(one?.field)),
  }
}
