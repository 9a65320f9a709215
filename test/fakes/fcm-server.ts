import type { KeyObject } from "node:crypto"
import { type JWTPayload, jwtVerify } from "jose"
import { millis } from "../../src/core/time"
import { MOST_PAYLOAD_BYTES } from "../../src/push/push-content"

export interface FcmMessage {
  token?: string
  topic?: string
  data?: Record<string, unknown>
  android?: { ttl?: string }
  [field: string]: unknown
}

export interface FcmAsked {
  bearer: string
  message: FcmMessage
  validate_only: boolean
}

export interface FcmSays {
  status: number
  body?: object
  headers?: Record<string, string>
}

interface FcmRules {
  key: KeyObject
  client_email: string
  project_id: string
}

interface FcmAnswers {
  /** Undefined: as a request without a mistake is answered. */
  message?: (asked: FcmAsked) => FcmSays | undefined
  token?: () => FcmSays | undefined
}

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
const LIFETIME_SECONDS = 3599

/** Google's tokens for service accounts, and FCM by HTTP v1: it judges each request, and keeps it. */
export function fcmServer({ key, client_email, project_id }: FcmRules, answers: FcmAnswers = {}) {
  const asked: FcmAsked[] = []
  const assertions: JWTPayload[] = []
  const valid = new Map<string, number>()

  async function token(request: Request, url: string): Promise<FcmSays> {
    const form = new URLSearchParams(await request.text())
    if (form.get("grant_type") !== GRANT) return { status: 400, body: { error: "invalid_request" } }
    try {
      const { payload } = await jwtVerify(form.get("assertion") ?? "", key, {
        ...{ algorithms: ["RS256"], issuer: client_email, audience: url },
        ...{ requiredClaims: ["iat", "exp", "scope"], currentDate: new Date(millis()) },
      })
      assertions.push(payload)
    } catch {
      const error_description = "Invalid JWT Signature."
      return { status: 400, body: { error: "invalid_grant", error_description } }
    }
    const says = answers.token?.()
    if (says) return says
    const access_token = `ya29.${assertions.length}`
    valid.set(access_token, millis() + LIFETIME_SECONDS * 1000)
    const body = { access_token, expires_in: LIFETIME_SECONDS, token_type: "Bearer" }
    return { status: 200, body }
  }

  async function message(request: Request): Promise<FcmSays> {
    const bearer = request.headers.get("authorization")?.replace("Bearer ", "") ?? ""
    if ((valid.get(bearer) ?? 0) <= millis()) return fcmError(401, "UNAUTHENTICATED")
    const { message, validate_only = false } = (await request.json()) as FcmAsked
    const one = { bearer, message, validate_only }
    asked.push(one)
    return mistakeIn(message) ?? answers.message?.(one) ?? { status: 200, body: nameOf(asked) }
  }

  const nameOf = ({ length }: FcmAsked[]) => ({ name: `projects/${project_id}/messages/${length}` })

  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const is_message = pathname === `/v1/projects/${project_id}/messages:send`
      const says =
        pathname === "/token"
          ? await token(request, request.url)
          : is_message
            ? await message(request)
            : fcmError(404, "NOT_FOUND")
      const { status, body = {}, headers } = says
      return Response.json(body, { status, ...(headers && { headers }) })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    ...{ asked, assertions },
    revokeTokens: () => valid.clear(),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** `google.rpc.Status`, with the word of FCM and the fields that are wrong, where there are some. */
export function fcmError(
  code: number,
  status: string,
  {
    word,
    message = "no",
    fields = [],
  }: { word?: string; message?: string; fields?: string[] } = {},
): FcmSays {
  const type = (name: string) => `type.googleapis.com/google.${name}`
  const details = [
    ...(word ? [{ "@type": type("firebase.fcm.v1.FcmError"), errorCode: word }] : []),
    { "@type": type("rpc.BadRequest"), fieldViolations: fields.map((field) => ({ field })) },
  ]
  return { status: code, body: { error: { code, message, status, details } } }
}

function mistakeIn(message: FcmMessage): FcmSays | undefined {
  const { token, topic, data = {}, android, ...rest } = message
  const invalid = (text: string) => fcmError(400, "INVALID_ARGUMENT", { message: text })
  if (token === undefined && topic === undefined) return invalid("Recipient is not set.")
  if (Object.values(data).some((value) => typeof value !== "string")) return invalid("data")
  if (!/^\d+s$/.test(android?.ttl ?? "0s")) return invalid("android.ttl")
  const size = JSON.stringify({ ...rest, data, android }).length
  return size > MOST_PAYLOAD_BYTES ? invalid("Android message is too big") : undefined
}
