import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { newSecret } from "../../src/lib/signature"
import { binary, makeHome, startBelfry } from "../harness/binary"
import { readLines } from "../harness/lines"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { isVerified, startReceiver } from "../harness/receiver"
import { startRelay } from "../harness/relay"
import { dial } from "../harness/socket"
import { send, until } from "./mails"
import { initialise, lean, startServe } from "./serve"

/** A command of the binary that goes on beside the server, on a home that has its profile. */
function beside(home: string, words: string[]) {
  const child = Bun.spawn([binary, ...words], {
    cwd: join(home, "work"),
    env: { PATH: process.env.PATH ?? "", HOME: home, XDG_CONFIG_HOME: join(home, "config") },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [stdout, stderr] = [readLines(child.stdout), readLines(child.stderr)]
  return {
    stdout,
    stderr,
    exited: child.exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

/** A home that outlives the server in it. */
function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

const typeOf = ({ body }: { body: string }) => (JSON.parse(body) as { type: string }).type

test("up, listen, an email: its story arrives signed at a receiver on this machine", async () => {
  await using server = await startBelfry({ env: lean })
  using receiver = startReceiver()
  const words = ["listen", "--forward-to", receiver.url.replace("http://", "")]
  using listen = beside(server.home, words)
  const ready = await listen.stdout.first((line) => line.includes("ready"))
  const { secret } = JSON.parse(ready) as { secret: string }

  await send(server, { to: "ann@mailbox.test", from: "me@mailbox.test" })
  const story = ["email.queued", "email.sent", "email.delivered"]
  await until("the story", () => receiver.received.length >= story.length)
  expect(receiver.received.map(typeOf).toSorted()).toEqual(story.toSorted())
  expect(receiver.received.every((one) => isVerified(secret, one))).toBe(true)
  const printed = (line: string) => line.includes("email.delivered") && line.includes(":200")
  await listen.stdout.first(printed)
  listen.kill("SIGINT")
  expect(await listen.exited).toBe(130)

  const verified = await server.cli("webhooks", "verify", receiver.url)
  expect(verified.code).toBe(8) // it takes everything
  const logs = await server.cli("logs", "tail", "--path", "/v1/emails", "--limit", "1")
  expect(JSON.parse(logs.stdout)).toMatchObject({ method: "POST", status: 201, error_code: null })
})

test("listen outlives a restart of the server: the secret stays, and nothing is missed", async () => {
  using lasting = lastingHome()
  await using first = await startBelfry({ home: lasting.home, env: lean })
  using receiver = startReceiver()
  await using relay = await startRelay(Number(new URL(first.url).port))
  const way = ["--url", `http://127.0.0.1:${relay.port}`, "--api-key", first.api_key]
  using listen = beside(first.home, ["listen", "--forward-to", receiver.url, ...way])
  const ready = await listen.stdout.first((line) => line.includes("ready"))
  const { secret } = JSON.parse(ready) as { secret: string }
  await send(first, { to: "ann@mailbox.test", from: "me@mailbox.test" })
  await until("its story", () => receiver.received.length === 3)
  await first.stop()

  await using second = await startBelfry({ home: lasting.home, env: lean })
  relay.to = Number(new URL(second.url).port)
  await send(second, { to: "bob@mailbox.test", from: "me@mailbox.test" })
  await until("the other story", () => receiver.received.length >= 6)
  expect(new Set(receiver.ids()).size).toBe(6)
  expect(receiver.received.every((one) => isVerified(secret, one))).toBe(true)
})

const has_postgres = !noPostgres()
if (!has_postgres) note("a stream on two nodes of one Postgres: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("two nodes on one Postgres", () => {
  test("what happens on one is told by the other at once, events and statuses", async () => {
    await using database = await freshDatabase()
    using one = lastingHome()
    using two = lastingHome()
    const env = {
      DATABASE_URL: database.url,
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      BELFRY_STORAGE_BLOBS_DIR: join(one.home, "blobs"),
      BELFRY_DELIVERY_PROVIDER: "mailbox",
    }
    const api_key = await initialise(one.home, env)
    await using here = await startServe({ home: one.home, api_key, env })
    await using there = await startServe({ home: two.home, api_key, env })
    using near = await dial(here.url, "", { key: api_key })
    using far = await dial(there.url, "", { key: api_key })

    const id = await send(here, { to: "ann@mailbox.test", from: "me@mailbox.test" })
    for (const socket of [near, far]) {
      await socket.next(({ event }) => event?.type === "email.delivered")
      const story = socket.frames.flatMap(({ event }) => event?.type ?? [])
      expect(story).toEqual(["email.queued", "email.sent", "email.delivered"])
      await socket.next(({ message }) => (message as { status?: string })?.status === "delivered")
    }
    const own = newSecret()
    const secrets = await Promise.all(
      [here, there].map(async ({ url }) => {
        const headers = { "x-svc-listen-secret": own }
        using socket = await dial(url, "?forward=true", { key: api_key, headers })
        return (await socket.next(({ type }) => type === "ready")).secret
      }),
    )
    expect(secrets).toEqual([own, own])
    expect(id).toBeString()
  })
})
