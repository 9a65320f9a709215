import { describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { settings } from "../../../src/core/config"
import { fcmPayload, fcmProvider } from "../../../src/push/providers/fcm"
import { providerContract } from "../../contracts/provider"
import { type FcmSays, fcmError, fcmServer } from "../../fakes/fcm-server"
import { movableClock } from "../../harness/clock"
import { vendorClient } from "../../harness/vendor-client"
import { PUSH_ID, pushContext, somePush } from "./outgoing-push"

const clock = movableClock()

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const service_account = {
  type: "service_account",
  project_id: "example-app",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  client_email: "belfry@example-app.iam.gserviceaccount.com",
  // It leads elsewhere, and nothing may come there.
  token_uri: "http://127.0.0.1:1/stolen",
}
const { client_email, project_id } = service_account

const fake = (answers?: Parameters<typeof fcmServer>[1]) =>
  fcmServer({ key: publicKey, client_email, project_id }, answers)

const contextOf = ({ url }: { url: string }) =>
  pushContext({ "providers.fcm.endpoint": url, "providers.fcm.token_endpoint": `${url}/token` })

const at = (server: { url: string }) =>
  fcmProvider.open({ service_account }, contextOf(server), {
    settings: {},
    callbackUrl: () => undefined,
  })

test("a token is asked for as `google-auth-library` does", async () => {
  using server = await fake()
  clock.freeze()
  await at(server).send(somePush())
  const { JWT } = vendorClient("google-auth-library")
  const scopes = ["https://www.googleapis.com/auth/firebase.messaging"]
  const client = new JWT({ email: client_email, key: service_account.private_key, scopes })
  let theirs = { url: "", data: new URLSearchParams() }
  client.transporter = {
    request: async (asked: typeof theirs) => {
      theirs = asked
      return { data: { access_token: "x", expires_in: 3599 } }
    },
  }
  await client.authorize()
  const assertion = theirs.data.get("assertion") ?? ""
  const [ours] = server.assertions
  const claims = decodeJwt(assertion)
  const { iat, exp } = ours ?? {}
  expect({ ...ours, aud: theirs.url } as object).toEqual({ ...claims, iat, exp })
  expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe((exp ?? 0) - (iat ?? 0))
  expect(decodeProtectedHeader(assertion).alg).toBe("RS256")
  expect(settings()["providers.fcm.token_endpoint"]).toBe(theirs.url)
})

test("a message says to each kind of device what it understands", async () => {
  using server = await fake()
  const content = {
    ...{ image_url: "https://a.test/b.png", icon: "bell", sound: "bell", url: "https://a.test/" },
    ...{ collapse_id: "order-9", data: { order: "9" }, content_available: true as const },
    action_buttons: [{ id: "yes", label: "Yes" }],
    fcm: { android: { notification: { color: "#aabbcc" } }, fcm_options: { analytics_label: "a" } },
  }
  const push = somePush({ badge: 3, ttl_seconds: 60, content, device: { token: "tok" } })
  const outcome = await at(server).send(push)
  expect(outcome).toMatchObject({ status: "sent", provider_message_id: expect.any(String) })
  const ours = { push_id: PUSH_ID, ack_token: push.ack_token, order: "9" }
  const { image_url: image, icon, sound, url: link, collapse_id: tag } = content
  const shown = { icon, sound, tag, notification_count: 3, color: "#aabbcc" }
  expect(server.asked[0]?.message as object).toEqual({
    token: "tok",
    notification: { title: "Grüße", body: "Ding dong 🔔", image },
    data: { ...ours, url: link, image_url: image, action_buttons: '[{"id":"yes","label":"Yes"}]' },
    android: { priority: "HIGH", ttl: "60s", collapse_key: tag, notification: shown },
    apns: {
      headers: { "apns-priority": "10", "apns-collapse-id": tag },
      payload: { aps: { badge: 3, sound, "content-available": 1, "mutable-content": 1 } },
      fcm_options: { image },
    },
    webpush: {
      headers: { Urgency: "high" },
      notification: { icon, tag, renotify: true },
      fcm_options: { link },
    },
    fcm_options: { analytics_label: "a" },
  })
})

test("what shows nothing is a message of data alone", () => {
  const content = { title: undefined, body: undefined, content_available: true }
  const message = JSON.parse(fcmPayload(somePush({ content: content as object })))
  expect(message.apns.payload.aps).toEqual({ "content-available": 1 })
  expect([message.notification, message.android.notification, message.webpush]).toEqual([
    ...[undefined, undefined, undefined],
  ])
})

const FATES = {
  refused: ["failed", "provider_rejected", undefined, undefined],
  large: ["failed", "payload_too_large", undefined, undefined],
  invalid: ["failed", "invalid_token", undefined, {}],
  foreign: ["failed", "invalid_token", undefined, undefined],
  gone: ["failed", "unregistered", undefined, {}],
  login: ["failed", "provider_rejected", "authentication", undefined],
  trouble: ["retry", "provider_unavailable", "infrastructure", undefined],
} as const

const INVALID = "INVALID_ARGUMENT"

test.each([
  ["gone", "UNREGISTERED", fcmError(404, "NOT_FOUND", { word: "UNREGISTERED" })],
  [
    "foreign",
    "SENDER_ID_MISMATCH",
    fcmError(403, "PERMISSION_DENIED", { word: "SENDER_ID_MISMATCH" }),
  ],
  ["login", "PERMISSION_DENIED", fcmError(403, "PERMISSION_DENIED")],
  [
    "login",
    "THIRD_PARTY_AUTH_ERROR",
    fcmError(401, "UNAUTHENTICATED", { word: "THIRD_PARTY_AUTH_ERROR" }),
  ],
  [
    "invalid",
    INVALID,
    fcmError(400, INVALID, {
      word: INVALID,
      message: "The registration token is not a valid FCM registration token",
    }),
  ],
  ["invalid", INVALID, fcmError(400, INVALID, { word: INVALID, fields: ["message.token"] })],
  ["refused", INVALID, fcmError(400, INVALID, { word: INVALID, fields: ["message.android.ttl"] })],
  ["large", INVALID, fcmError(400, INVALID, { message: "Android message is too big" })],
  ["refused", "NOT_FOUND", fcmError(404, "NOT_FOUND")],
  ["trouble", "QUOTA_EXCEEDED", fcmError(429, "RESOURCE_EXHAUSTED", { word: "QUOTA_EXCEEDED" })],
  ["trouble", "UNAVAILABLE", fcmError(503, "UNAVAILABLE", { word: "UNAVAILABLE" })],
  ["trouble", "INTERNAL", fcmError(500, "INTERNAL", { word: "INTERNAL" })],
  ["trouble", "502", { status: 502 }],
  ["refused", "400", { status: 400, body: { error: { details: [null, { fieldViolations: 1 }] } } }],
] as [keyof typeof FATES, string, FcmSays][])("%s is what %s means", async (fate, word, says) => {
  using server = await fake({ message: () => ({ ...says, headers: { "retry-after": "90" } }) })
  const { code, fault, gone, ...outcome } = await at(server).send(somePush())
  expect([outcome.status, code, fault, gone] as unknown[]).toEqual([...FATES[fate]])
  expect([outcome.reply.provider_code, outcome.schedule(1, 0)]).toEqual([word, 90])
  expect(outcome.reply.response).toStartWith(`FCM answered ${says.status}: `)
})

describe("the access token", () => {
  const many = (provider: ReturnType<typeof at>) =>
    Promise.all(Array.from({ length: 50 }, () => provider.send(somePush())))

  test("is asked for once for many, and again shortly before it ends", async () => {
    using server = await fake()
    const provider = at(server)
    await many(provider)
    clock.advance({ seconds: 54 * 60 })
    await many(provider)
    expect([server.asked.length, server.assertions.length]).toEqual([100, 1])
    clock.advance({ seconds: 60 })
    await many(provider)
    expect(server.assertions.length).toBe(2)
  })

  test("is renewed once where Google does not take it any more", async () => {
    using server = await fake()
    const provider = at(server)
    await many(provider)
    server.revokeTokens()
    expect((await many(provider)).filter(({ status }) => status !== "sent")).toEqual([])
    expect(server.assertions.length).toBe(2)
  })

  test.each([
    ["login", { status: 401, body: { error: "invalid_client" } }],
    ["trouble", { status: 429 }],
    ["trouble", { status: 503 }],
  ] as const)("that is refused: %s is what %j means", async (fate, says) => {
    using server = await fake({ token: () => says })
    const { status, code, fault } = await at(server).send(somePush())
    expect([status, code, fault] as unknown[]).toEqual(FATES[fate].slice(0, 3))
    expect(server.asked).toEqual([])
  })
})

test("a check sends nothing", async () => {
  using server = await fake()
  expect(await at(server).check?.()).toBe("FCM accepts the service account.")
  expect(server.asked).toMatchObject([{ validate_only: true }])
})

test("a key that is none is told at once", () => {
  const wrong = { ...service_account, private_key: "-----BEGIN" }
  expect(fcmProvider.validate?.({ service_account: wrong })?.field).toBe("service_account")
})

providerContract(fcmProvider as never, async () => {
  const says: Record<string, FcmSays> = {
    later: fcmError(503, "UNAVAILABLE"),
    never: fcmError(404, "NOT_FOUND", { word: "UNREGISTERED" }),
  }
  const server = await fake({ message: ({ message }) => says[message.token ?? ""] })
  const to = (token: string) => somePush({ device: { token } })
  const leave = () => server[Symbol.dispose]()
  return {
    credentials: { service_account },
    context: contextOf(server),
    messages: { accepted: to("now"), deferred: to("later"), refused: to("never") },
    ...{ success: "sent" as const, leave },
    async [Symbol.asyncDispose]() {
      leave()
    },
  }
})
