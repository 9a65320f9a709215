import { describe, expect, test } from "bun:test"
import { randomBytes } from "node:crypto"
import { importJWK, jwtVerify } from "jose"
import { settings } from "../../../src/core/config"
import { Problems } from "../../../src/core/errors"
import { newId } from "../../../src/core/ids"
import { readCredentials } from "../../../src/providers/credentials"
import type { Outcome } from "../../../src/providers/provider"
import type { OutgoingPush, PushContext } from "../../../src/push/providers/provider"
import {
  type WebPushAccess,
  webPushPayload,
  webpushProvider,
} from "../../../src/push/providers/webpush"
import { encryptPush } from "../../../src/push/providers/webpush/encryption"
import type { PushContent } from "../../../src/push/push-content"
import { OPENING, providerContract } from "../../contracts/provider"
import { pushService, subscriber } from "../../fakes/push-service"
import { movableClock } from "../../harness/clock"
import { LOOPBACK } from "../../harness/providers"

const clock = movableClock()
const SUBJECT = "mailto:ops@belfry.test"
const access = made({ subject: SUBJECT })
const context: PushContext = { settings: settings(), allow_private: LOOPBACK }

function made(given: WebPushAccess, before: Partial<WebPushAccess> = {}) {
  const whole = webpushProvider.complete?.(given, before)
  if (!whole) throw new Error("nothing was completed")
  return whole
}

function pushTo(token: string, content: Partial<PushContent> = {}, keys = subscriber().keys) {
  const id = newId()
  const push: OutgoingPush = {
    ...{ message_id: id, push_id: id, ack_token: "token", project_id: newId(), to: ["phone"] },
    ...{ ttl_seconds: 60, badge: null, content: { title: "Ding", priority: "high", ...content } },
    device: { token, keys, app_id: null, apns_environment: null },
  }
  return push
}

const send = (push: OutgoingPush, more: Partial<PushContext> = {}): Promise<Outcome> =>
  webpushProvider.open(access, { ...context, ...more }, OPENING).send(push)

const shownOf = (content: Partial<PushContent>, badge: number | null = null) =>
  JSON.parse(webPushPayload({ ...pushTo("x", content), badge }))

// RFC 8291, appendix A.
test("the example of the RFC is encrypted byte for byte", async () => {
  const point = {
    x: "_jP0qw3qcZFNtVgj9ztUlI9BMG2SBzLbuaWaUyhkgiA",
    y: "Dll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
  }
  const d = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
  const known = { kty: "EC", crv: "P-256", ...point }
  const P256 = { name: "ECDH", namedCurve: "P-256" }
  const [publicKey, privateKey] = await Promise.all([
    crypto.subtle.importKey("jwk", known, P256, true, []),
    crypto.subtle.importKey("jwk", { ...known, d }, P256, false, ["deriveBits"]),
  ])
  const salt = Buffer.from("DGv6ra1nlYgDCS1FRnbzlw", "base64url")
  const keys = {
    p256dh:
      "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  }
  const plain = Buffer.from("When I grow up, I want to be a watermelon")
  const sealed = await encryptPush(plain, keys, { pair: { publicKey, privateKey }, salt })
  expect(Buffer.from(sealed).toString("base64url")).toBe(
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN",
  )
})

test("another library reads 200 payloads of any size, each in one record with a key of its own", async () => {
  const sizes = Array.from({ length: 198 }, () => Math.floor(Math.random() * 4097))
  const seen = new Set<string>()
  for (const size of [0, 4096, ...sizes]) {
    const { keys, open } = subscriber()
    const plain = randomBytes(size)
    const sealed = await encryptPush(plain, keys)
    expect(open(sealed).equals(plain)).toBeTrue()
    const head = Buffer.from(sealed.subarray(0, 86))
    expect(head.readUInt32BE(16)).toBeGreaterThan(size + 17)
    expect(sealed.length).toBe(86 + size + 17)
    seen.add(head.toString("hex"))
  }
  expect(seen.size).toBe(200)
})

describe("what a browser gets", () => {
  test("has the form of Declarative Web Push, without what is absent", () => {
    const action_buttons = [
      { id: "yes", label: "Yes", url: "/yes" },
      { id: "no", label: "No" },
    ]
    const data = { order: "7" }
    const full = shownOf(
      {
        body: "dong",
        url: "/o",
        icon: "/i",
        image_url: "/p",
        collapse_id: "c",
        action_buttons,
        data,
      },
      3,
    )
    const { push_id } = full.notification.data
    expect(full).toEqual({
      web_push: 8030,
      notification: {
        ...{ title: "Ding", body: "dong", navigate: "/o", app_badge: 3, icon: "/i", image: "/p" },
        ...{ tag: "c", renotify: true, data: { order: "7", push_id, ack_token: "token" } },
        actions: [
          { action: "yes", title: "Yes", navigate: "/yes" },
          { action: "no", title: "No" },
        ],
      },
    })
    const { data: _, ...least } = shownOf({}).notification
    expect(least).toEqual({ title: "Ding", navigate: "/" })
  })

  test("shows nothing where only data is sent, and overrides are merged", () => {
    const { title: _, ...silent } = pushTo("x", { content_available: true }).content
    const payload = webPushPayload({ ...pushTo("x"), content: silent })
    expect(Object.keys(JSON.parse(payload).notification)).toEqual(["data"])
    const counted = webPushPayload({ ...pushTo("x"), content: silent, badge: 3 })
    expect(Object.keys(JSON.parse(counted).notification)).toEqual(["app_badge", "data"])
    const webpush = { notification: { silent: true, data: { more: "1" } } }
    expect(shownOf({ webpush }).notification).toMatchObject({
      ...{ title: "Ding", silent: true, data: { more: "1", ack_token: "token" } },
    })
  })
})

describe("a push service", () => {
  test("gets one encrypted request, with its urgency, its time to live and its topic", async () => {
    using service = pushService()
    const { keys, open } = subscriber()
    const push = pushTo(`${service.url}/s/1?x=2`, { collapse_id: "a b/ü" }, keys)
    expect(await send(push)).toMatchObject({ status: "sent", reason: null })
    const [request] = service.requests
    const { headers, body = new Uint8Array() } = request ?? {}
    expect(open(body).toString()).toBe(webPushPayload(push))
    const named = ["content-encoding", "ttl", "urgency"].map((name) => headers?.get(name))
    expect(named).toEqual(["aes128gcm", "60", "high"])
    expect(headers?.get("topic")).toMatch(/^[\w-]{32}$/)
  })

  test("can check the token of the sender, which is kept for half of its life", async () => {
    clock.freeze()
    using service = pushService()
    const provider = webpushProvider.open(access, context, OPENING)
    const tokens: string[] = []
    for (const hours of [0, 5.9, 0.2]) {
      clock.advance({ seconds: hours * 3600 })
      await provider.send(pushTo(service.url))
      tokens.push(service.requests.at(-1)?.headers.get("authorization") ?? "")
    }
    expect([tokens[0] === tokens[1], tokens[0] === tokens[2]]).toEqual([true, false])
    const [, token = "", key] = /^vapid t=(.+), k=(.+)$/.exec(tokens[0] ?? "") ?? []
    expect(key).toBe(access.vapid_public_key ?? "")
    const bytes = Buffer.from(key ?? "", "base64url")
    const [x, y] = [bytes.subarray(1, 33), bytes.subarray(33)].map((part) =>
      part.toString("base64url"),
    )
    const jwk = await importJWK({ kty: "EC", crv: "P-256", x, y } as never, "ES256")
    const { payload } = await jwtVerify(token, jwk, { audience: service.url, subject: SUBJECT })
    expect((payload.exp ?? 0) * 1000 - Date.now()).toBeWithin(6 * 3_600_000, 24 * 3_600_000)
  })

  test.each([
    [200, "sent", null, undefined],
    [202, "sent", null, undefined],
    [400, "failed", "provider_rejected", undefined],
    [401, "failed", "provider_rejected", undefined],
    [403, "failed", "provider_rejected", undefined],
    [404, "failed", "unregistered", {}],
    [410, "failed", "unregistered", {}],
    [413, "failed", "payload_too_large", undefined],
    [429, "retry", "provider_unavailable", undefined],
    [503, "retry", "provider_unavailable", undefined],
  ])(
    "that answers %d makes the message %s, and is no trouble of others",
    async (status, is, code, gone) => {
      using service = pushService(
        () => new Response("because", { status, headers: { "retry-after": "90" } }),
      )
      const outcome = await send(pushTo(service.url))
      expect(outcome).toMatchObject({ status: is, code, ...(gone && { gone }) })
      expect([outcome.fault, outcome.held, !!outcome.gone]).toEqual([undefined, undefined, !!gone])
      if (is === "failed") expect(outcome.reply.provider_code).toBe(String(status))
      if (is === "retry")
        expect([outcome.schedule(1, 0), outcome.schedule(6, 0)]).toEqual([90, undefined])
    },
  )
})

describe("an endpoint", () => {
  const names = (...addresses: string[]) => ({ a: async () => addresses, aaaa: async () => [] })

  test("is not asked where it is private, or leads inward even sometimes", async () => {
    using service = pushService()
    const inward = pushTo(`https://push.test:${service.port}/s`)
    const tries: [OutgoingPush, Partial<PushContext>][] = [
      [pushTo(`${service.url}/s`), { allow_private: [] }],
      [pushTo(`https://127.0.0.1:${service.port}/s`), { allow_private: [] }],
      [inward, { allow_private: [], resolver: names("127.0.0.1") }],
      [inward, { allow_private: [], resolver: names("93.184.216.34", "127.0.0.1") }],
    ]
    for (const [push, more] of tries) {
      expect(await send(push, more)).toMatchObject({ status: "failed", code: "provider_rejected" })
    }
    expect(service.requests).toEqual([])
  })

  test("without TLS is one that the operator allows", async () => {
    const open = pushTo("http://push.test/s")
    const outcome = await send(open, { resolver: names("93.184.216.34") })
    expect(outcome).toMatchObject({ status: "failed", text: "the URL must begin with https://" })
    using service = pushService()
    const here = pushTo(`http://push.test:${service.port}/s`)
    const allowed = { allow_private: ["push.test"], resolver: names("127.0.0.1") }
    expect(await send(here, allowed)).toMatchObject({ status: "sent" })
  })

  test("is not followed elsewhere", async () => {
    using inner = pushService()
    for (const status of [301, 302, 303, 307, 308]) {
      using service = pushService(() => Response.redirect(`${inner.url}/s`, status))
      expect(await send(pushTo(service.url))).toMatchObject({ status: "failed" })
    }
    expect(inner.requests).toEqual([])
  })

  test("with keys that are none is given up", async () => {
    using service = pushService()
    const wrong = { p256dh: randomBytes(65).toString("base64url"), auth: "BTBZMqHH6r4Tts7J_aSIgg" }
    const outcome = await send(pushTo(service.url, {}, wrong))
    expect(outcome).toMatchObject({ status: "failed", code: "invalid_token", gone: {} })
  })
})

test("a key pair is whole and fits, is made once, and stays with another subject", () => {
  const faults = (given: object) => {
    const problems = new Problems()
    readCredentials(webpushProvider, given, problems)
    return problems.list.map(({ path }) => path)
  }
  const { vapid_public_key, vapid_private_key } = access
  expect(faults(access)).toEqual([])
  expect(faults({ subject: SUBJECT })).toEqual([])
  expect(faults({ subject: "ops@belfry.test" })).toEqual(["credentials.subject"])
  expect(faults({ subject: SUBJECT, vapid_public_key })).toEqual(["credentials.vapid_private_key"])
  expect(faults({ subject: SUBJECT, vapid_private_key })).toEqual(["credentials.vapid_public_key"])
  const other = made({ subject: SUBJECT })
  expect(faults({ ...other, vapid_private_key })).toEqual(["credentials.vapid_private_key"])
  const subject = "https://belfry.test"
  expect(made({ subject }, access)).toEqual({ ...access, subject })
  expect(made(other, access)).toEqual(other)
})

providerContract(webpushProvider as never, async () => {
  const service = pushService(({ path }) => new Response(null, { status: Number(path.slice(1)) }))
  return {
    credentials: { ...access },
    context,
    messages: {
      accepted: pushTo(`${service.url}/201`),
      deferred: pushTo(`${service.url}/503`),
      refused: pushTo(`${service.url}/400`),
    },
    success: "sent",
    each_has_own_server: true,
    leave: () => service[Symbol.dispose](),
    [Symbol.asyncDispose]: async () => service[Symbol.dispose](),
  }
})
