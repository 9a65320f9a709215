import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { connect } from "node:net"
import { countingRelay } from "../fakes/counting-relay"
import { makeHome, startBelfry } from "../harness/binary"
import { openRequest } from "../harness/raw-request"
import { untilRead } from "../harness/unread"
import { countOf, drained, get, type Mail, post, send, until } from "./mails"
import { relaySettings } from "./serve"

/** Nothing tells from outside that a request which was read has come to its wait. */
const HANDLED_MS = 300

const mail = { from: "me@example.test", to: "ann@example.test" }

function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

test("SIGTERM waits for the message that is in the relay's hands", async () => {
  using lasting = lastingHome()
  using relay = countingRelay({ delay_ms: 1500 })
  const options = { home: lasting.home, env: relaySettings(relay.port) }
  await using first = await startBelfry(options)
  const id = await send(first, mail)
  await until("the relay has it", () => relay.receipts.length > 0)
  first.kill("SIGTERM")
  expect(await first.exited).toBe(0)

  await using second = await startBelfry(options)
  expect(await get<Mail>(second, `/v1/emails/${id}`)).toMatchObject({ status: "sent", attempts: 1 })
  expect([...relay.counts().values()]).toEqual([1])
})

test("SIGTERM lets a request finish whose body is still on its way", async () => {
  using lasting = lastingHome()
  using relay = countingRelay()
  const options = { home: lasting.home, env: relaySettings(relay.port) }
  await using first = await startBelfry(options)
  const body = JSON.stringify({ ...mail, subject: "Late", text: "x".repeat(200_000) })
  await get(first, "/v1/emails") // what a request needs is loaded with the first one
  const port = Number(new URL(first.url).port)
  const socket = connect(port, "127.0.0.1")
  let answer = ""
  socket.on("data", (chunk) => {
    answer += chunk.toString()
  })
  const ended = new Promise((resolve) => socket.once("close", resolve))
  socket.write(
    `POST /v1/emails HTTP/1.1\r\nHost: belfry\r\nX-API-Key: ${first.api_key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  await new Promise((resolve) => socket.write(body.slice(0, 100_000), resolve))
  await untilRead(port)
  await Bun.sleep(HANDLED_MS)
  first.kill("SIGTERM")
  await until("it takes no new connections", () => refused(first.url))
  socket.write(body.slice(100_000))
  expect(await first.exited).toBe(0)
  await ended
  expect(answer).toStartWith("HTTP/1.1 201 ")

  await using second = await startBelfry(options)
  await drained(second)
  expect([...relay.counts().values()]).toEqual([1])
})

/** While draining the port may still be open: then readiness says so. */
const refused = (url: string) =>
  fetch(`${url}/readyz`, { keepalive: false }).then(
    ({ status }) => status === 503,
    () => true,
  )

test("SIGTERM answers a long poll instead of waiting for it", async () => {
  using relay = countingRelay()
  await using server = await startBelfry({ env: relaySettings(relay.port) })
  await get(server, "/v1/events") // what a request needs is loaded with the first one
  const port = Number(new URL(server.url).port)
  const key = `X-API-Key: ${server.api_key}`
  const poll = await openRequest(port, ["GET /v1/events?wait=25 HTTP/1.1", "Host: belfry", key])
  await untilRead(port)
  await Bun.sleep(HANDLED_MS)
  server.kill("SIGTERM")
  const response = await poll.answer // cut off after 20 s if it were waited for
  expect(response.status).toBe(200)
  expect(response.body).toMatchObject({ data: [] })
  expect(await server.exited).toBe(0)
})

test("SIGTERM under load: what was acknowledged is delivered once, the rest was told", async () => {
  using lasting = lastingHome()
  using relay = countingRelay({ delay_ms: 20 })
  const options = { home: lasting.home, env: relaySettings(relay.port) }
  const acknowledged: string[] = []
  const answers = new Set<number>()

  for (let round = 0; round < 3; round++) {
    await using server = await startBelfry(options)
    let running = true
    const sender = async () => {
      while (running) {
        const response = await post(server, mail).catch(() => undefined)
        if (!response) return // nobody listens any more
        answers.add(response.status)
        const { id } = (await response.json()) as { id?: string }
        if (response.status === 201 && id) acknowledged.push(id)
        else return
      }
    }
    const load = Array.from({ length: 12 }, sender)
    await Bun.sleep(500)
    server.kill("SIGTERM")
    expect(await server.exited).toBe(0)
    running = false
    await Promise.all(load)
  }
  expect([...answers].filter((status) => status !== 201 && status !== 503)).toEqual([])

  await using last = await startBelfry(options)
  await drained(last)
  const wanted = acknowledged.map((id) => `<${id}@example.test>`)
  const counts = relay.counts()
  expect(wanted.filter((id) => counts.get(id) !== 1)).toEqual([])
  expect(await countOf(last, "sent")).toBe(counts.size)
})

test("a second SIGTERM does not wait for a relay that stalls", async () => {
  using lasting = lastingHome()
  using relay = countingRelay({ atEnd: () => "stall" })
  const options = { home: lasting.home, env: relaySettings(relay.port) }
  await using server = await startBelfry(options)
  const id = await send(server, mail)
  await until("the relay is asked", () => relay.connections() > 0)
  server.kill("SIGTERM")
  await until("it drains", () => refused(server.url))
  server.kill("SIGTERM")
  expect(await server.exited).toBe(130)

  await using second = await startBelfry(options)
  expect((await get<Mail>(second, `/v1/emails/${id}`)).status).toMatch(/queued|sending/)
  second.kill("SIGTERM") // both at once for the one in hand now
  second.kill("SIGKILL")
})
