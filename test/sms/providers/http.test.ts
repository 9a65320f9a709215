import { describe, expect, test } from "bun:test"
import { settings } from "../../../src/core/config"
import { Problems } from "../../../src/core/errors"
import { masked, readCredentials } from "../../../src/providers/credentials"
import { httpProvider } from "../../../src/sms/providers/http"
import type { OutgoingText, SmsContext } from "../../../src/sms/providers/provider"
import { OPENING, providerContract } from "../../contracts/provider"
import { type GatewayRequest, gatewayServer } from "../../fakes/gateway"
import { LOOPBACK } from "../../harness/providers"

const ID = "019a0000-0000-7000-8000-000000000001"
const CALLBACK = "https://belfry.test/v1/callbacks/sms/http/token"

const context: SmsContext = {
  settings: settings(),
  allow_private: LOOPBACK,
  simulator: { show: async () => {}, report: async () => {} },
}

const textOf = (more: Partial<OutgoingText> = {}): OutgoingText => ({
  message_id: ID,
  project_id: "019a0000-0000-7000-8000-000000000002",
  to: ["+4366012345678"],
  from: "Belfry",
  text: "Ding dong.",
  encoding: "gsm7",
  attempt: 1,
  ...more,
})

type Access = Parameters<typeof httpProvider.open>[0]

const open = (access: Access, own = {}) =>
  httpProvider.open(access, context, { settings: own, callbackUrl: () => CALLBACK })

/** What a gateway gets of one text. */
async function asked(access: Partial<Access>, text = textOf(), own = {}): Promise<GatewayRequest> {
  using server = gatewayServer()
  const url = `${server.url}${access.url ?? "/send"}`
  const outcome = await open({ method: "POST", ...access, url }, own).send(text)
  expect(outcome.status).toBe("sent")
  const [request] = server.requests
  if (!request) throw new Error("nothing came")
  return request
}

/** What becomes of a text by one answer. */
async function answered(response: Response, access: Partial<Access> = {}) {
  using server = gatewayServer(() => response)
  return await open({ url: `${server.url}/send`, method: "POST", ...access }).send(textOf())
}

/** The field that is wrong in credentials, and what is said of it. */
function refused(access: object): Record<string, string> {
  const problems = new Problems()
  readCredentials(httpProvider, access, problems)
  return Object.fromEntries(problems.list.map(({ path, message }) => [path, message]))
}

const TRICKY = 'a&b=c#d"e\\f\n{{id}}%25 <€> 😀'

describe("a value is escaped for the place where it stands:", () => {
  test("in the address, whose parts it cannot change", async () => {
    const url = "/{{to}}/send?text={{text}}&cb={{callback_url}}%26status%3D%25d#{{id}}"
    const { method, path, body } = await asked({ url, method: "GET" }, textOf({ text: TRICKY }))
    const [place, query] = path.split("?")
    expect([method, place, body]).toEqual(["GET", "/%2B4366012345678/send", ""])
    expect([...new URLSearchParams(query)]).toEqual([
      ["text", TRICKY],
      ["cb", `${CALLBACK}?id=${ID}&status=%d`],
    ])
  })

  test.each([
    ["JSON, told by its bracket", undefined, '{"t": "{{text}}", "l": ["{{to}}"]}'],
    ["JSON, told by a header", "application/vnd.api+json", ' {"t": "{{text}}", "l": ["{{to}}"]}'],
  ])("in %s", async (_, type, template) => {
    const headers = type === undefined ? {} : { "content-type": type }
    const request = await asked({ headers, body: template }, textOf({ text: TRICKY }))
    expect(JSON.parse(request.body)).toEqual({ t: TRICKY, l: ["+4366012345678"] })
    expect(request.headers.get("content-type")).toBe(type ?? "application/json")
  })

  test("in a form, which a body is without another word", async () => {
    const { body, headers } = await asked(
      { body: "t={{text}}&to={{to}}" },
      textOf({ text: TRICKY }),
    )
    expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
      t: TRICKY,
      to: "+4366012345678",
    })
    expect(headers.get("content-type")).toBe("application/x-www-form-urlencoded")
  })

  test("in XML and in plain text", async () => {
    const of = async (type: string) => {
      const access = { headers: { "Content-Type": type }, body: "<t>{{text}}</t>" }
      return (await asked(access, textOf({ text: `<&>"'` }))).body
    }
    expect(await of("text/xml; charset=utf-8")).toBe("<t>&#60;&#38;&#62;&#34;&#39;</t>")
    expect(await of("text/plain")).toBe(`<t><&>"'</t>`)
  })

  test("in a header, which no value can end", async () => {
    const headers = { "X-Text": "{{text}}|{{{text}}}", Authorization: "Bearer key" }
    const request = await asked({ headers, method: "PUT" }, textOf({ text: "a\r\nHost: b € c" }))
    const text = "a%0D%0AHost: b %E2%82%AC c"
    expect(request.headers.get("x-text")).toBe(`${text}|${text}`)
    expect([request.method, request.headers.get("authorization")]).toEqual(["PUT", "Bearer key"])
  })

  test("{{{name}}} is the value as it is", async () => {
    const request = await asked({ body: "{{{text}}}" }, textOf({ text: "a=b&c=d" }))
    expect(request.body).toBe("a=b&c=d")
  })
})

test("conditions ask whether there is a value", async () => {
  const body =
    "{{#if from}}f={{from}}{{else}}none{{/if}}&{{#unless ucs2}}7bit{{else}}ucs2{{/unless}}"
  const bodyOf = async (text: Partial<OutgoingText>) => (await asked({ body }, textOf(text))).body
  expect(await bodyOf({})).toBe("f=Belfry&7bit")
  expect(await bodyOf({ from: null, encoding: "ucs2" })).toBe("none&ucs2")
})

test("without a sender of its own a text gets that of the configuration", async () => {
  const own = { from: "+43900", per_country_from: { "+4366": "+43901" } }
  const { body } = await asked({ body: "{{{from}}}" }, textOf({ from: null }), own)
  expect(body).toBe("+43901")
})

const url = "http://gateway.test/send"

test.each([
  ["url", { url: "http://{{to}}.gateway.test/" }, "whole host"],
  ["url", { url: "http://gateway.test{{text}}" }, "whole host"],
  ["url", { url: "ftp://gateway.test/" }, "http://"],
  ["url", { url: "http://me:secret@gateway.test/" }, "without a password"],
  ["url", { url: "http://gateway.test:99999/" }, "http://"],
  ["url", { url: "http://gateway.test/{{phone}}" }, "There is no {{phone}}"],
  ["body", { url, body: "{{#each text}}x{{/each}}" }, "Write only {{name}}"],
  ["body", { url, body: "{{uppercase text}}" }, "Write only {{name}}"],
  ["body", { url, body: "{{> footer}}" }, "Write only {{name}}"],
  ["body", { url, body: "{{text.constructor}}" }, "There is no"],
  ["body", { url, body: "{{#if text}}" }, "still open"],
  ["body", { url, body: "{{#if to}}".repeat(129) }, "nested too deeply"],
  ["body", { url, body: '{"text": {{text}} }' }, "no JSON"],
  ["body", { url, method: "GET", body: "x" }, "no body"],
  ["headers", { url, headers: { Host: "inner.test" } }, "Belfry itself"],
  ["headers", { url, headers: { "Transfer-Encoding": "chunked" } }, "Belfry itself"],
])("%s: %j is refused", (field, access, words) => {
  expect(refused(access)[`credentials.${field}`]).toContain(words)
})

test("a condition may be in the address", () => {
  expect(refused({ url: `${url}?coding={{#if ucs2}}2{{else}}0{{/if}}` })).toEqual({})
})

test("schemas refuse line breaks in headers, other methods and unknown names of callbacks", () => {
  const wrong = { headers: { "X-A": "a\r\nb" }, method: "DELETE", callback_paths: { number: "a" } }
  const fields = Object.keys(refused({ url, ...wrong })).join()
  for (const name of Object.keys(wrong)) expect(fields).toContain(`credentials.${name}`)
})

describe("an answer becomes an outcome:", () => {
  const at = (status: number, headers = {}) => new Response("words\0 of\n it", { status, headers })

  test.each([
    [401, {}, { status: "failed", fault: "authentication" }],
    [403, {}, { status: "failed", fault: "authentication" }],
    [408, {}, { status: "retry", fault: "infrastructure", held: true }],
    [429, {}, { status: "retry", fault: "infrastructure", held: true }],
    [503, { "retry-after": "5" }, { status: "retry", fault: "infrastructure", held: true }],
    [503, {}, { status: "retry", fault: "infrastructure" }],
    [500, {}, { status: "retry", fault: "infrastructure" }],
    [404, {}, { status: "failed", fault: "infrastructure" }],
    [400, {}, { status: "failed", fault: undefined }],
    [422, {}, { status: "failed", fault: undefined }],
  ])("%p %p", async (status, headers, expected) => {
    const outcome = await answered(at(status, headers))
    const { status: becomes, fault, held } = outcome
    expect({ status: becomes, fault, held }).toEqual({ held: undefined, ...expected } as never)
    expect(outcome.reason).toBe(`${status} words of it`)
    expect(outcome.reply.provider_code).toBe(String(status))
  })

  test("a redirect is not followed, and what it repeats of our request is not shown", async () => {
    const outcome = await answered(
      new Response(null, { status: 302, headers: { location: "http://other.test/?key=secret" } }),
    )
    expect(outcome).toMatchObject({ status: "retry", fault: "infrastructure" })
    expect(outcome.reason).toContain("http://other.test,")
    expect(outcome.reason).not.toContain("secret")
  })

  test("text that only says yes has our id", async () => {
    const outcome = await answered(new Response("0: Accepted for delivery", { status: 202 }))
    expect(outcome).toMatchObject({ status: "sent", reason: null, provider_message_id: ID })
    expect(outcome.reply.response).toBe("202 0: Accepted for delivery")
  })

  test.each([
    [{ messages: [{ id: "wamid.1" }] }, "sent", "wamid.1"],
    [{ messages: [{ id: 7 }] }, "sent", "7"],
    [{ messages: [{ id: "" }] }, "failed", undefined],
    [{ messages: [{ id: "failed" }] }, "failed", undefined],
    [{ error: { message: "no" } }, "failed", undefined],
  ])("by its JSON %j", async (json, status, id) => {
    const access = { success_path: "messages[0].id", id_path: "messages.0.id" }
    const outcome = await answered(Response.json(json), access)
    expect([outcome.status, outcome.provider_message_id] as unknown).toEqual([status, id])
  })

  test("no answer leaves it open whether the text was taken, and nobody sends it again", async () => {
    using server = gatewayServer(() => {
      queueMicrotask(() => server[Symbol.dispose]())
      return new Promise(() => {})
    })
    const outcome = await open({ url: server.url, method: "POST" }).send(textOf())
    expect(outcome).toMatchObject({ status: "sent", reason: "unconfirmed" })
    expect(outcome.provider_message_id).toBe(ID)
  })

  test("a private address is not asked", async () => {
    using server = gatewayServer()
    const guarded = { ...context, allow_private: [] }
    const access = { url: server.url, method: "POST" } as const
    const outcome = await httpProvider.open(access, guarded, OPENING).send(textOf())
    expect(outcome).toMatchObject({ status: "retry", fault: "connection" })
    expect(server.requests).toEqual([])
  })
})

test.each([
  '{"api_key": "key-of-a-body", "text": "{{text}}"}',
  '<sms key="key-of-a-body"><text>{{text}}</text></sms>',
  "<sms><key>key-of-a-body</key><text>{{text}}</text></sms>",
])(
  "secrets that a gateway repeats are masked, and answers of the API show none: %s",
  async (body) => {
    const access = {
      url: "/send?password=kannel%2Dsecret&to={{to}}",
      headers: { Authorization: "Bearer key-of-a-header", "Content-Type": "text/plain" },
      body,
    }
    using server = gatewayServer((request) => {
      const { path, headers, body } = request
      const words = `${path} ${headers.get("authorization")} ${body} kannel-secret`
      return new Response(`${"x".repeat(120)} ${words}`, { status: 400 })
    })
    const whole = { ...access, method: "POST", url: server.url + access.url } as const
    const shown = JSON.stringify([await open(whole).send(textOf()), masked(httpProvider, whole)])
    expect(shown).not.toMatch(/secret|key-of/)
  },
)

test("the usual words of a 404 do not show a key in the path, nor a login", async () => {
  using server = gatewayServer(
    ({ path }) => new Response(`Cannot GET ${path} me s3cret-word`, { status: 404 }),
  )
  const url = `${server.url}/bot123:AbCd/send?to={{to}}`
  const headers = { Authorization: `Basic ${btoa("me:s3cret-word")}` }
  const { reason } = await open({ url, headers, method: "GET" }).send(textOf())
  expect(reason).toStartWith("404 Cannot GET /****/send")
  expect(reason).not.toContain("s3cret-word")
})

test("an answer that repeats our own words is read all the same", async () => {
  const answer = Response.json({ message: { id: "7" } })
  const body = "action=message&to={{to}}"
  const outcome = await answered(answer, { body, success_path: "message", id_path: "message.id" })
  expect(outcome).toMatchObject({ status: "sent", provider_message_id: "7" })
})

test.each(["GET", "POST", "PUT"] as const)(
  "a gateway that takes a %s and cuts a kept connection is not asked twice",
  async (method) => {
    let asked = 0
    using server = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        data(socket) {
          if (++asked > 1) socket.terminate()
          else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        },
      },
    })
    const gateway = open({ url: `http://127.0.0.1:${server.port}/?to={{to}}`, method })
    expect((await gateway.send(textOf())).reason).toBeNull()
    expect((await gateway.send(textOf())).reason).toBe("unconfirmed")
    expect(asked).toBe(2)
  },
)

describe("a callback", () => {
  const read = (fields: Record<string, unknown>, access: Partial<Access> = {}, query = "") =>
    httpProvider.callbacks?.read({
      request: {
        method: "POST",
        url: CALLBACK + query,
        headers: new Headers(),
        body: new Uint8Array(),
        fields,
      },
      access: { url, method: "POST", ...access },
      context,
      network: { allow_private: [] },
    })

  test.each([
    ["1", "delivered"],
    [2, "undelivered"],
    ["4", "sent"],
    ["8", "sent"],
    ["16", "failed"],
    ["DELIVRD", "delivered"],
    ["Read", "delivered"],
    ["UNDELIV", "undelivered"],
    ["REJECTD", "failed"],
  ])("says by the status %p that a text is %s", async (status, type) => {
    const report = await read({ id: ID, status })
    expect(report).toMatchObject({ provider_message_id: ID, message_id: ID })
    expect(report?.notices).toMatchObject([{ type, response: String(status) }])
  })

  test("means by words of its own what the map says", async () => {
    const status_map = { DONE: "delivered", delivered: "sent" } as const
    const typeOf = async (status: string) =>
      (await read({ id: "theirs", status }, { status_map }))?.notices[0]?.type
    expect([await typeOf("done"), await typeOf("delivered")] as unknown).toEqual([
      "delivered",
      "sent",
    ])
    expect(await read({ id: "theirs", status: "pondering" }, { status_map })).toBeUndefined()
    expect(await read({ id: "theirs", status: "constructor" })).toBeUndefined()
  })

  test("names a text by our id in its address and by its own in the body", async () => {
    const report = await read({ id: "theirs", status: "sent" }, {}, `?id=${ID}`)
    expect(report).toMatchObject({ provider_message_id: "theirs", message_id: ID })
    expect(await read({ status: "sent" })).toBeUndefined()
  })

  test("hands over a text that came in", async () => {
    const fields = { id: "7", from: "4366012345678", to: "1234", text: "Stop" }
    const received = { provider_message_id: "7", from: "+4366012345678", to: "1234", text: "Stop" }
    expect(await read(fields)).toEqual({ notices: [], received })
    // Some send the same fields and a word that is no status of ours.
    expect(await read({ ...fields, status: "received" })).toEqual({ notices: [], received })
    expect(await read({ from: "1", text: 5 })).toMatchObject({ received: { to: "", text: "5" } })
    expect(await read({ from: "1" })).toBeUndefined()
  })

  test("has its values where the paths say, in JSON of any depth or in names with dots", async () => {
    const value = "entry.0.changes[0].value"
    const callback_paths = {
      id: [`${value}.statuses.0.id`, `${value}.messages.0.id`],
      status: `${value}.statuses.0.status`,
      from: [`${value}.messages.0.from`, "sms.from"],
      to: `${value}.metadata.display_phone_number`,
      text: [`${value}.messages.0.text.body`, "sms.text"],
    }
    const of = (more: object) => {
      const metadata = { display_phone_number: "15550001111" }
      return read({ entry: [{ changes: [{ value: { metadata, ...more } }] }] }, { callback_paths })
    }
    const told = await of({ statuses: [{ id: "wamid.1", status: "read" }] })
    expect(told).toMatchObject({ provider_message_id: "wamid.1", notices: [{ type: "delivered" }] })
    const came = await of({
      messages: [{ id: "wamid.2", from: "43660123456", text: { body: "Hi" } }],
    })
    const from_to = { from: "+43660123456", to: "+15550001111" }
    expect(came?.received).toEqual({ provider_message_id: "wamid.2", ...from_to, text: "Hi" })
    expect(await of({})).toBeUndefined()
    const flat = await read({ "sms.from": "1", "sms.text": "a" }, { callback_paths })
    expect(flat?.received).toMatchObject({ from: "1", text: "a" })
  })
})

test("the word by which WhatsApp checks an address is answered, and no markup", () => {
  const answered = (word: unknown) =>
    httpProvider.callbacks?.challenge?.({ fields: { "hub.challenge": word } } as never)
  expect(answered("1158201444")).toEqual({ content_type: "text/plain", body: "1158201444" })
  for (const word of [undefined, "<b>", "", 5]) expect(answered(word)).toBeUndefined()
})

providerContract(httpProvider, async () => {
  const server = gatewayServer(({ path, body }) => {
    if (path === "/") return new Response("who?", { status: 404 })
    if (!body.includes("password=right-secret")) return new Response("no", { status: 401 })
    if (body.includes("not-now")) return new Response("later", { status: 503 })
    return new Response("said", { status: body.includes("never") ? 400 : 202 })
  })
  const body = "password=right-secret&to={{to}}&text={{text}}"
  return {
    credentials: { url: `${server.url}/send`, method: "POST", body },
    context,
    messages: {
      accepted: textOf(),
      deferred: textOf({ text: "not-now" }),
      refused: textOf({ text: "never" }),
    },
    success: "sent",
    has_no_login: true,
    leave: () => server[Symbol.dispose](),
    [Symbol.asyncDispose]: async () => server[Symbol.dispose](),
  }
})
