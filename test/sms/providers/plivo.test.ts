import { describe, expect, test } from "bun:test"
import { createHmac } from "node:crypto"
import type { CallbackRequest } from "../../../src/providers/provider"
import { plivoProvider } from "../../../src/sms/providers/plivo"
import { providerContract } from "../../contracts/provider"
import { serviceCase, smsContext, someText, textService } from "../../fakes/text-service"
import { vendorClient } from "../../harness/vendor-client"

const { Client, validateSignature, validateV3Signature } = vendorClient("plivo")

const access = { auth_id: "MAXXXXXXXXXXXXXXXXXX", auth_token: "a-token-of-the-account-at-plivo" }
const CALLBACK = "https://bell.example.com/v1/callbacks/sms/plivo/token"
const ID = "019a0000-0000-7000-8000-000000000001"

const context = (endpoint: string) => smsContext({ "providers.plivo.endpoint": endpoint })

const at = (url: string, own: Record<string, unknown> = { from: "+15005550006" }) =>
  plivoProvider.open(access, context(url), { settings: own, callbackUrl: () => CALLBACK })

const TAKEN = { status: 202, body: { api_id: "a", message_uuid: ["uuid-1"] } }

test("a text and the check are the requests of the vendor's client, for the same input", async () => {
  const account = { auth_id: access.auth_id, cash_credits: "12.3" }
  using server = textService(({ method }) =>
    method === "GET" ? { status: 200, body: account } : TAKEN,
  )
  const { auth_id, auth_token } = access
  const url = `${server.url}/v1/Account/${auth_id}`
  const client = new Client(auth_id, auth_token, { url } as object)
  const options = { url: `${CALLBACK}?id=${ID}`, method: "POST" }
  await at(server.url).send(someText())
  await client.messages.create("+15005550006", "+436601234567", someText().text, options)
  expect(await at(server.url).check?.()).toContain("The credit is 12.3 USD")
  await client.accounts.get()
  const [ours, theirs, our_check, their_check] = server.requests
  if (!theirs || !their_check) throw new Error("one of the requests did not come")
  expect([ours, our_check]).toEqual([theirs, { ...their_check, path: `${new URL(url).pathname}/` }])
})

const WANTED = {
  sent: ["sent", undefined],
  refused: ["failed", undefined],
  forbidden: ["failed", "infrastructure"],
  throttled: ["retry", "infrastructure"],
  credentials: ["failed", "authentication"],
  outage: ["retry", "infrastructure"],
} as const

test.each([
  [202, { message_uuid: ["uuid-1"] }, "sent", null],
  [200, "<html>", "sent", "unconfirmed"],
  [202, { message_uuid: [] }, "sent", "unconfirmed"],
  [
    202,
    { message_uuid: [], invalid_number: ["1"] },
    "refused",
    "HTTP 202: the number is not valid",
  ],
  [400, { error: "dst is not valid" }, "refused", "HTTP 400: dst is not valid"],
  [400, { error: { src: ["bad"] } }, "refused", 'HTTP 400: {"src":["bad"]}'],
  [400, { error: "Insufficient Credit" }, "credentials", "HTTP 400: Insufficient Credit"],
  [401, "Could not verify", "credentials", "HTTP 401: no reason was given"],
  [402, {}, "credentials", "HTTP 402: no reason was given"],
  [403, { error: "geo" }, "forbidden", "HTTP 403: geo"],
  [404, {}, "credentials", "HTTP 404: no reason was given"],
  [405, {}, "credentials", "HTTP 405: no reason was given"],
  [406, { message: "no" }, "refused", "HTTP 406: no"],
  [429, {}, "throttled", "HTTP 429: no reason was given"],
  [500, {}, "outage", "HTTP 500: no reason was given"],
  [503, "", "outage", "HTTP 503: no reason was given"],
] as const)("%d with %j means %s", async (status, body, meaning, reason) => {
  using server = textService(() => ({ status, body }))
  const outcome = await at(server.url).send(someText())
  expect([outcome.status, outcome.fault, outcome.reason]).toEqual([...WANTED[meaning], reason])
  if (reason === null) expect(outcome.provider_message_id).toBe("uuid-1")
})

test("a text without a sender, or to a country that is not allowed, is left to others", async () => {
  const { status, fault } = await at("http://127.0.0.1:9", {}).send(someText())
  expect([status, fault]).toEqual([...WANTED.forbidden])
  expect(at("http://127.0.0.1:9", { allowed_countries: ["+1"] }).takes?.(someText())).toBe(false)
})

const REPORT = {
  From: "15005550006",
  To: "436601234567",
  MessageUUID: "d0f1a2b4-5c6d-11eb-8ecd-0242ac110005",
  Status: "delivered",
  TotalAmount: "0.00700",
  ErrorCode: "000",
}

const INBOUND = {
  From: "436601234567",
  To: "Belfry",
  Text: "Grüße + 1 & a=b 😀",
  Type: "sms",
  MessageUUID: "e0f1",
}

const { callbacks } = plivoProvider
if (!callbacks) throw new Error("no callbacks")

type Form = Record<string, string> | [string, string][]

function callOf(form: Form, method: "GET" | "POST", address = `${CALLBACK}?id=${ID}&b=2&b=1`) {
  const told = new URLSearchParams(form).toString()
  const url =
    method === "GET" && told ? `${address}${address.includes("?") ? "&" : "?"}${told}` : address
  const fields = Object.fromEntries([...new URL(url).searchParams, ...new URLSearchParams(form)])
  const body = Buffer.from(method === "POST" ? told : "")
  const request: CallbackRequest = { method, url, headers: new Headers(), body, fields }
  return request
}

const given = (request: CallbackRequest) => ({
  request,
  access,
  context: context("http://127.0.0.1:9"),
  network: { allow_private: [] },
})

const verified = (request: CallbackRequest) => callbacks.verify(given(request))

describe("a signature", () => {
  const NONCE = "05429567804466091622"
  const mac = (signed: string, token = access.auth_token) =>
    createHmac("sha256", token).update(signed).digest("base64")
  /** Ours and the vendor's word on the same call. */
  const judged = async (request: CallbackRequest, signature: string) => {
    const headers = { "X-Plivo-Signature-V3": signature, "X-Plivo-Signature-V3-Nonce": NONCE }
    const posted = new URLSearchParams(Buffer.from(request.body).toString())
    const params: Record<string, string[]> = {}
    for (const name of posted.keys()) params[name] = posted.getAll(name)
    const { method, url } = request
    return [
      (await verified({ ...request, headers: new Headers(headers) })) ?? false,
      validateV3Signature(method, url, NONCE, access.auth_token, signature, params),
    ]
  }
  const told = "MessageUUIDe0f1TextGrüße + 1 & a=b 😀"
  const short = { Text: INBOUND.Text, MessageUUID: "e0f1" }

  test.each<[string, CallbackRequest, string]>([
    ["of a form", callOf(short, "POST"), `${CALLBACK}?b=1&b=2&id=${ID}.${told}`],
    ["of a form alone", callOf(short, "POST", CALLBACK), `${CALLBACK}?${told}`],
    ["of no form", callOf({}, "POST"), `${CALLBACK}?b=1&b=2&id=${ID}`],
    ["of an address alone", callOf({}, "GET", CALLBACK), CALLBACK],
    ["of a port", callOf({ a: "1" }, "GET", "http://x.test:81/a/"), "http://x.test:81/a/?a=1"],
    [
      "of a query",
      callOf(short, "GET"),
      `${CALLBACK}?MessageUUID=e0f1&Text=${INBOUND.Text}&b=1&b=2&id=${ID}`,
    ],
    [
      "of names that come twice",
      callOf([...Object.entries(short), ["Text", "A"]], "POST", CALLBACK),
      `${CALLBACK}?${told.replace("Text", "TextAText")}`,
    ],
  ])("%s is right for us as for the vendor, and no byte may differ", async (_, request, signed) => {
    const right = mac(`${signed}.${NONCE}`)
    expect(await judged(request, right)).toEqual([true, true])
    expect(await judged(request, `${mac("old")},${right}`)).toEqual([true, true])
    const body = Buffer.from(request.body)
    if (body.length > 0) body[body.length - 1] = 0x42
    const forged: [CallbackRequest, string][] = [
      [{ ...request, url: request.url.replace("bell.", "bull.").replace("x.", "y.") }, right],
      [{ ...request, url: `${request.url}${request.url.includes("?") ? "&" : "?"}x=1` }, right],
      [request, mac(`${signed}.${NONCE}`, "another")],
      [request, mac(`${signed}.1`)],
      [request, right.toLowerCase()],
      [request, ""],
      ...(body.length > 0 ? [[{ ...request, body }, right] as [CallbackRequest, string]] : []),
    ]
    for (const [fake, signature] of forged) {
      expect(await judged(fake, signature)).toEqual([false, false])
    }
  })

  test("of version 2 counts where there is none of version 3", async () => {
    const right = mac(CALLBACK + NONCE)
    expect(validateSignature(`${CALLBACK}?id=1`, NONCE, right, access.auth_token)).toBe(true)
    const call = (headers: Record<string, string>) =>
      verified({ ...callOf(REPORT, "POST"), headers: new Headers(headers) })
    const nonce = { "x-plivo-signature-v2-nonce": NONCE }
    expect(await call({ ...nonce, "x-plivo-signature-v2": right })).toBe(true)
    expect(await call({ ...nonce, "x-plivo-signature-ma-v2": right })).toBe(true)
    const fakes: Record<string, string>[] = [
      nonce,
      { "x-plivo-signature-v2": right },
      {},
      { ...nonce, "x-plivo-signature-v2": mac("x") },
      { ...nonce, "x-plivo-signature-v2": right, "x-plivo-signature-v3": "x" },
      {
        "x-plivo-signature-v2-nonce": "?MessageUUID=1.7",
        "x-plivo-signature-v2": mac(`${CALLBACK}?MessageUUID=1.7`),
      },
    ]
    for (const headers of fakes) expect(await call(headers)).toBeUndefined()
  })
})

test.each([
  ["queued", "000", undefined],
  ["sent", "000", ["sent"]],
  ["delivered", "000", ["delivered"]],
  ["read", "000", ["delivered"]],
  ["failed", "900", ["failed"]],
  ["rejected", "40", ["failed"]],
  ["undelivered", "30", ["undelivered"]],
  ["undelivered", "999", ["undelivered"]],
  ["undelivered", "200", ["undelivered"]],
  ["constructor", "000", undefined],
])("the report %s with the code %s tells %j", async (Status, ErrorCode, types) => {
  const report = await callbacks.read(given(callOf({ ...REPORT, Status, ErrorCode }, "POST")))
  expect(report?.notices.map(({ type }) => type)).toEqual(types as ["sent"])
  if (!types) return
  expect(report).toMatchObject({ provider_message_id: REPORT.MessageUUID, message_id: ID })
  expect(report?.notices[0]).toMatchObject({ price: { amount: "0.00700", currency: "USD" } })
  expect(report?.notices[0]?.provider_code).toBe(ErrorCode === "000" ? undefined : ErrorCode)
  expect(report?.notices[0]?.opted_out).toBe(ErrorCode === "200" ? true : undefined)
})

test("a text that came is read with its number in E.164, and a name stays a name", async () => {
  const { received } = (await callbacks.read(given(callOf(INBOUND, "POST")))) ?? {}
  const { Text, MessageUUID: provider_message_id } = INBOUND
  expect(received).toEqual({ provider_message_id, from: "+436601234567", to: "Belfry", text: Text })
  expect(await callbacks.read(given(callOf({}, "POST")))).toBeUndefined()
})

test.each([
  ["optout", "stop"],
  ["optin", "start"],
  ["help", "help"],
  ["", undefined],
  ["constructor", undefined],
])(
  "the intent %p that Plivo sees makes a text with pictures %p",
  async (MessageIntent, keyword) => {
    const { Text, ...fields } = INBOUND
    const call = callOf({ ...fields, Body: Text, MessageIntent }, "POST")
    const report = await callbacks.read(given(call))
    expect([report?.received?.text, report?.received?.keyword] as unknown).toEqual([Text, keyword])
  },
)

providerContract(plivoProvider, async () =>
  serviceCase({ ...access }, "providers.plivo.endpoint", ({ authorization }, number) => {
    const { auth_id, auth_token } = access
    if (authorization !== `${auth_id}:${auth_token}`) return { status: 401, body: {} }
    if (number === undefined) return { status: 200, body: { auth_id } }
    if (number === "1") return { status: 429, body: {} }
    return number === "6" ? { status: 400, body: { error: "no" } } : TAKEN
  }),
)
