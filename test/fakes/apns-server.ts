import type { KeyObject } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createSecureServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type JWTPayload, jwtVerify, type ProtectedHeaderParameters } from "jose"
import { isUuid } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { MOST_PAYLOAD_BYTES } from "../../src/push/push-content"
import { selfSigned } from "./smtp-certificate"

export interface ApnsAsked {
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
  jwt: { header: ProtectedHeaderParameters; payload: JWTPayload } | undefined
  /** Which connection, counted from 1. */
  session: number
}

export interface ApnsSays {
  status: number
  reason?: string
  timestamp?: number
  headers?: Record<string, string>
}

/** Undefined: as a request without a mistake is answered. */
type Answer = (asked: ApnsAsked, connection: ServerHttp2Session) => ApnsSays | "nothing" | undefined

interface ApnsRules {
  key: KeyObject
  key_id: string
  team_id: string
  topics: string[]
}

const HOUR_SECONDS = 3600

/** APNs over HTTP/2 and TLS: it judges each request as Apple does, and keeps it. */
export async function apnsServer(rules: ApnsRules, answer: Answer = () => undefined) {
  const folder = mkdtempSync(join(tmpdir(), "belfry-apns-"))
  const { key, cert } = selfSigned("apns.test")
  const ca = join(folder, "ca.pem")
  writeFileSync(ca, cert)
  const server = createSecureServer({ key, cert })
  const asked: ApnsAsked[] = []
  const sessions = new Set<ServerHttp2Session>()
  let opened = 0

  server.on("session", (session) => {
    sessions.add(session)
    const number = ++opened
    session.on("error", () => {})
    session.on("close", () => sessions.delete(session))
    session.on("stream", (stream, headers) => {
      stream.on("error", () => {})
      const parts: Buffer[] = []
      stream.on("data", (part: Buffer) => parts.push(part))
      stream.on("end", async () => {
        const one = await judged(Buffer.concat(parts), headers as Record<string, string>, rules)
        const request = { ...one.request, session: number }
        asked.push(request)
        const says = one.mistake ?? answer(request, session) ?? { status: 200 }
        if (says !== "nothing") reply(stream, says, request.headers["apns-id"])
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const close = () => {
    for (const session of sessions) session.destroy()
    server.close()
  }
  const { port } = server.address() as AddressInfo
  return {
    ...{ url: `https://127.0.0.1:${port}`, port, ca, cert, asked, close },
    opened: () => opened,
    [Symbol.dispose]() {
      close()
      rmSync(folder, { recursive: true })
    },
  }
}

function reply(stream: ServerHttp2Stream, says: ApnsSays, id: string | undefined) {
  if (stream.destroyed) return
  const { status, reason, timestamp, headers } = says
  const head = { ":status": status, ...(id && { "apns-id": id }), ...headers }
  // An empty body after the headers ends the session of Bun's client after a thousand requests.
  if (status === 200) return stream.respond(head, { endStream: true })
  stream.respond(head)
  stream.end(JSON.stringify({ reason, ...(timestamp !== undefined && { timestamp }) }))
}

async function judged(bytes: Buffer, headers: Record<string, string>, rules: ApnsRules) {
  const path = headers[":path"] ?? ""
  let body: Record<string, unknown> = {}
  try {
    body = JSON.parse(bytes.toString())
  } catch {
    // Then `aps` is missing, too.
  }
  const login = await verified(headers.authorization, rules)
  const jwt = typeof login === "string" ? undefined : login
  const [status, reason] =
    typeof login === "string" ? [403, login] : mistakeIn(bytes, body, headers, rules)
  const request = { path, headers: { ...headers }, body, jwt }
  return { request, mistake: reason === undefined ? undefined : { status, reason } }
}

async function verified(authorization = "", { key, key_id, team_id }: ApnsRules) {
  const [, token] = /^bearer (\S+)$/.exec(authorization) ?? []
  if (token === undefined) return "MissingProviderToken"
  try {
    const { payload, protectedHeader: header } = await jwtVerify(token, key, {
      ...{ algorithms: ["ES256"], issuer: team_id, requiredClaims: ["iat"] },
      currentDate: new Date(millis()),
    })
    if (header.kid !== key_id) return "InvalidProviderToken"
    const age = millis() / 1000 - (payload.iat ?? 0)
    return age > HOUR_SECONDS ? "ExpiredProviderToken" : { header, payload }
  } catch {
    return "InvalidProviderToken"
  }
}

/** In the words of Apple's table; of two mistakes the first one. */
function mistakeIn(
  bytes: Buffer,
  body: Record<string, unknown>,
  headers: Record<string, string>,
  { topics }: ApnsRules,
): [number, string | undefined] {
  const [, token] = /^\/3\/device\/(.*)$/.exec(headers[":path"] ?? "") ?? []
  const type = headers["apns-push-type"] ?? ""
  const mistakes: [boolean, number, string][] = [
    [headers[":method"] !== "POST", 405, "MethodNotAllowed"],
    [token === undefined, 404, "BadPath"],
    [token === "", 400, "MissingDeviceToken"],
    [headers["apns-topic"] === undefined, 400, "MissingTopic"],
    [!topics.includes(headers["apns-topic"] ?? ""), 400, "TopicDisallowed"],
    [!["alert", "background"].includes(type), 400, "InvalidPushType"],
    [!/^(5|10)$/.test(headers["apns-priority"] ?? ""), 400, "BadPriority"],
    [type === "background" && headers["apns-priority"] !== "5", 400, "BadPriority"],
    [!/^\d+$/.test(headers["apns-expiration"] ?? ""), 400, "BadExpirationDate"],
    [!isUuid(headers["apns-id"] ?? "0".repeat(8)) && !!headers["apns-id"], 400, "BadMessageId"],
    [Buffer.byteLength(headers["apns-collapse-id"] ?? "") > 64, 400, "BadCollapseId"],
    [body.aps === undefined, 400, "PayloadEmpty"],
    [bytes.length > MOST_PAYLOAD_BYTES, 413, "PayloadTooLarge"],
    [!/^[0-9a-f]{64}$/.test(token ?? "") || /^0+$/.test(token ?? ""), 400, "BadDeviceToken"],
  ]
  const [, status = 200, reason] = mistakes.find(([is_one]) => is_one) ?? []
  return [status, reason]
}
