import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { type Belfry, startBelfry } from "../harness/binary"
import { type OpenRequest, openRequest, say } from "../harness/raw-request"

const MB = 1_048_576
const AT_ONCE = 16

interface Refused {
  error: { details: { reason: string } }
}

/** A server that has answered once, so that what it needs for that is in memory. */
async function start(env: Record<string, string> = {}): Promise<Belfry> {
  const server = await startBelfry({ env: { BELFRY_SENDING_DOMAINS: "example.test", ...env } })
  await (await server.request("/v1/emails")).arrayBuffer()
  return server
}

const portOf = ({ url }: Belfry) => Number(new URL(url).port)

const headOf = (path: string, { api_key }: Belfry, ...more: string[]) => [
  `POST ${path} HTTP/1.1`,
  "Host: localhost",
  `Authorization: Bearer ${api_key}`,
  "Content-Type: application/json",
  ...more,
]

/** MB of the process in memory: now, and at most since `forgetPeak`. */
function memoryOf({ pid }: Belfry) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8")
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1])
  return { now: read("VmRSS") / 1024, peak: read("VmHWM") / 1024 }
}

/** Asks for a list again and again until the work is done. Returns how often it was answered. */
async function askMeanwhile(server: Belfry, work: Promise<unknown>): Promise<number> {
  let is_done = false
  let answers = 0
  const end = () => {
    is_done = true
  }
  work.then(end, end)
  while (!is_done) {
    const response = await server.request("/v1/emails")
    expect(response.status).toBe(200)
    await response.arrayBuffer()
    answers += 1
  }
  return answers
}

/** All of them sent whole; the answers in the order of the bodies. */
async function sendAll(server: Belfry, heads: (bytes: number) => string[], body: Uint8Array) {
  const requests: OpenRequest[] = await Promise.all(
    Array.from({ length: AT_ONCE }, () => openRequest(portOf(server), heads(body.length))),
  )
  await Promise.all(requests.map((request) => request.send(body)))
  const answers = await Promise.all(requests.map(({ answer }) => answer))
  for (const request of requests) request.cut()
  return answers
}

const declared = (server: Belfry, path: string) => (bytes: number) =>
  headOf(path, server, `Content-Length: ${bytes}`)

describe("sixteen bodies of 30 MB at once, of one project", () => {
  const lists = Buffer.from(`[${"[],".repeat(10 * MB)}[]]`)
  const objects = Buffer.from(`{"messages":[${"{},".repeat(10 * MB)}{}]}`)

  test.each<[string, Uint8Array]>([
    ["lists", lists],
    ["objects", objects],
  ])("of nothing but %s are refused, cost little, and others are answered", async (_, bomb) => {
    await using server = await start()
    const before = memoryOf(server).now
    const attack = sendAll(server, declared(server, "/v1/emails/batch"), bomb)
    expect(await askMeanwhile(server, attack)).toBeGreaterThan(0)
    for (const { status, body } of await attack) {
      expect(status).toBe(400)
      expect(body.error.details).toEqual({ reason: "too_many_values" })
    }
    expect(memoryOf(server).peak - before).toBeLessThan(150)
  })

  test("of one long text are read one at a time, and the others are refused", async () => {
    await using server = await start()
    const mail = { from: "me@example.test", to: "ann@mailbox.test", subject: "Long" }
    const text = JSON.stringify([{ ...mail, text: "x".repeat(30 * MB) }])
    const attack = sendAll(server, declared(server, "/v1/emails/batch"), Buffer.from(text))
    await askMeanwhile(server, attack)
    const statuses = (await attack).map(({ status }) => status)
    expect(new Set(statuses)).toEqual(new Set([413, 503])) // one by one they are read, and too large
    const good = await server.request("/v1/emails", {
      method: "POST",
      body: JSON.stringify({ ...mail, text: "Short" }),
    })
    expect(good.status).toBe(201)
  })
})

test("two hundred bodies that are announced and never come keep nobody out", async () => {
  await using server = await start()
  const head = headOf("/v1/emails/batch", server, `Content-Length: ${30 * MB}`)
  const silent = await Promise.all(
    Array.from({ length: 200 }, () => openRequest(portOf(server), head)),
  )
  const mail = { from: "me@example.test", to: "ann@mailbox.test", subject: "Real" }
  for (const bytes of [10, 200_000, 4 * MB]) {
    const body = JSON.stringify({ ...mail, text: "x".repeat(bytes) })
    const response = await server.request("/v1/emails", { method: "POST", body })
    expect(response.status).toBe(201)
  }
  for (const request of silent) request.cut()
})

test("a body that stalls holds what its project may have, until another one needs it", async () => {
  await using server = await start({ BELFRY_HTTP_BODY_MEMORY_MB: "64" }) // 8 for one project
  const mail = { from: "me@example.test", to: "ann@mailbox.test", subject: "Slow" }
  const large = JSON.stringify({ ...mail, text: "x".repeat(6 * MB) })
  const post = (text: string) => server.request("/v1/emails", { method: "POST", body: text })
  using stalled = await openRequest(portOf(server), declared(server, "/v1/emails")(large.length))
  await stalled.send(large.slice(0, -1))

  let refused = await post(large)
  while (refused.status === 201) refused = await post(large) // the stalled one was not read yet
  expect(refused.status).toBe(503)
  expect(refused.headers.get("retry-after")).toBe("1")
  expect(((await refused.json()) as Refused).error.details.reason).toBe("project_body_memory")
  expect((await post(JSON.stringify({ ...mail, text: "Small" }))).status).toBe(201)

  await Bun.sleep(2500) // slower than 64 KB a second is judged over two seconds
  expect((await post(large)).status).toBe(201)
  const { status, body } = await stalled.answer
  expect([status, body.error.details.reason]).toEqual([503, "slow_body"])
})

test("two hosts are refused, and dots reach what they lead to", async () => {
  await using server = await start()
  const twice = await say(portOf(server), "GET /healthz HTTP/1.1", "Host: a.test", "Host: b.test")
  expect(twice).toStartWith("HTTP/1.1 400 ")
  for (const path of [
    "/healthz/../v1/emails",
    "/healthz/%2e%2e/v1/emails",
    "/healthz\\..\\v1/emails",
  ]) {
    for (const host of ["localhost", "a b%["]) {
      const stranger = await say(portOf(server), `GET ${path} HTTP/1.1`, `Host: ${host}`)
      expect(stranger).toStartWith("HTTP/1.1 401 ")
      const key = `Authorization: Bearer ${server.api_key}`
      const known = await say(portOf(server), `GET ${path} HTTP/1.1`, `Host: ${host}`, key)
      expect(known).toStartWith("HTTP/1.1 200 ")
    }
  }
})
