import { describe, expect, test } from "bun:test"
import { settings } from "../../../src/core/config"
import type { CallbackRequest } from "../../../src/providers/provider"
import type { SmsContext } from "../../../src/sms/providers/provider"
import { twilioProvider } from "../../../src/sms/providers/twilio"
import { providerContract } from "../../contracts/provider"
import { twilioServer } from "../../fakes/twilio-server"
import { vendorClient } from "../../harness/vendor-client"
import { refusal } from "../../store/facts"

const access = {
  account_sid: `AC${"a1".repeat(16)}`,
  auth_token: "0123456789abcdef0123456789abcdef",
}
const key = { api_key_sid: `SK${"b2".repeat(16)}`, api_key_secret: "a-secret-of-the-key" }
const SERVICE = `MG${"c3".repeat(16)}`
const twilio = vendorClient("twilio")

const CALLBACK = "https://bell.example.com/v1/callbacks/sms/twilio/token"

const context = (endpoint: string): SmsContext => ({
  settings: { ...settings(), "providers.twilio.endpoint": endpoint },
  allow_private: [],
  simulator: { show: async () => {}, report: async () => {} },
})

const text = (to = "+436601234567", from: string | null = null) => ({
  message_id: "019a0000-0000-7000-8000-000000000001",
  project_id: "019a0000-0000-7000-8000-000000000002",
  to: [to],
  from,
  text: "Grüß Gott & 50 % = 1 + 1 😀\n€",
  encoding: "ucs2" as const,
  attempt: 1,
})

const at = (
  url: string,
  own: Record<string, unknown> = { from: "+15005550006" },
  credentials: object = access,
) =>
  twilioProvider.open({ ...access, ...credentials }, context(url), {
    settings: own,
    callbackUrl: () => CALLBACK,
  })

/** The vendor's own client, with our server in the place of its own. */
function sdk(url: string, ...[user, password]: string[]) {
  const { account_sid: accountSid, auth_token } = access
  const client = twilio(user ?? accountSid, password ?? auth_token, { accountSid })
  client.api.baseUrl = url
  return client
}

describe("beside the vendor's client, for the same input,", () => {
  const statusCallback = `${CALLBACK}?id=${text().message_id}`
  const given = { to: text().to[0] ?? "", body: text().text, statusCallback }

  test.each([
    ["the sender of the configuration", {}, null, { from: "+15005550006" }],
    ["a sender of its own", { messaging_service_sid: SERVICE }, "BELL", { from: "BELL" }],
    [
      "a messaging service",
      { messaging_service_sid: SERVICE },
      null,
      { messagingServiceSid: SERVICE },
    ],
    [
      "the sender of a country",
      { per_country_from: { "+4": "+41", "+43": "+4366" } },
      null,
      { from: "+4366" },
    ],
  ])("a text with %s is the same request", async (_, own, from, theirs) => {
    using server = twilioServer()
    await at(server.url, { from: "+15005550006", ...own }).send(text(undefined, from))
    await sdk(server.url).messages.create({ ...given, ...theirs })
    const [ours, expected] = server.requests
    if (!ours || !expected) throw new Error("one of the two did not come")
    expect(ours).toEqual(expected)
  })

  test("an API key logs in the same way, and the check asks for the same", async () => {
    using server = twilioServer()
    await at(server.url, {}, key).send(text())
    await at(server.url, {}, key).check?.()
    const client = sdk(server.url, key.api_key_sid, key.api_key_secret)
    await client.messages.create(given)
    await sdk(server.url).api.v2010.accounts(access.account_sid).fetch()
    await client.messages.page({ pageSize: 1 })
    const seen = server.requests.map(({ content_type: _, ...one }) => one)
    expect(seen.slice(0, 3)).toEqual(seen.slice(3))
  })
})

test("what Twilio takes is sent, with its id, its sender and what it costs", async () => {
  const body = { sid: "SM1", status: "accepted", from: "+15005550009" }
  const priced = { ...body, price: "-0.00750", price_unit: "USD" }
  using server = twilioServer(() => ({ status: 201, body: priced }))
  expect(await at(server.url).send(text())).toMatchObject({
    status: "sent",
    reason: null,
    provider_message_id: "SM1",
    sender: "+15005550009",
    reply: { price: { amount: "0.00750", currency: "USD" } },
  })
})

test("a number outside the allowed countries is not taken", () => {
  const provider = at("http://127.0.0.1:9", { allowed_countries: ["+43"] })
  const taken = ["+436601234567", "+491701234567"].map((to) => provider.takes?.(text(to)))
  expect(taken).toEqual([true, false])
})

const WANTED = {
  refused: ["failed", undefined],
  opted_out: ["failed", undefined],
  forbidden: ["failed", "infrastructure"],
  throttled: ["retry", "infrastructure"],
  credentials: ["failed", "authentication"],
  outage: ["retry", "infrastructure"],
} as const

test.each([
  ["refused", 400, [21211, 21214, 21217, 21265, 21266, 21268, 21401, 21604, 21614, 21635]],
  ["refused", 400, [21602, 21605, 21617, 21618, 21619, 21620, 29999]],
  ["opted_out", 400, [21610]],
  ["forbidden", 400, [21212, 21219, 21408, 21603, 21606, 21607, 21608, 21609, 21612, 21659]],
  ["forbidden", 400, [21660, 21661, 21701, 21702, 21703, 21704, 21705]],
  ["forbidden", 403, [21408, 21267, 29999]],
  ["throttled", 429, [20429, 14107, 29999]],
  ["throttled", 400, [21611, 30001, 30022]],
  ["credentials", 401, [20003, 20151, 29999]],
  ["credentials", 403, [20003, 20005, 20006, 20008]],
  ["credentials", 404, [20404, 29999]],
  ["outage", 503, [20503, 29999]],
  ["outage", 500, [20500]],
  ["outage", 400, [21730]],
] as const)("%s comes from %d with %j", async (meaning, status, codes) => {
  let code: number = codes[0]
  using server = twilioServer(() => ({ status, body: { code, message: "no", status } }))
  for (code of codes) {
    const outcome = await at(server.url).send(text())
    const { fault, opted_out, reason, reply } = outcome
    expect([code, outcome.status, fault]).toEqual([code, ...WANTED[meaning]])
    expect(opted_out).toBe(meaning === "opted_out" ? true : undefined)
    expect([reason, reply.provider_code]).toEqual([`${code}: no`, String(code)])
  }
})

test.each([
  ["an answer without a SID", 201, "{}", "sent", "unconfirmed"],
  ["an answer that is no JSON", 200, "<html>", "sent", "unconfirmed"],
  ["a page of a proxy", 502, "<html>", "retry", "HTTP 502: no reason was given"],
  ["a redirect", 307, "", "retry", "HTTP 307: no reason was given"],
  ["an error of RFC 9457", 400, '{"code":21211,"detail":"bad"}', "failed", "21211: bad"],
])("%s is read, too", async (_, status, body, wanted, reason) => {
  using odd = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(body, { status }),
  })
  const outcome = await at(`http://127.0.0.1:${odd.port}`).send(text())
  expect([outcome.status, outcome.reason]).toEqual([wanted as "sent", reason])
})

test("a suspended account and a wrong API key show in the check", async () => {
  using server = twilioServer(({ path }) =>
    path.includes("Messages")
      ? { status: 401, body: { code: 20003, message: "Authenticate" } }
      : { status: 200, body: { sid: "AC", status: path.includes("a1") ? "active" : "suspended" } },
  )
  const suspended = at(server.url, {}, { account_sid: "AC0" }).check?.() ?? Promise.resolve()
  expect(await refusal(suspended)).toContain("suspended")
  expect(await refusal(at(server.url, {}, key).check?.() ?? Promise.resolve())).toContain("20003")
  expect(await at(server.url).check?.()).toContain("active")
  expect(at(server.url).proves_login).toBe(false)
})

test("an API key comes with its secret", () => {
  expect(twilioProvider.validate?.({ ...access, ...key })).toBeUndefined()
  const { api_key_sid } = key
  expect(twilioProvider.validate?.({ ...access, api_key_sid })?.field).toBe("api_key_secret")
})

const ask = (request: Partial<CallbackRequest>) => {
  const {
    method = "POST",
    url = CALLBACK,
    headers = new Headers(),
    body = Buffer.alloc(0),
  } = request
  const fields = {
    ...Object.fromEntries(new URL(url).searchParams),
    ...Object.fromEntries(new URLSearchParams(Buffer.from(body).toString())),
    ...request.fields,
  }
  const network = { allow_private: [] }
  const call = { method, url, headers, body, fields }
  return { request: call, access, context: context("https://api.twilio.com"), network }
}

const verify = async (request: Partial<CallbackRequest>) =>
  (await twilioProvider.callbacks?.verify(ask(request))) === true

const {
  getExpectedTwilioSignature,
  getExpectedBodyHash,
  validateRequest,
  validateRequestWithBody,
} = twilio

const signed = (signature: string) => new Headers({ "X-Twilio-Signature": signature })

describe("callbacks, beside the vendor's verifier,", () => {
  const URLS = [
    CALLBACK,
    `${CALLBACK}?id=019a&b=%20x`,
    `${CALLBACK}?Body=I'm`,
    "https://bell.example.com:443/v1/x",
    "https://bell.example.com:8443/v1/x?id=1",
    "http://10.0.0.1/x",
    "http://10.0.0.1:80/",
    "http://[::1]:8080/x?a=https://b:1",
  ]
  const FORMS = [
    "",
    "MessageSid=SM1&MessageStatus=delivered&ErrorCode=",
    "To=%2B43&Body=Gr%C3%BC%C3%9F+%F0%9F%98%80+%26+%3D+%25&a=2&A=1&_=x",
    "twice=b&twice=a&twice=b&z=",
  ]
  const paramsOf = (form: URLSearchParams) =>
    Object.fromEntries(
      [...form].map(([name, value]) => {
        const all = form.getAll(name)
        return [name, all.length > 1 ? all : value]
      }),
    )

  test("what it accepts and refuses ours accepts and refuses", async () => {
    const { auth_token } = access
    let [good, bad] = [0, 0]
    for (const url of URLS) {
      for (const form of FORMS) {
        const params = paramsOf(new URLSearchParams(form))
        const body = Buffer.from(form)
        const right = getExpectedTwilioSignature(auth_token, url, params)
        const tries: [string, string][] = [
          [right, url],
          [right, url.replace(/:(443|80)(?=\/|$)/, "")],
          [right, url.replace(/(example.com|10\.0\.0\.1)(?=\/|$)/, "$1:443")],
          [right, url.replace(/(example.com|10\.0\.0\.1)(?=\/|$)/, "$1:80")],
          [right, url.replace("bell", "hell").replace("10.0.0.1", "10.0.0.2")],
          [right, `${url}x`],
          [`${right.startsWith("A") ? "B" : "A"}${right.slice(1)}`, url],
          [right.slice(1), url],
          [getExpectedTwilioSignature("another token", url, params), url],
        ]
        for (const [signature, called] of tries) {
          const theirs = validateRequest(auth_token, signature, called, params)
          expect([called, await verify({ url: called, headers: signed(signature), body })]).toEqual(
            [called, theirs],
          )
          theirs ? good++ : bad++
        }
      }
    }
    expect([good > URLS.length * FORMS.length, bad > good]).toEqual([true, true])
  })

  test("so it is with a signed body of JSON", async () => {
    const body = '{"MessageSid":"SM1"}'
    const url = `${CALLBACK}?id=1&bodySHA256=${getExpectedBodyHash(body)}`
    const signature = getExpectedTwilioSignature(access.auth_token, url, {})
    for (const [called, sent] of [
      [url, body],
      [url, body.replace("SM1", "SM2")],
      [url.replace("id=1", "id=2"), body],
      [CALLBACK, body],
    ] as const) {
      const theirs = validateRequestWithBody(access.auth_token, signature, called, sent)
      const ours = await verify({
        url: called,
        headers: signed(signature),
        body: Buffer.from(sent),
      })
      expect(ours).toBe(theirs)
    }
  })

  test("a flipped byte in any place is refused, and so is no signature", async () => {
    const params = { From: "+436601234567", To: "+15005550006", Body: "STOP", MessageSid: "SM1" }
    const body = Buffer.from(new URLSearchParams(params).toString())
    const headers = signed(getExpectedTwilioSignature(access.auth_token, CALLBACK, params))
    expect(await verify({ headers, body })).toBe(true)
    expect(await verify({ body })).toBe(false)
    expect(await verify({ headers, body: Buffer.concat([body, Buffer.from("&x=1")]) })).toBe(false)
    for (let at = 0; at < body.length; at++) {
      const flipped = Buffer.from(body)
      flipped[at] = (flipped[at] ?? 0) ^ 1
      expect(await verify({ headers, body: flipped })).toBe(false)
    }
  })

  test("a signature over an address alone covers no body", async () => {
    const headers = signed(getExpectedTwilioSignature(access.auth_token, CALLBACK, {}))
    expect(await verify({ method: "GET", headers })).toBe(true)
    expect(await verify({ headers, body: Buffer.from('{"MessageStatus":"failed"}') })).toBe(false)
  })
})

const read = (fields: Record<string, string>) => twilioProvider.callbacks?.read(ask({ fields }))

test.each([
  ["queued", undefined],
  ["sending", undefined],
  ["accepted", undefined],
  ["constructor", undefined],
  ["sent", "sent"],
  ["delivered", "delivered"],
  ["undelivered", "undelivered"],
  ["failed", "failed"],
  ["canceled", "failed"],
] as const)("the status %s is reported as %s", async (MessageStatus, type) => {
  const report = await read({ MessageSid: "SM1", MessageStatus, id: text().message_id })
  const known = { provider_message_id: "SM1", message_id: text().message_id }
  expect(report).toEqual(type && { ...known, notices: [{ type, response: null }] })
})

test("a report of an error has its words, and one of an opt-out says so", async () => {
  const failed = { MessageSid: "SM1", MessageStatus: "undelivered" }
  const response = "30005: the number is unknown or out of service"
  expect((await read({ ...failed, ErrorCode: "30005" }))?.notices).toEqual([
    { type: "undelivered", response, provider_code: "30005" },
  ])
  const opted_out = await read({ ...failed, MessageStatus: "failed", ErrorCode: "21610" })
  expect(opted_out?.notices).toMatchObject([{ type: "failed", opted_out: true }])
})

test("a text that came in is read, with what Twilio made of its words", async () => {
  const fields = {
    MessageSid: "SM2",
    SmsStatus: "received",
    From: "+4366",
    To: "+1500",
    Body: "Arrêt",
  }
  const received = { provider_message_id: "SM2", from: "+4366", to: "+1500", text: "Arrêt" }
  expect(await read(fields)).toEqual({ notices: [], received })
  expect(await read({ ...fields, OptOutType: "STOP" })).toEqual({
    notices: [],
    received: { ...received, keyword: "stop" },
  })
  expect(await read({ ...fields, OptOutType: "__proto__" })).toEqual({ notices: [], received })
  expect(await read({ AccountSid: access.account_sid })).toBeUndefined()
  expect(twilioProvider.callbacks?.answer).toEqual({
    content_type: "text/xml",
    body: "<Response/>",
  })
})

providerContract(twilioProvider as never, async () => {
  const server = twilioServer(({ authorization, form }) => {
    if (authorization !== `${access.account_sid}:${access.auth_token}`)
      return { status: 401, body: { code: 20003, message: "Authenticate" } }
    if (form.To === "+436609999999") return { status: 429, body: { code: 20429, message: "wait" } }
    if (form.To === "+436608888888") return { status: 400, body: { code: 21211, message: "no" } }
    return undefined
  })
  return {
    credentials: { ...access },
    context: context(server.url),
    messages: {
      accepted: text(),
      deferred: text("+436609999999"),
      refused: text("+436608888888"),
    },
    success: "sent" as const,
    leave: () => server[Symbol.dispose](),
    [Symbol.asyncDispose]: async () => server[Symbol.dispose](),
  }
})
