import { describe, expect, test } from "bun:test"
import { createHash, createHmac } from "node:crypto"
import { SignJWT } from "jose"
import type { CallbackRequest } from "../../../src/providers/provider"
import { serviceAt } from "../../../src/sms/providers/provider"
import { vonageProvider } from "../../../src/sms/providers/vonage"
import { providerContract } from "../../contracts/provider"
import { serviceCase, smsContext, someText, textService } from "../../fakes/text-service"
import { vendorClient } from "../../harness/vendor-client"
import { refusal } from "../../store/facts"

const access = { api_key: "abcd1234", api_secret: "a-secret-of-the-api" }
const { Vonage } = vendorClient("@vonage/server-sdk")

const SECRET = "a-signature-secret-of-the-account-at-vonage"
const CALLBACK = "https://bell.example.com/v1/callbacks/sms/vonage/token"
const ID = "019a0000-0000-7000-8000-000000000001"

const context = (endpoint: string) => smsContext({ "providers.vonage.endpoint": endpoint })

const at = (
  url: string,
  own: Record<string, unknown> = { from: "Belfry" },
  callback: string | undefined = CALLBACK,
) => vonageProvider.open(access, context(url), { settings: own, callbackUrl: () => callback })

const sdk = (restHost: string) =>
  new Vonage({ apiKey: access.api_key, apiSecret: access.api_secret }, { restHost })

const part = (status: string, more: object = {}) => ({ to: "436601234567", status, ...more })

const taken = (id: string, price = "0.03330000") =>
  part("0", { "message-id": id, "message-price": price, "remaining-balance": "3.14" })

const answers = (...messages: object[]) => ({
  status: 200,
  body: { "message-count": String(messages.length), messages },
})

describe("beside the vendor's client, for the same input,", () => {
  test.each([
    ["from the sender of the configuration", {}, { from: "Belfry" }],
    ["from a number", { from: "+15005550006" }, { from: "15005550006" }],
    ["outside the alphabet of GSM", { text: "😀 день", encoding: "ucs2" }, { from: "Belfry" }],
  ])("a text %s is the same request", async (_, given, theirs) => {
    using server = textService(() => answers(taken("1")))
    const ours = someText(given)
    await at(server.url).send(ours)
    await sdk(server.url).sms.send({
      to: "436601234567",
      text: ours.text,
      type: ours.encoding === "gsm7" ? "text" : "unicode",
      clientRef: ID,
      statusReportReq: true,
      callback: CALLBACK,
      ...theirs,
    })
    const [request, expected] = server.requests
    if (!request || !expected) throw new Error("one of the two did not come")
    expect(request).toEqual(expected)
  })

  test("so is the question whether the credentials are good", async () => {
    using server = textService(() => ({ status: 200, body: { value: 10.28, autoReload: false } }))
    expect(await at(server.url).check?.()).toContain("The balance is 10.28 EUR")
    await sdk(server.url).accounts.getBalance()
    const [ours, theirs] = server.requests
    expect(ours).toEqual(theirs as NonNullable<typeof theirs>)
  })
})

test("without a public address of this server nothing asks for reports", async () => {
  using server = textService(() => answers(taken("1")))
  const provider = vonageProvider.open(access, context(server.url), {
    settings: { from: "Belfry" },
    callbackUrl: () => undefined,
  })
  await provider.send(someText())
  expect(Object.keys(server.requests[0]?.body ?? {})).not.toContain("callback")
})

test.each([
  ["https://rest.nexmo.com", "http://127.0.0.1:8080/x", undefined],
  ["https://rest.nexmo.com", "http://localhost:8080/x", undefined],
  ["https://rest.nexmo.com", "http://[fd00::1]/x", undefined],
  ["https://rest.nexmo.com", "https://bell.example.com/x", "https://bell.example.com/x"],
  ["https://rest.nexmo.com", undefined, undefined],
  ["http://127.0.0.1:9000", "http://localhost:8080/x", "http://localhost:8080/x"],
])("the service at %s reports to %p as %p", (service, ours, told) => {
  expect(serviceAt(service, () => ours).callbackUrl()).toBe(told)
})

test("without a sender nothing leaves, and another provider may send it", async () => {
  using server = textService(() => answers(taken("1")))
  const outcome = await at(server.url, {}).send(someText())
  expect([outcome.status, outcome.fault]).toEqual(["failed", "infrastructure"])
  expect(server.requests).toEqual([])
})

const WANTED = {
  refused: ["failed", undefined],
  forbidden: ["failed", "infrastructure"],
  throttled: ["retry", "infrastructure"],
  credentials: ["failed", "authentication"],
  outage: ["retry", "infrastructure"],
} as const

test.each([
  ["throttled", [1, 10]],
  ["refused", [2, 3, 6, 7, 12, 16, 20, 22, 33, 999]],
  ["credentials", [4, 8, 9, 11, 14, 32]],
  ["outage", [5, 13]],
  ["forbidden", [15, 19, 23, 29]],
] as const)("%s is what the statuses %j mean", async (meaning, statuses) => {
  let status = 0
  using server = textService(() => answers(part(String(status), { "error-text": "no" })))
  for (status of statuses) {
    const outcome = await at(server.url).send(someText())
    expect([status, outcome.status, outcome.fault]).toEqual([status, ...WANTED[meaning]])
    expect([outcome.reason, outcome.reply.provider_code]).toEqual([`${status}: no`, `${status}`])
  }
})

test.each([
  [401, { "error-code-label": "authentication failed" }, "credentials"],
  [402, {}, "credentials"],
  [403, { title: "Forbidden" }, "forbidden"],
  [404, "<html>", "credentials"],
  [400, { detail: "bad" }, "refused"],
  [429, "", "throttled"],
  [500, "", "outage"],
  [503, {}, "outage"],
  [302, "", "outage"],
] as const)("HTTP %d with %j means %s", async (status, body, meaning) => {
  using server = textService(() => ({ status, body }))
  const outcome = await at(server.url).send(someText())
  expect([outcome.status, outcome.fault]).toEqual([...WANTED[meaning]])
  expect(outcome.reason).toStartWith(`HTTP ${status}: `)
})

test.each([
  ["no JSON", "<html>"],
  ["no messages", {}],
  ["a message without a status", { messages: [{}] }],
  ["messages that are none", { messages: [null] }],
])("an answer with %s leaves it unknown whether the text was taken", async (_, body) => {
  using server = textService(() => ({ status: 200, body }))
  const outcome = await at(server.url).send(someText())
  expect([outcome.status, outcome.reason]).toEqual(["sent", "unconfirmed"])
})

test("the parts of a text are one text: the first id, and the sum of the prices", async () => {
  const prices = ["0.1", "0.20000000", "0.00000001"]
  using server = textService(() => answers(...prices.map((price, i) => taken(`id-${i}`, price))))
  expect(await at(server.url).send(someText())).toMatchObject({
    status: "sent",
    reason: null,
    provider_message_id: "id-0",
    sender: "Belfry",
    reply: { price: { amount: "0.30000001", currency: "EUR" }, response: "200 id-0" },
  })
})

test("a text of which one part was taken is sent, and says which part was not", async () => {
  const body = answers(part("1", { "error-text": "too fast" }), taken("id-1"), part("9"))
  using server = textService(() => body)
  expect(await at(server.url).send(someText())).toMatchObject({
    status: "sent",
    provider_message_id: "id-1",
    reply: { response: "200 id-1 1 of 3 parts: too fast", provider_code: "1" },
  })
})

test("a number outside the allowed countries is not taken", () => {
  const provider = at("http://127.0.0.1:9", { allowed_countries: ["+43"] })
  const of = (to: string) => provider.takes?.(someText({ to: [to] }))
  expect([of("+436601234567"), of("+491701234567")]).toEqual([true, false])
})

test("a key that Vonage does not know shows in the check", async () => {
  const body = { "error-code": "401", "error-code-label": "authentication failed" }
  using server = textService(() => ({ status: 401, body }))
  expect(await refusal(at(server.url).check?.() ?? Promise.resolve())).toContain("failed")
})

const RECEIPT = {
  msisdn: "436601234567",
  to: "Belfry",
  "network-code": "23203",
  messageId: "0C000000217B7F02",
  price: "0.03330000",
  status: "delivered",
  scts: "2011291400",
  "err-code": "0",
  "api-key": "abcd1234",
  "client-ref": ID,
  "message-timestamp": "2020-11-29 14:00:00",
}

const INBOUND = {
  msisdn: "436601234567",
  to: "15005550006",
  messageId: "0B0000004B65F62F",
  text: "STOP & a=b",
  type: "text",
  keyword: "STOP",
  "message-timestamp": "2020-11-29 14:00:00",
  timestamp: "1606658400",
  nonce: "aaaaaaaa-bbbb-cccc-dddd-0123456789ab",
}

function callOf(fields: Record<string, string>, how: "GET" | "POST" | "JSON" = "GET") {
  const form = new URLSearchParams(fields).toString()
  const body = how === "GET" ? "" : how === "JSON" ? JSON.stringify(fields) : form
  const request: CallbackRequest = {
    method: how === "GET" ? "GET" : "POST",
    url: how === "GET" ? `${CALLBACK}?${form}` : CALLBACK,
    headers: new Headers(),
    body: Buffer.from(body),
    fields,
  }
  return request
}

const callbacks = vonageProvider.callbacks
if (!callbacks) throw new Error("no callbacks")

const given = (request: CallbackRequest, signature_secret: string | undefined = SECRET) => ({
  request,
  access: { ...access, ...(signature_secret !== "" && { signature_secret }) },
  context: context("http://127.0.0.1:9"),
  network: { allow_private: [] },
})

const verified = (request: CallbackRequest, secret?: string) =>
  callbacks.verify(given(request, secret))

const read = (fields: Record<string, string>) => callbacks.read(given(callOf(fields)))

describe("the parameter sig", () => {
  const sign = (fields: Record<string, string>, algorithm: string) => {
    const signed = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1))
    const query = signed.map(([name, value]) => `&${name}=${value.replace(/[&=]/g, "_")}`).join("")
    return algorithm === "MD5HASH"
      ? createHash("md5")
          .update(query + SECRET)
          .digest("hex")
      : createHmac(algorithm, SECRET).update(query).digest("hex").toUpperCase()
  }

  test.each([
    ["MD5HASH", "MD5HASH"],
    ["md5", "MD5HMAC"],
    ["sha1", "SHA1HMAC"],
    ["sha256", "SHA256HMAC"],
    ["sha512", "SHA512HMAC"],
  ])("by %s counts for us as for the vendor, and no byte may differ", async (algorithm, theirs) => {
    const { sms } = sdk("http://127.0.0.1:9")
    type Algorithm = Parameters<typeof sms.verifySignature>[3]
    const vendor = ({ sig = "", ...fields }: Record<string, string>, secret = SECRET) =>
      sms.verifySignature(sig, fields, secret, theirs as Algorithm)
    for (const fields of [RECEIPT, INBOUND]) {
      const signed: Record<string, string> = { ...fields, sig: sign(fields, algorithm) }
      expect([vendor(signed), await verified(callOf(signed))]).toEqual([true, true])
      expect(await verified(callOf(signed, "POST"))).toBe(true)
      expect(await verified(callOf(signed, "JSON"))).toBe(true)
      const forged = Object.keys(signed).map((name) => ({
        ...signed,
        [name]: (signed[name] ?? "").replace(/^./, (one) => (one === "0" ? "1" : "0")),
      }))
      for (const fake of [...forged, { ...signed, more: "1" }, fields]) {
        expect([vendor(fake), await verified(callOf(fake))]).toEqual([false, undefined])
      }
      expect([vendor(signed, "x"), await verified(callOf(signed), "x")]).toEqual([false, undefined])
    }
  })

  test("does not count for values that it cannot cover", async () => {
    const request = callOf({
      ...RECEIPT,
      sig: sign({ ...RECEIPT, x: "[object Object]" }, "sha256"),
    })
    Object.assign(request.fields, { x: { status: "delivered" } })
    expect(await verified(request)).toBeUndefined()
  })
})

describe("the token of a signed webhook", () => {
  const sha256 = (body: Uint8Array) => createHash("sha256").update(body).digest("hex")
  const token = (claims: object, secret = SECRET, alg = "HS256") =>
    new SignJWT({ iss: "Vonage", api_key: access.api_key, ...claims })
      .setProtectedHeader({ alg })
      .setIssuedAt()
      .sign(Buffer.from(secret))
  const withToken = async (claims: object, request = callOf(RECEIPT, "JSON"), ...by: string[]) => {
    const payload_hash = sha256(request.body)
    request.headers.set(
      "authorization",
      `Bearer ${await token({ payload_hash, ...claims }, ...by)}`,
    )
    return request
  }
  const now = Math.floor(Date.now() / 1000)

  test("proves the body that it names", async () => {
    const request = await withToken({})
    expect(await verified(request)).toBe(true)
    const flipped = { ...request, body: Buffer.from(request.body) }
    flipped.body[5] = 0
    expect(await verified(flipped)).toBeUndefined()
  })

  test.each([
    ["of another secret", {}, ["another"]],
    ["with another algorithm", {}, [SECRET, "HS512"]],
    ["that is over", { exp: now - 60 }, []],
    ["without the body's hash", { payload_hash: undefined }, []],
  ])("%s counts for nothing", async (_, claims, by) => {
    expect(await verified(await withToken(claims, undefined, ...by))).toBeUndefined()
  })

  test("does not prove what stands in the address", async () => {
    const request = callOf(RECEIPT, "JSON")
    const beside = await withToken({}, { ...request, url: `${CALLBACK}?text=STOP` })
    const alone = await withToken({}, callOf(RECEIPT, "GET"))
    expect([await verified(beside), await verified(alone)]).toEqual([undefined, undefined])
  })
})

test("without a signature secret the address alone proves the call", async () => {
  expect(await verified(callOf(RECEIPT), "")).toBe(true)
})

test.each([
  ["delivered", "0", ["delivered"]],
  ["accepted", "0", ["sent"]],
  ["buffered", "0", ["sent"]],
  ["expired", "2", ["undelivered"]],
  ["failed", "6", ["undelivered"]],
  ["rejected", "4", ["undelivered"]],
  ["rejected", "9", ["undelivered"]],
])("the receipt %s with the code %s tells %j", async (status, code, types) => {
  const report = await read({ ...RECEIPT, status, "err-code": code })
  expect(report).toMatchObject({ provider_message_id: RECEIPT.messageId, message_id: ID })
  expect(report?.notices.map(({ type }) => type)).toEqual(types as ["sent"])
  const provider_code = code === "0" ? undefined : code
  expect(report?.notices[0]?.provider_code).toBe(provider_code)
  expect(report?.notices[0]?.opted_out).toBe(code === "9" ? true : undefined)
})

test.each([
  ["an unknown status", { ...RECEIPT, status: "unknown" }],
  ["a status that every object has", { ...RECEIPT, status: "constructor" }],
  ["a binary message", { ...INBOUND, text: undefined, data: "00", type: "binary" }],
  ["nothing", {}],
])("%s changes nothing", async (_, fields) => {
  expect(await read(fields as unknown as Record<string, string>)).toBeUndefined()
})

test("a reference that is none of ours names no message", async () => {
  expect(await read({ ...RECEIPT, "client-ref": "order 7" })).not.toHaveProperty("message_id")
})

test("a text that came is read with its numbers in E.164", async () => {
  expect(await read(INBOUND)).toEqual({
    notices: [],
    received: {
      provider_message_id: INBOUND.messageId,
      from: "+436601234567",
      to: "+15005550006",
      text: "STOP & a=b",
    },
  })
})

providerContract(vonageProvider, async () =>
  serviceCase({ ...access }, "providers.vonage.endpoint", ({ authorization }, number) => {
    if (authorization !== "abcd1234:a-secret-of-the-api") return { status: 401, body: {} }
    if (number === undefined) return { status: 200, body: { value: 1 } }
    if (number === "1") return answers(part("1", { "error-text": "too fast" }))
    return answers(number === "6" ? part("6", { "error-text": "no" }) : taken("1"))
  }),
)
