import { describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { apnsPayload, apnsProvider } from "../../../src/push/providers/apns"
import { providerContract } from "../../contracts/provider"
import { type ApnsSays, apnsServer } from "../../fakes/apns-server"
import { movableClock } from "../../harness/clock"
import { sizes } from "../../harness/sizes"
import { vendorClient } from "../../harness/vendor-client"
import { PUSH_ID, pushContext, somePush } from "./outgoing-push"

const clock = movableClock()

const pair = () => generateKeyPairSync("ec", { namedCurve: "P-256" })
const { publicKey, privateKey } = pair()
const pemOf = (key: typeof privateKey) => key.export({ type: "pkcs8", format: "pem" }).toString()

const access = {
  key_id: "ABC123DEFG",
  team_id: "DEF123GHIJ",
  bundle_id: "com.example.app",
  private_key: pemOf(privateKey),
  apns_environment: "production" as const,
}
const topics = [access.bundle_id, "com.example.other"]
const TOKEN = "a1".repeat(32)

const fake = (answer?: Parameters<typeof apnsServer>[1]) =>
  apnsServer({ key: publicKey, key_id: access.key_id, team_id: access.team_id, topics }, answer)

type Fake = Awaited<ReturnType<typeof fake>>

const contextOf = ({ url, ca }: Fake) =>
  pushContext({ "providers.apns.endpoint": url, "providers.apns.ca": ca })

const at = (server: Fake, own: Partial<typeof access> | { apns_environment: "sandbox" } = {}) =>
  apnsProvider.open({ ...access, ...own }, contextOf(server), {
    settings: {},
    callbackUrl: () => undefined,
  })

describe("beside Apple's peer", () => {
  test("a message is the same request as by `@parse/node-apn`", async () => {
    using server = await fake()
    clock.freeze()
    const expiry = Math.floor(Date.now() / 1000) + 3600
    const push = somePush({
      badge: 7,
      content: { sound: "bell.aiff", collapse_id: "order-9", data: { order: "9" } },
    })
    await at(server).send(push)
    const { Provider, Notification } = vendorClient("@parse/node-apn")
    const { key_id: keyId, team_id: teamId, private_key: key } = access
    const peer = new Provider({
      ...{ token: { key, keyId, teamId }, production: true },
      ...{ address: "127.0.0.1", port: server.port, ca: server.cert },
    })
    const note = new Notification({
      ...{ id: PUSH_ID, topic: access.bundle_id, pushType: "alert", priority: 10, expiry },
      ...{ collapseId: "order-9", badge: 7, sound: "bell.aiff" },
      alert: { title: push.content.title, body: push.content.body },
      payload: { order: "9", push_id: PUSH_ID, ack_token: push.ack_token },
    })
    expect((await peer.send(note, TOKEN)).failed).toEqual([])
    peer.shutdown()
    const [ours, theirs] = server.asked.map(({ path, headers, body, jwt }) => ({
      ...{ path, body, key: jwt?.header.kid, claims: Object.keys(jwt?.payload ?? {}).sort() },
      headers: Object.entries(headers)
        .filter(([name]) => name.startsWith("apns-"))
        .sort(),
    }))
    expect(ours).toEqual(theirs as NonNullable<typeof theirs>)
  })
})

const ALERT = { "apns-push-type": "alert", "apns-priority": "10", "apns-topic": access.bundle_id }

test.each([
  ["a normal one", {}, { "apns-priority": "5" }, { content: { priority: "normal" } }],
  ["one of another app", {}, { "apns-topic": topics[1] }, { device: { app_id: topics[1] } }],
  ["one for now or never", {}, { "apns-expiration": "0" }, { ttl_seconds: 0 }],
  [
    "one with an image",
    { "mutable-content": 1 },
    {},
    { content: { image_url: "https://a.test/b.png" } },
  ],
  ["one with a badge of nothing", { badge: 0 }, {}, { badge: 0 }],
  [
    "an override",
    { category: "ORDER", badge: 3 },
    {},
    { badge: 1, content: { apns: { aps: { category: "ORDER", badge: 3 } } } },
  ],
] as const)("%s", async (_, aps, headers, given) => {
  using server = await fake()
  expect((await at(server).send(somePush(given as object))).status).toBe("sent")
  const [asked] = server.asked
  expect(asked?.headers).toMatchObject({ ...ALERT, "apns-id": PUSH_ID, ...headers })
  expect(asked?.body.aps).toEqual({ alert: { title: "Grüße", body: "Ding dong 🔔" }, ...aps })
})

test("what shows nothing wakes the app in the background", async () => {
  using server = await fake()
  const content = { title: undefined, body: undefined, content_available: true, data: { a: "b" } }
  const push = somePush({ content: content as object })
  expect((await at(server).send(push)).status).toBe("sent")
  const [asked] = server.asked
  const silent = { "apns-push-type": "background", "apns-priority": "5" }
  expect(asked?.headers).toMatchObject(silent)
  const ours = { push_id: PUSH_ID, ack_token: push.ack_token }
  expect(asked?.body).toEqual({ a: "b", ...ours, aps: { "content-available": 1 } })
})

test("the app's data stands beside `aps`, and takes the place of nothing in it", () => {
  const data = { aps: "mine", url: "theirs" }
  const buttons = [{ id: "yes", label: "Yes" }]
  const content = { data, url: "https://a.test/", action_buttons: buttons }
  const built = JSON.parse(apnsPayload(somePush({ content })))
  expect(built).toMatchObject({ aps: { alert: {} }, url: "theirs", action_buttons: buttons })
})

test("a text that no header can carry has a name of its own in the header", async () => {
  using server = await fake()
  const provider = at(server)
  for (const collapse_id of ["größe", "größe", "a b"]) {
    expect((await provider.send(somePush({ content: { collapse_id } }))).status).toBe("sent")
  }
  const [first, again, other] = server.asked.map(({ headers }) => headers["apns-collapse-id"])
  expect([first === again, first === other]).toEqual([true, false])
  const { reply } = await provider.send(somePush({ device: { app_id: "größe" } }))
  expect(reply.provider_code).toBe("TopicDisallowed")
})

const FATES = {
  refused: ["failed", "provider_rejected", undefined, undefined],
  large: ["failed", "payload_too_large", undefined, undefined],
  invalid: ["failed", "invalid_token", undefined, {}],
  gone: ["failed", "unregistered", undefined, {}],
  login: ["failed", "provider_rejected", "authentication", undefined],
  busy: ["retry", "provider_unavailable", undefined, undefined],
  trouble: ["retry", "provider_unavailable", "infrastructure", undefined],
} as const

/** Every reason that Apple documents. */
const REASONS: [keyof typeof FATES, number, string[]][] = [
  ["invalid", 400, ["BadDeviceToken", "DeviceTokenNotForTopic"]],
  ["refused", 400, ["BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority"]],
  ["refused", 400, ["BadTopic", "DuplicateHeaders", "InvalidPushType", "MissingDeviceToken"]],
  ["refused", 400, ["MissingTopic", "PayloadEmpty", "TopicDisallowed"]],
  ["trouble", 400, ["IdleTimeout"]],
  ["login", 403, ["BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken"]],
  ["login", 403, ["ExpiredProviderToken", "Forbidden", "InvalidProviderToken"]],
  ["login", 403, ["MissingProviderToken", "UnrelatedKeyIdInToken"]],
  ["refused", 404, ["BadPath"]],
  ["refused", 405, ["MethodNotAllowed"]],
  ["gone", 410, ["ExpiredToken", "Unregistered"]],
  ["large", 413, ["PayloadTooLarge"]],
  ["busy", 429, ["TooManyRequests"]],
  ["trouble", 429, ["TooManyProviderTokenUpdates"]],
  ["trouble", 500, ["InternalServerError"]],
  ["trouble", 503, ["ServiceUnavailable", "Shutdown"]],
]

test.each(REASONS)("%s is what %d means with %j", async (fate, status, reasons) => {
  let reason = ""
  using server = await fake(() => ({ status, reason }))
  const provider = at(server)
  for (reason of reasons) {
    const { code, fault, gone, ...outcome } = await provider.send(somePush())
    expect([outcome.status, code, fault, gone] as unknown[]).toEqual([...FATES[fate]])
    expect(outcome.reply).toMatchObject({
      ...{ provider_code: reason, response: `APNs answered ${status}: ${reason}` },
    })
  }
})

test("a device that is gone is gone since the moment that Apple names", async () => {
  using server = await fake(() => ({ status: 410, reason: "Unregistered", timestamp: 1.7e12 }))
  const { gone } = await at(server).send(somePush())
  expect(gone).toEqual({ since: "2023-11-14T22:13:20.000Z" })
})

test("Apple says when it wants to be asked again", async () => {
  using server = await fake(() => ({ status: 503, headers: { "retry-after": "90" } }))
  const { schedule } = await at(server).send(somePush())
  expect([schedule(1, 0), schedule(4, 0)]).toEqual([90, 120])
})

test("a device of the other environment stops nobody else, and stays", async () => {
  const reason = "BadEnvironmentKeyIdInToken"
  using server = await fake(() => ({ status: 403, reason }))
  const push = somePush({ device: { apns_environment: "sandbox" } })
  const outcome = await at(server).send(push)
  expect(outcome).toMatchObject({ status: "failed", code: "invalid_token" })
  expect([outcome.fault, outcome.gone]).toEqual([undefined, undefined])
})

describe("the provider token", () => {
  const tokensOf = ({ asked }: Fake) => new Set(asked.map(({ headers }) => headers.authorization))

  test("is made once for many, and renewed after 50 minutes", async () => {
    using server = await fake()
    const provider = at(server)
    const many = () => Promise.all(Array.from({ length: 50 }, () => provider.send(somePush())))
    await many()
    clock.advance({ seconds: 49 * 60 })
    await many()
    expect(tokensOf(server).size).toBe(1)
    clock.advance({ seconds: 61 })
    await many()
    expect(tokensOf(server).size).toBe(2)
  })

  test("is renewed once, and the message repeated, where Apple calls it old", async () => {
    let old: string | undefined
    using server = await fake(({ headers: { authorization } }) => {
      old ??= authorization
      if (authorization === old) return { status: 403, reason: "ExpiredProviderToken" }
      return undefined
    })
    const provider = at(server)
    const first = provider.send(somePush())
    clock.advance({ seconds: 1 })
    expect((await first).status).toBe("sent")
    expect((await provider.send(somePush())).status).toBe("sent")
    expect([server.asked.length, tokensOf(server).size]).toEqual([3, 2])
  })
})

describe("a connection", () => {
  const sent = async (provider: ReturnType<typeof at>, count: number) => {
    const outcomes = await Promise.all(
      Array.from({ length: count }, () => provider.send(somePush())),
    )
    return outcomes.filter(({ status }) => status === "sent").length
  }

  test("carries many messages at once, and is kept", async () => {
    using server = await fake()
    const provider = at(server)
    await provider.send(somePush())
    for (let turn = 0; turn < 5; turn++) expect(await sent(provider, 20)).toBe(20)
    expect(server.opened()).toBe(1)
  })

  test("belongs to one key alone", async () => {
    const others = pair()
    using server = await fake()
    const private_key = pemOf(others.privateKey)
    await at(server).send(somePush())
    for (const key_id of ["XYZ123DEFG", access.key_id]) {
      const other = at(server, { key_id, private_key })
      expect((await other.send(somePush())).fault).toBe("authentication")
    }
    expect((await at(server).send(somePush())).status).toBe("sent")
    expect(server.asked.map(({ session }) => session)).toEqual([1, 2, 3, 1])
  })

  test("that Apple ends with a GOAWAY loses no message", async () => {
    let seen = 0
    using server = await fake((_, connection) => {
      if (++seen % 20 === 0) connection.close()
      return undefined
    })
    const provider = at(server)
    for (let left = sizes.pushes; left > 0; left -= 100) expect(await sent(provider, 100)).toBe(100)
    expect(server.opened()).toBeGreaterThan(1)
  })

  test("that breaks asks for another try", async () => {
    using server = await fake((_, connection) => {
      connection.destroy()
      return "nothing"
    })
    const outcome = await at(server).send(somePush())
    expect(outcome).toMatchObject({ status: "retry", fault: "connection" })
  })

  test.if(sizes.stalled_pushes > 0)("that says nothing is given up for a new one", async () => {
    using server = await fake(({ session }) => (session === 1 ? "nothing" : undefined))
    const provider = at(server)
    expect(await sent(provider, sizes.stalled_pushes)).toBe(0)
    expect(await sent(provider, sizes.stalled_pushes)).toBe(sizes.stalled_pushes)
    expect(server.opened()).toBe(2)
  })
})

test("a check shows what is wrong with the app, too", async () => {
  using server = await fake()
  const provider = at(server, { bundle_id: "com.example.unknown" })
  expect(provider.check?.()).rejects.toThrow("TopicDisallowed")
  expect(await at(server).check?.()).toBe("APNs accepts the credentials.")
})

test.each([
  ["no key", "-----BEGIN"],
  ["a key of RSA", pemOf(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey)],
  ["another curve", pemOf(generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey)],
])("%s is no key for APNs", (_, private_key) => {
  expect(apnsProvider.validate?.({ ...access, private_key })?.field).toBe("private_key")
})

providerContract(apnsProvider as never, async () => {
  const says: Record<string, ApnsSays> = {
    b1: { status: 503, reason: "ServiceUnavailable" },
    c1: { status: 400, reason: "BadDeviceToken" },
  }
  const server = await fake(({ path }) => says[path.slice(-2)])
  const to = (byte: string) => somePush({ device: { token: byte.repeat(32) } })
  return {
    credentials: { ...access },
    context: contextOf(server),
    messages: { accepted: to("a1"), deferred: to("b1"), refused: to("c1") },
    success: "sent",
    leave: server.close,
    async [Symbol.asyncDispose]() {
      server[Symbol.dispose]()
    },
  }
})
