import { expect, test } from "bun:test"
import { statSync } from "node:fs"
import { join } from "node:path"
import * as apiKeys from "../../src/identity/api-keys"
import { notifyEvents } from "../events/stream-facts"
import { readLines } from "../harness/lines"
import { program } from "../harness/program"
import { quietLog } from "../harness/quiet"
import { isVerified, startReceiver } from "../harness/receiver"
import { startProxy, startRelay } from "../harness/relay"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { belfry, environment, freshHome, onTerminal } from "./belfry"
import { FakeApi, KEY } from "./fake-api"

quietLog()

const SECRETS = ".config/belfry/listen"

const times = { look_ms: 100, ping_ms: 25_000, silence_ms: 50_000, stuck_ms: 10_000 }
const service = await sharedService({ socket_times: times })
const { url, port } = service.listen()

const happened = (project: TestProject, count: number, first = 0) =>
  notifyEvents(service.store, project, Array(count).fill("email.sent"), first)

/** A command that goes on until it is stopped, or has enough. */
function running(words: string[], env: Record<string, string>) {
  const child = Bun.spawn([...program, ...words], {
    env: environment(env),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const stdout = readLines(child.stdout)
  const stderr = readLines(child.stderr)
  const lines = () => stdout.all.map((line) => JSON.parse(line) as Record<string, unknown>)
  return {
    child,
    lines,
    stderr,
    ready: () => stdout.first((line) => line.includes('"ready"')),
    ended: async () => {
      await Promise.all([stdout.ended, stderr.ended])
      return await child.exited
    },
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

const as = ({ key }: TestProject, address = url) => ({ BELFRY_URL: address, BELFRY_API_KEY: key })

test("listen carries deliveries to a receiver here, which can verify them", async () => {
  const project = await service.project()
  using receiver = startReceiver()
  const words = ["listen", "--forward-to", receiver.url.slice(7), "--limit", "3"]
  const env = { ...as(project), HOME: freshHome() }
  using listen = running(words, env)
  const { secret, forward_to } = JSON.parse(await listen.ready())
  expect(forward_to).toBe(receiver.url)
  const events = await happened(project, 3)
  expect(await listen.ended()).toBe(0)
  expect(receiver.ids().sort()).toEqual(events.map(({ id }) => id))
  expect(receiver.received.every((one) => isVerified(secret, one))).toBe(true)
  const [, line] = listen.lines()
  expect(line).toMatchObject({ type: "delivery", event_type: "email.sent", response_status: 200 })

  const print = (...more: string[]) => belfry(["listen", "--print-secret", ...more], { env })
  expect(await print()).toMatchObject({ exit: 0, out: `${secret}\n` }) // as $(…) takes it
  expect(JSON.parse((await print("--json")).out)).toEqual({ secret })
})

test("the signing secret is one for a server, whichever key listens on this machine", async () => {
  const [project, HOME] = [await service.project(), freshHome()]
  const secrets: string[] = []
  for (const key of [project.key, (await project.addKey()).key]) {
    const env = { BELFRY_URL: url, BELFRY_API_KEY: key, HOME }
    using listen = running(["listen", "--forward-to", "localhost:1"], env)
    secrets.push(JSON.parse(await listen.ready()).secret)
  }
  const other = { ...as(project, "https://mail.example.test"), HOME }
  const elsewhere = await belfry(["listen", "--print-secret"], { env: other })
  expect(secrets[1]).toBe(secrets[0] ?? "")
  expect(elsewhere.out.trim()).toMatch(/^whsec_.{44}$/)
  expect(elsewhere.out.trim()).not.toBe(secrets[0] ?? "")
  const [kept = ""] = [...new Bun.Glob("*loopback*.secret").scanSync(join(HOME, SECRETS))]
  expect(statSync(join(HOME, SECRETS, kept)).mode & 0o777).toBe(0o600)
})

test("two commands that need the first secret at once agree on it", async () => {
  const env = { ...as(await service.project()), HOME: freshHome() }
  const printed = Array.from({ length: 4 }, () => belfry(["listen", "--print-secret"], { env }))
  const secrets = (await Promise.all(printed)).map(({ out }) => out)
  expect([new Set(secrets).size, secrets[0]?.slice(0, 6)]).toEqual([1, "whsec_"])
})

test("listen tells what a receiver answered, and when there is none", async () => {
  const project = await service.project()
  using receiver = startReceiver(() => 500)
  using listen = running(["listen", "--forward-to", receiver.url, "--limit", "1"], as(project))
  await listen.ready()
  await happened(project, 1)
  await listen.ended()
  expect(listen.lines()[1]).toMatchObject({ response_status: 500, error: null })

  const nowhere = ["listen", "--forward-to", "127.0.0.1:1", "--limit", "1"]
  using lost = running(nowhere, as(project))
  await lost.ready()
  await happened(project, 1)
  expect(await lost.ended()).toBe(0)
  expect(lost.lines()[1]).toMatchObject({ response_status: null, error: "connection refused" })
})

test("listen goes on behind a broken connection: each event comes once", async () => {
  const project = await service.project()
  await using relay = await startRelay(port)
  using receiver = startReceiver(async () => {
    await Bun.sleep(Math.random() * 20)
    return 200
  })
  const all = 120
  const words = ["listen", "--forward-to", receiver.url, "--limit", String(all)]
  using listen = running(words, as(project, `http://127.0.0.1:${relay.port}`))
  await listen.ready()
  const ids: string[] = []
  for (let n = 0; n < all; n += 4) {
    ids.push(...(await happened(project, 4, n)).map(({ id }) => id))
    if (n % 24 === 0) relay.cut()
    await Bun.sleep(20)
  }
  expect(await listen.ended()).toBe(0)
  expect(receiver.ids().toSorted()).toEqual(ids)
  expect(relay.connections).toBeGreaterThan(2)
})

test("events tail shows every event once and in order, over broken connections", async () => {
  const project = await service.project()
  const [before] = await happened(project, 1)
  await using relay = await startRelay(port)
  const words = ["events", "tail", "--after", before?.id ?? "", "--limit", "100"]
  using tail = running(words, as(project, `http://127.0.0.1:${relay.port}`))
  const ids: string[] = []
  for (let n = 0; n < 100; n += 5) {
    ids.push(...(await happened(project, 5, n)).map(({ id }) => id))
    await Bun.sleep(40)
    if (n % 20 === 0) relay.cut()
  }
  expect(await tail.ended()).toBe(0)
  expect(tail.lines().map(({ id }) => id)).toEqual(ids)
})

test("events tail begins now: what was before is not shown", async () => {
  const project = await service.project()
  await happened(project, 3)
  await Bun.sleep(5)
  using tail = running(["events", "tail", "--limit", "1"], as(project))
  let told: string | undefined
  const timer = setInterval(async () => {
    const [event] = await happened(project, 1, 100)
    told ??= event?.id
  }, 100)
  expect(await tail.ended()).toBe(0)
  clearInterval(timer)
  expect(tail.lines()).toEqual([expect.objectContaining({ data: { n: 100 } })])
  expect(told).toBeDefined()
})

test("listen goes through the proxy that the environment names", async () => {
  const project = await service.project()
  await using proxy = await startProxy()
  using receiver = startReceiver()
  const env = { ...as(project, `http://belfry.test:${port}`), HTTP_PROXY: proxy.url }
  using listen = running(["listen", "--forward-to", receiver.url, "--limit", "1"], env)
  await listen.ready()
  await happened(project, 1)
  expect(await listen.ended()).toBe(0)
  expect(proxy.asked).toContain(`CONNECT belfry.test:${port} HTTP/1.1`)
  expect(receiver.received).toHaveLength(1) // and the receiver here is asked directly
  expect(proxy.asked.filter((line) => line.includes("/hooks"))).toEqual([])
})

test("where a proxy lets no WebSocket through, events tail asks, and listen says so", async () => {
  const project = await service.project()
  await using proxy = await startProxy({ tunnels: false })
  const env = { ...as(project, `http://belfry.test:${port}`), HTTP_PROXY: proxy.url }
  const [first] = await happened(project, 1)
  const words = ["events", "tail", "--after", first?.id ?? "", "--limit", "2"]
  using tail = running(words, env)
  const events = await happened(project, 2)
  expect(await tail.ended()).toBe(0)
  expect(tail.lines().map(({ id }) => id)).toEqual(events.map(({ id }) => id))

  const refused = await belfry(["listen", "--forward-to", "localhost:1"], { env })
  expect([refused.exit, JSON.parse(refused.err).error.code]).toEqual([1, "no_websocket"])
})

test.each([
  ["a key that is not known", { BELFRY_API_KEY: KEY }, 4],
  ["no server", { BELFRY_URL: "http://127.0.0.1:1", BELFRY_API_KEY: KEY }, 69],
])("%s ends it at once", async (_, env, exit) => {
  const words = ["listen", "--forward-to", "localhost:1"]
  expect((await belfry(words, { env: { BELFRY_URL: url, ...env } })).exit).toBe(exit)
})

test("an unknown event id, an unknown type and a bad receiver are told", async () => {
  const env = as(await service.project())
  const at = ["listen", "--forward-to"]
  expect((await belfry([...at, "localhost:1", "--after", "evt_x"], { env })).exit).toBe(7)
  expect((await belfry([...at, "localhost:1", "--event", "nope.*"], { env })).exit).toBe(7)
  expect((await belfry([...at, "http://"], { env })).exit).toBe(2)
  expect((await belfry([...at, "ftp://localhost:1"], { env })).exit).toBe(2)
  expect((await belfry(["listen"], { env })).exit).toBe(2)
})

test("a key that is revoked ends it with 4", async () => {
  const project = await service.project()
  using listen = running(["listen", "--forward-to", "localhost:1"], as(project))
  await listen.ready()
  await service.store.tx((tx) => apiKeys.revoke(tx, project.project_id, project.key_id))
  expect(await listen.ended()).toBe(4)
})

test("Ctrl-C ends it with 130, and --timeout with 0", async () => {
  const project = await service.project()
  using listen = running(["listen", "--forward-to", "localhost:1"], as(project))
  await listen.ready()
  listen.child.kill("SIGINT")
  expect(await listen.ended()).toBe(130)
  expect(listen.stderr.all).toEqual([])
  const short = ["listen", "--forward-to", "localhost:1", "--timeout", "300ms"]
  expect((await belfry(short, { env: as(project) })).exit).toBe(0)
})

test("a receiver is posted to once, even where the server says everything twice", async () => {
  using api = new FakeApi()
  using receiver = startReceiver()
  const headers = { "webhook-id": "evt_1" }
  const delivery = { type: "delivery", headers, body: '{"type":"email.sent"}' }
  const ready = { type: "ready", secret: "whsec_x", after: null }
  const twice = ["d1", "d2"].map((delivery_id) => ({ ...delivery, delivery_id }))
  api.socket("/v1/events/stream", ready, ...twice)
  const words = ["listen", "--forward-to", receiver.url, "--timeout", "3s"]
  await belfry(words, { env: { BELFRY_URL: api.url, BELFRY_API_KEY: KEY } })
  expect(receiver.ids()).toEqual(["evt_1"])
})

test("on a terminal each delivery is a line with its answer, and harmless", async () => {
  using api = new FakeApi()
  using receiver = startReceiver()
  const headers = { "webhook-id": "evt_1" }
  const body = JSON.stringify({ type: "email.sent\u001b[2J" })
  api.socket(
    "/v1/events/stream",
    { type: "ready", secret: "whsec_x", after: null },
    { type: "delivery", delivery_id: "d1", headers, body },
  )
  const words = ["listen", "--forward-to", receiver.url, "--limit", "1", "--no-color"]
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { exit, out } = await onTerminal(words, { env })
  expect(exit).toBe(0)
  const [ready = "", line = ""] = out.split("\r\n")
  expect(ready).toBe(`Ready. Signing secret whsec_x   forwarding to ${receiver.url}; Ctrl-C stops`)
  expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} email\.sent evt_1 → 200 \(\d+ ms\)$/)
})

test("on a narrow terminal a delivery still is one line", async () => {
  using api = new FakeApi()
  using receiver = startReceiver(() => 500)
  const id = "evt_01a1fcfb-342b-71f0-94d7-1680535d3040"
  const body = JSON.stringify({ type: "email.soft_bounced" })
  api.socket(
    "/v1/events/stream",
    { type: "ready", secret: "whsec_x", after: null },
    { type: "delivery", delivery_id: "d1", headers: { "webhook-id": id }, body },
  )
  const words = ["listen", "--forward-to", receiver.url, "--limit", "1", "--no-color"]
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const { out } = await onTerminal(words, { env, columns: 80 })
  expect(out).toContain(" email.soft_bounced 535d3040 → 500 ✗ (")
})

test("on a terminal events tail tells when the way breaks, and when it is mended", async () => {
  const project = await service.project()
  const [first] = await happened(project, 1)
  await using relay = await startRelay(port)
  const words = ["events", "tail", "--after", first?.id ?? "", "--limit", "2", "--no-color"]
  const env = as(project, `http://127.0.0.1:${relay.port}`)
  const ended = onTerminal(words, { env })
  await happened(project, 1)
  const timer = setInterval(() => relay.cut(), 1000)
  const more = setTimeout(() => void happened(project, 1), 4000)
  const { exit, out } = await ended
  clearInterval(timer)
  clearTimeout(more)
  expect(exit).toBe(0)
  expect(out).toContain("The connection is lost")
  expect(out).toContain("Connected again. No event was missed.")
})

test("--quiet leaves the ids: of events that were carried, and nothing else", async () => {
  const project = await service.project()
  using receiver = startReceiver()
  const words = ["listen", "--forward-to", receiver.url, "--limit", "1", "--quiet"]
  const [first] = await happened(project, 1)
  const given = { env: as(project) }
  const after = ["--after", first?.id ?? ""]
  const [event] = await happened(project, 1)
  const { exit, out, err } = await belfry([...words, ...after], given)
  expect({ exit, out, err }).toEqual({ exit: 0, out: `${event?.id}\n`, err: "" })
})
