import { expect, test } from "bun:test"
import { spawnSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { connect } from "node:net"
import { type Belfry, startBelfry } from "../harness/binary"
import { dial } from "../harness/socket"
import { reaches, send, until } from "../scenarios/mails"
import { lean } from "../scenarios/serve"
import { idleConnections, WHOLE } from "./idle-connections"

const DESCRIPTORS = 256
const FLOOD = 300

/** For `wrap`: hard and soft, so that the runtime cannot raise it. */
const fewDescriptors = ["sh", "-c", `ulimit -n ${DESCRIPTORS}; exec "$@"`, "sh"]

/** Silence alone closes nothing here within a test. */
const patient = { ...lean, BELFRY_HTTP_IDLE_TIMEOUT: "255s" }

const startCramped = (env: Record<string, string> = {}) =>
  startBelfry({ wrap: fewDescriptors, env: { ...patient, ...env } })

const descriptorsOf = ({ pid }: Belfry) => readdirSync(`/proc/${pid}/fd`).length

const manyAddresses = (number: number) => `127.0.${1 + (number % 100)}.1`

/** Opens a connection of its own, as every new client does. */
const statusOfNewClient = async ({ url, api_key }: Belfry) => {
  const headers = { authorization: `Bearer ${api_key}`, connection: "close" }
  return (await fetch(`${url}/v1/emails`, { headers })).status
}

test("idle half requests beyond the descriptor limit stop neither mail nor new clients", async () => {
  await using server = await startCramped()
  const flooding = { count: FLOOD, from: manyAddresses, at_once: FLOOD }
  using flood = await idleConnections(server.url, flooding)
  await until("the server has closed what was too much", () => flood.open() < DESCRIPTORS / 2)
  expect(descriptorsOf(server)).toBeLessThan(DESCRIPTORS)
  expect(await statusOfNewClient(server)).toBe(200)

  const id = await send(server) // the first mail of this process: a worker thread starts for it
  await reaches(server, id, "delivered")
  expect(await statusOfNewClient(server)).toBe(200)
  const warnings = server.stderr.all.filter((line) => line.includes("too many HTTP connections"))
  expect(warnings).toHaveLength(1)
})

test("one address cannot take the connections of the others", async () => {
  await using server = await startCramped()
  using others = await idleConnections(server.url, {
    count: 3,
    from: () => "127.0.0.3",
    words: WHOLE,
  })
  const flooding = { count: FLOOD, from: () => "127.0.0.2", words: WHOLE }
  using flood = await idleConnections(server.url, flooding)
  await until("it keeps its share", () => flood.open() <= DESCRIPTORS / 8)
  expect(others.open()).toBe(3)
  expect(await statusOfNewClient(server)).toBe(200)
})

test("a connection that somebody works for outlives a flood of idle ones", async () => {
  await using server = await startCramped()
  using socket = await dial(server.url, "", { key: server.api_key })
  let is_closed = false
  socket.closed.then(() => {
    is_closed = true
  })
  const before = (await (await server.request("/v1/events?per_page=1")).json()) as {
    meta: { next_cursor: string | null }
  }
  const after = before.meta.next_cursor ?? ""
  const poll = server.request(`/v1/events?after=${after}&wait=20`)
  using flood = await idleConnections(server.url, { count: FLOOD, from: manyAddresses })
  await until("the server has closed what was too much", () => flood.open() < DESCRIPTORS / 2)
  await send(server)
  expect((await poll).status).toBe(200)
  expect(is_closed).toBe(false)
})

test("a trusted proxy may hold more connections than one address", async () => {
  await using server = await startCramped({ BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.2" })
  const many = { count: 50, words: WHOLE }
  using proxy = await idleConnections(server.url, { ...many, from: () => "127.0.0.2" })
  using stranger = await idleConnections(server.url, { ...many, from: () => "127.0.0.4" })
  await until("the stranger keeps a share", () => stranger.open() <= DESCRIPTORS / 8)
  expect(proxy.open()).toBe(many.count)
})

/** One keep-alive connection, for requests while the server cannot accept another one. */
async function oldClient({ url, api_key }: Belfry) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ""
  socket.on("data", (chunk) => {
    text += String(chunk)
  })
  await new Promise((resolve) => socket.once("connect", resolve))
  return {
    async post(fields: Record<string, unknown>): Promise<{ status: number; body: unknown }> {
      const mail = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Hi", ...fields }
      const json = JSON.stringify(mail)
      text = ""
      socket.write(
        `POST /v1/emails HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${api_key}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`,
      )
      return await until("an answer", () => answerIn(text))
    },
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

function answerIn(text: string) {
  const [head = "", json] = text.split("\r\n\r\n")
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1])
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
  if (!json || Buffer.byteLength(json) < length) return undefined
  return { status, body: JSON.parse(json) as unknown }
}

function limitDescriptors({ pid }: Belfry, most: number) {
  const limited = spawnSync("prlimit", ["--pid", String(pid), `--nofile=${most}:`])
  if (limited.status !== 0) throw new Error(limited.stderr.toString())
}

test("without a free descriptor an attachment is 503, and mail waits for its thread", async () => {
  await using server = await startBelfry({ env: lean })
  using client = await oldClient(server)
  const attachments = [{ filename: "a.bin", content: Buffer.alloc(3000, 7).toString("base64") }]
  await client.post({ to: "nobody" }) // the connection is there, and everything of a first request
  limitDescriptors(server, 1)

  const refused = await client.post({ text: "hello", attachments })
  expect(refused).toMatchObject({
    status: 503,
    body: { error: { code: "service_unavailable", details: { reason: "descriptors" } } },
  })
  const accepted = await client.post({ text: "hello" })
  expect(accepted.status).toBe(201)
  const { id } = accepted.body as { id: string }
  await server.stderr.first((line) => line.includes("no worker thread can start"))

  limitDescriptors(server, 1024)
  await reaches(server, id, "delivered")
  const late = await send(server, { attachments })
  await reaches(server, late, "delivered")
})
