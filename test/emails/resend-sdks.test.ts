import { describe, expect, test } from "bun:test"
import { type ClientRequest, request } from "node:http"
import { secondsFromNow } from "../../src/core/time"
import { freshName } from "../domains/acme"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"
import { NOWHERE } from "../webhooks/endpoints"

const service = await sharedService()

const GO = { "user-agent": "resend-go/3.12.0" }
const PYTHON = { "user-agent": "resend-python:2.39.0" }

/** Go and Python send a file as the list of its bytes. */
const listed = (bytes: Uint8Array) => [{ filename: "photo.png", content: [...bytes] }]

test.each([
  ["300 kB", 300_000],
  ["three megabytes, which a thread parses,", 3_000_000],
])("a file of %s may come as a list of numbers", async (_, length) => {
  const project = await service.project()
  const bytes = Uint8Array.from({ length }, (_, at) => (at * 31) % 251)
  const attachments = listed(bytes)
  const sent = await project.post("/v1/emails", mail({ attachments }), GO)
  expect(sent.status).toBe(201)
  const [file] = (await project.get(`/v1/emails/${sent.body.id}`)).body.data.attachments
  expect(file).toMatchObject({ content_type: "image/png", size: length })
  const found = await project.get(`/v1/emails/${sent.body.id}/attachments/${file.id}`)
  expect(Buffer.from(found.bytes).equals(bytes)).toBe(true)
})

test("a batch with such files is read, and a replay gives the same answer", async () => {
  const project = await service.project()
  const attachments = listed(new Uint8Array(120_000))
  const headers = { ...PYTHON, "idempotency-key": crypto.randomUUID() }
  const send = () => project.post("/v1/emails/batch", [mail({ attachments }), mail()], headers)
  const [first, second] = [await send(), await send()]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(second.body.data).toEqual(first.body.data)
})

test("without the user agent, and on other paths, 100,000 values are the most", async () => {
  const project = await service.project()
  const large = mail({ attachments: listed(new Uint8Array(120_000)) })
  expect(refusal(await project.post("/v1/emails", large))).toEqual([400, "invalid_json"])
  const numbers = { metadata: { a: Array(120_000).fill(1) } }
  expect(refusal(await project.post("/v1/webhooks", numbers, GO))).toEqual([400, "invalid_json"])
})

/** An answer of another type than the struct has is an error in Go. A field that is absent or null is not. */
type GoType = "string" | "bool" | "number" | "any" | [GoType] | { [field: string]: GoType }

function goFaults(type: GoType, value: unknown, path = ""): string[] {
  if (value === undefined || value === null || type === "any") return []
  if (Array.isArray(type)) {
    if (!Array.isArray(value)) return [`${path} is no list`]
    return value.flatMap((one, at) => goFaults(type[0], one, `${path}.${at}`))
  }
  if (typeof type === "object") {
    const fields = value as Record<string, unknown>
    return Object.entries(type).flatMap(([name, inner]) =>
      goFaults(inner, fields[name], `${path}.${name}`),
    )
  }
  const expected = type === "bool" ? "boolean" : type
  return typeof value === expected ? [] : [`${path} is no ${type}`]
}

const made = { id: "string", object: "string" } satisfies GoType
const gone = { ...made, deleted: "bool" } satisfies GoType
const record: GoType = {
  record: "string",
  name: "string",
  type: "string",
  ttl: "string",
  status: "string",
  value: "string",
  priority: "number",
}
const domain: GoType = {
  id: "string",
  name: "string",
  created_at: "string",
  status: "string",
  records: [record],
  tracking_subdomain: "string",
}
const email: GoType = {
  ...{
    id: "string",
    message_id: "string",
    to: ["string"],
    from: "string",
    created_at: "string",
    subject: "string",
  },
  ...{
    html: "string",
    text: "string",
    bcc: ["string"],
    cc: ["string"],
    reply_to: ["string"],
    last_event: "string",
  },
}
const key: GoType = {
  id: "string",
  name: "string",
  created_at: "string",
  last_used_at: "string",
  token: "string",
}
const webhook: GoType = {
  ...made,
  created_at: "string",
  status: "string",
  endpoint: "string",
  events: ["string"],
  signing_secret: "string",
}
const variable: GoType = { id: "string", key: "string", type: "string", fallback_value: "any" }
const template: GoType = {
  ...{
    id: "string",
    name: "string",
    created_at: "string",
    updated_at: "string",
    status: "string",
    alias: "string",
  },
  ...{
    published_at: "string",
    from: "string",
    subject: "string",
    html: "string",
    text: "string",
    variables: [variable],
  },
}
const topic: GoType = {
  id: "string",
  name: "string",
  description: "string",
  default_subscription: "string",
  created_at: "string",
}
const list = (of: GoType): GoType => ({ object: "string", has_more: "bool", data: [of] })

type Fields = Record<string, unknown>

/** The requests of a client, byte by byte as it makes them: Go sends its body in chunks, Python `{}` with a GET. */
async function open(sdk: "go" | "python") {
  const { key } = await service.project()
  const { url } = service.listen()
  return (
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Fields }> => {
    const sent = body === undefined && sdk === "python" ? {} : body
    const payload = sent === undefined ? undefined : JSON.stringify(sent)
    const chunked = sdk === "go" && payload !== undefined
    const headers = {
      accept: "application/json",
      authorization: `Bearer ${key}`,
      ...(sdk === "go" ? { ...GO, "accept-encoding": "gzip" } : PYTHON),
      ...(payload !== undefined && { "content-type": "application/json" }),
      ...(!chunked &&
        (payload !== undefined || method !== "GET") && {
          "content-length": Buffer.byteLength(payload ?? ""),
        }),
    }
    const asked: ClientRequest = request(`${url}/v1/${path}`, { method, headers })
    asked.end(payload)
    return new Promise((resolve, reject) => {
      asked.on("error", reject)
      asked.on("response", async (answer) => {
        const parts: Buffer[] = []
        for await (const part of answer) parts.push(part)
        resolve({ status: answer.statusCode ?? 0, body: JSON.parse(`${Buffer.concat(parts)}`) })
      })
    })
  }
}

describe.each(["go", "python"] as const)("the client for %s", (sdk) => {
  /** What was answered, which the client could read: without a fault in Go, and its fields where Python looks. */
  async function walk() {
    const ask = await open(sdk)
    return async (method: string, path: string, type: GoType, body?: unknown) => {
      const answer = await ask(method, path, body)
      expect([method, path, answer.status]).toEqual([
        method,
        path,
        method === "POST" ? expect.any(Number) : 200,
      ])
      expect(answer.status).toBeLessThan(300)
      expect(goFaults(type, answer.body)).toEqual([])
      expect(answer.body.statusCode).toBeUndefined() // Python takes it for an error
      return answer.body
    }
  }

  const letter = (more: object = {}) => ({
    from: "Bell <bell@example.test>",
    to: sdk === "go" ? ["ann@example.test"] : "ann@example.test",
    subject: "Ding",
    html: "<p>Dong</p>",
    ...more,
  })

  test("sends, reads, lists, moves and cancels emails", async () => {
    const call = await walk()
    const content = [...Buffer.from("abc")]
    const attachments = [{ content, filename: "logo.png", inline_content_id: "logo" }]
    const tags = [{ name: "kind", value: "bell" }]
    const more = {
      cc: ["Copy <copy@example.test>"],
      reply_to: "desk@example.test",
      tags,
      attachments,
    }
    const { id } = await call(
      "POST",
      "emails",
      made,
      letter({ ...more, headers: { "X-Kind": "bell" } }),
    )
    const read = await call("GET", `emails/${id}`, email)
    expect(read).toMatchObject({
      ...{
        id,
        from: "Bell <bell@example.test>",
        to: ["ann@example.test"],
        bcc: [],
        subject: "Ding",
      },
      ...{
        cc: ["Copy <copy@example.test>"],
        reply_to: ["desk@example.test"],
        last_event: "queued",
      },
      data: { id, to: { email: "ann@example.test" } },
    })
    const later = letter({ scheduled_at: secondsFromNow(3600).replace("Z", "+0000") })
    const waiting = (await call("POST", "emails", made, later)).id
    const moved = { id: waiting, scheduled_at: secondsFromNow(7200) }
    expect((await call("PATCH", `emails/${waiting}`, made, moved)).id).toBe(waiting)
    expect((await call("POST", `emails/${waiting}/cancel`, made)).id).toBe(waiting)
    const found = await call("GET", "emails?limit=1", list(email))
    expect(found).toMatchObject({
      has_more: true,
      data: [{ id: waiting, from: "Bell <bell@example.test>" }],
    })
    const next = await call("GET", `emails?after=${waiting}&limit=5`, list(email))
    expect(next).toMatchObject({ has_more: false, data: [{ id }] })
  })

  test("sends batches", async () => {
    const call = await walk()
    const type = { data: [made], errors: [{ index: "number", message: "string" }] } satisfies GoType
    const { data } = await call("POST", "emails/batch", type, [
      letter(),
      letter({ subject: "Dong" }),
    ])
    expect(data).toHaveLength(2)
  })

  test("keeps domains, keys, webhooks, templates and topics", async () => {
    const call = await walk()
    const name = freshName()
    const added = await call("POST", "domains", domain, { name })
    expect(added).toMatchObject({ name, status: "pending", records: expect.any(Array) })
    expect(await call("GET", `domains/${added.id}`, domain)).toMatchObject({ id: added.id, name })
    expect(await call("GET", "domains", list(domain))).toMatchObject({ data: [{ name }] })
    expect(await call("DELETE", `domains/${added.id}`, gone)).toMatchObject({
      id: added.id,
      deleted: true,
    })

    const shop = await call("POST", "api-keys", key, { name: "shop", permission: "sending_access" })
    expect(shop.token).toStartWith("svc_live_")
    expect((await call("PATCH", `api-keys/${shop.id}`, made, { name: "store" })).id).toBe(shop.id)
    await call("GET", "api-keys", list(key))
    expect(await call("DELETE", `api-keys/${shop.id}`, gone)).toMatchObject({ id: shop.id })

    const events = ["email.sent", "email.delivery_delayed"]
    const hook = await call("POST", "webhooks", webhook, { endpoint: NOWHERE, events })
    expect(hook.signing_secret).toStartWith("whsec_")
    expect(await call("GET", `webhooks/${hook.id}`, webhook)).toMatchObject({ endpoint: NOWHERE })
    await call("PATCH", `webhooks/${hook.id}`, made, { events: ["email.sent"] })
    expect(await call("GET", "webhooks", list(webhook))).toMatchObject({
      data: [{ endpoint: NOWHERE }],
    })
    expect(await call("DELETE", `webhooks/${hook.id}`, gone)).toMatchObject({ deleted: true })

    const variables = [{ key: "NAME", type: "string", fallback_value: "you" }]
    const html = "<p>{{{NAME}}}</p>"
    const page = await call("POST", "templates", template, { name: "welcome", html, variables })
    const shown = await call("GET", `templates/${page.id}`, template)
    expect(shown).toMatchObject({ html, variables: [{ key: "NAME", fallback_value: "you" }] })
    await call("PATCH", `templates/${page.id}`, made, { name: "welcome", html: `${html}!` })
    await call("POST", `templates/${page.id}/publish`, made)
    await call("POST", `templates/${page.id}/duplicate`, made)
    await call("GET", "templates?limit=2", list(template))
    expect(await call("DELETE", `templates/${page.id}`, gone)).toMatchObject({ id: page.id })

    const news = await call("POST", "topics", topic, {
      name: "News",
      default_subscription: "opt_out",
    })
    const read = await call("GET", `topics/${news.id}`, topic)
    expect(read).toMatchObject({ name: "News", default_subscription: "opt_out" })
    await call("PATCH", `topics/${news.id}`, topic, { name: "More news" })
    expect(await call("GET", "topics", list(topic))).toMatchObject({
      data: [{ name: "More news" }],
    })
    expect(await call("DELETE", `topics/${news.id}`, gone)).toMatchObject({ id: news.id })
  })

  test("is told what is wrong", async () => {
    const ask = await open(sdk)
    const refused = await ask("POST", "emails", letter({ to: ["nobody"] }))
    expect(refused).toMatchObject({
      status: 422,
      body: { statusCode: 422, name: "invalid_email", message: expect.any(String) },
    })
    const lost = await ask("GET", "emails/none")
    expect(lost).toMatchObject({ status: 404, body: { message: expect.any(String) } })
  })
})

test("other clients find a record in `data` alone", async () => {
  const project = await service.project()
  const { id } = (await project.post("/v1/emails", mail())).body
  expect(Object.keys((await project.get(`/v1/emails/${id}`)).body)).toEqual(["data", "meta"])
  const subscriber = { external_id: "ann" }
  const made = await project.post("/v1/subscribers", subscriber, GO)
  expect(Object.keys(made.body)).toEqual(["data", "meta"])
})
