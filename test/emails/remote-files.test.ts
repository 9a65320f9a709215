import { afterAll, describe, expect, test } from "bun:test"
import type { FileRules } from "../../src/emails/attachments"
import { authority, issued, issued_key } from "../core/authority"
import { names } from "../core/net-fixture"
import { complaints, type Reply, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const PNG = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 31) % 251)
const MAX_BYTES = 10_485_760

let asked = 0

/** Requests for `/counted` that run, and the most of them at the same time. */
let running = 0
let most = 0

async function counted(): Promise<Response> {
  running++
  most = Math.max(most, running)
  await Bun.sleep(20)
  running--
  return new Response("counted")
}

/** A host of files that has a certificate for hooks.test. */
const files = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  tls: { cert: issued, key: issued_key },
  fetch(request) {
    asked++
    const { pathname } = new URL(request.url)
    const size = Number(/^\/size\/(\d+)$/.exec(pathname)?.[1] ?? 0)
    if (size > 0) return new Response(new Uint8Array(size))
    if (pathname === "/logo.png") {
      return new Response(PNG, { headers: { "content-type": "image/png" } })
    }
    if (pathname === "/odd") return new Response("x", { headers: { "content-type": "odd" } })
    if (pathname === "/counted") return counted()
    if (pathname === "/slow") return new Promise(() => {})
    if (pathname === "/moved") return Response.redirect("https://hooks.test/logo.png")
    return new Response("no", { status: 404 })
  },
})
afterAll(() => files.stop(true))

const open = (rules: Partial<FileRules> = {}) =>
  sharedService({
    rules: {
      files: {
        allow_private: ["127.0.0.0/8"],
        resolver: names("127.0.0.1"),
        ca: authority,
        ...rules,
      },
    },
  })

const service = await open()
const at = (path: string) => `https://hooks.test:${files.port}${path}`
const file = (path: string, more: object = {}) => ({
  filename: "logo.png",
  path: at(path),
  ...more,
})

describe("an attachment that is named by a URL", () => {
  test("is fetched when the email is accepted, and kept", async () => {
    const project = await service.project()
    const attachments = [
      file("/logo.png", { content_id: "logo" }),
      { filename: "a.txt", content: "YWJj" },
      file("/logo.png", { content_type: "application/pdf" }),
      file("/odd"),
      file("/logo.png", { filename: "terms.pdf" }),
      file("/odd", { filename: "odd" }),
    ]
    const sent = await project.post("/v1/emails", mail({ attachments }))
    expect(sent.status).toBe(201)
    const path = `/v1/emails/${sent.body.id}`
    const kept = (await project.get(path)).body.data.attachments
    expect(
      kept.map(({ content_type, size }: Record<string, unknown>) => [content_type, size]),
    ).toEqual([
      ["image/png", PNG.length],
      ["text/plain", 3],
      ["application/pdf", PNG.length],
      ["image/png", 1],
      ["application/pdf", PNG.length],
      ["application/octet-stream", 1],
    ])
    const { bytes } = await project.get(`${path}/attachments/${kept[0].id}`)
    expect(bytes).toEqual(PNG)
  })

  test.each<[string, string]>([
    ["http://hooks.test/logo.png", "https://"],
    ["ftp://hooks.test/logo.png", "https://"],
    ["logo.png", "https://"],
    ["https://user:word@hooks.test/logo.png", "user name"],
    ["https://hooks.test:25/logo.png", "port"],
    [at("/nothing"), "404"],
    [at("/moved"), "302"],
    [at(`/size/${MAX_BYTES + 1}`), "bytes"],
  ])("is refused: %s", async (path, words) => {
    const project = await service.project()
    const attachments = [
      { filename: "a.txt", content: "YWJj" },
      { filename: "b.txt", path },
    ]
    const refused = await project.post("/v1/emails", mail({ attachments }))
    expect(refusal(refused)).toEqual([422, "invalid_url"])
    expect(complaints(refused)).toEqual(["attachments.1.path"])
    expect(refused.body.error.message).toContain(words)
    expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
  })

  test.each<[string, Partial<FileRules>, string]>([
    ["a private address", { allow_private: [] }, "not allowed"],
    ["a host without an address", { resolver: names() }, "no address"],
    ["a certificate of nobody", { ca: issued }, "certificate"],
    ["a host that is too slow", { timeout_ms: 50 }, "in time"],
  ])("is not fetched from %s", async (_, rules, words) => {
    const strict = await open(rules)
    const project = await strict.project()
    const refused = await project.post("/v1/emails", mail({ attachments: [file("/slow")] }))
    expect(refusal(refused)).toEqual([422, "invalid_url"])
    expect(refused.body.error.message).toContain(words)
  })

  test("counts towards the size of the message", async () => {
    const project = await service.project()
    const whole = [file(`/size/${MAX_BYTES - 4}`)]
    expect((await project.post("/v1/emails", mail({ attachments: whole }))).status).toBe(201)
    const twice = [file(`/size/${MAX_BYTES / 2}`), file(`/size/${MAX_BYTES / 2}`)]
    const refused = await project.post("/v1/emails", mail({ attachments: twice }))
    expect(refusal(refused)).toEqual([413, "payload_too_large"])
  })

  test("is not fetched any more when the message is too large already", async () => {
    const project = await service.project()
    const before = asked
    const attachments = Array.from({ length: 50 }, () => file(`/size/${MAX_BYTES}`))
    const refused = await project.post("/v1/emails", mail({ attachments }))
    expect(refusal(refused)).toEqual([413, "payload_too_large"])
    expect(asked - before).toBeLessThanOrEqual(3)
  })

  test("is fetched for two messages of a project at the same time, and others wait", async () => {
    const project = await service.project()
    const send = () => project.post("/v1/emails", mail({ attachments: [file("/counted")] }))
    const answers = await Promise.all(Array.from({ length: 7 }, send))
    expect(answers.map(({ status }) => status)).toEqual(Array(7).fill(201))
    expect(most).toBeLessThanOrEqual(2)
  })

  test("is asked for only when everything before it is right", async () => {
    const project = await service.project()
    const before = asked
    const attachments = [file("/logo.png")]
    const from = "bell@not-verified.test"
    const refused = await project.post("/v1/emails", mail({ from, attachments }))
    expect(refusal(refused)).toEqual([400, "domain_not_verified"])
    expect(asked).toBe(before)
  })

  test("spoils its own item of a batch only", async () => {
    const project = await service.project()
    const [good, bad] = [file("/logo.png"), file("/nothing")].map((one) =>
      mail({ attachments: [one] }),
    )
    const some = await project.post("/v1/emails/batch", { messages: [good, bad] })
    expect(some.body.data).toMatchObject({ succeeded: 1, failed: 1 })
    const strict = await project.post("/v1/emails/batch", [good, bad])
    expect(refusal(strict)).toEqual([422, "invalid_url"])
    expect(complaints(strict)).toEqual(["messages.1.attachments.0.path"])
  })
})

test.each<[object, string]>([
  [{ filename: "a.txt", path: 5 }, "path"],
  [{ filename: "a.txt", path: "https://a.test/b", content: "YWJj" }, "path"],
  [{ filename: "a.txt", path: null, content: null }, "content"],
  [{ filename: "a.txt" }, "content"],
  [{ path: "https://a.test/b" }, "filename"],
])("%j is no attachment", async (wrong, field) => {
  const project = await service.project()
  const refused: Reply = await project.post("/v1/emails", mail({ attachments: [wrong] }))
  expect([refused.status, ...complaints(refused)]).toEqual([422, `attachments.0.${field}`])
})
