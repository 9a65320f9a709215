import { describe, expect, test } from "bun:test"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Belfry, binary, startBelfry } from "../harness/binary"
import { readLines } from "../harness/lines"
import { missing } from "../harness/peers"
import { isVerified, type Received, startReceiver } from "../harness/receiver"
import { openScreen } from "../harness/screen"
import { get, reaches, until } from "./mails"
import { openMonitor, SMALL } from "./monitor"
import { lean } from "./serve"

const STORY = ["email.queued", "email.sent", "email.delivered"]

interface Endpoint {
  id: string
  secret: string
  status: string
  disabled_reason: string | null
  consecutive_failures: number
  held_count: number
}

/** Runs a command of the binary and reads the JSON that it prints. */
async function json<Answer>(server: Belfry, ...words: string[]): Promise<Answer> {
  const { code, stdout, stderr } = await server.cli(...words)
  expect({ words, code, stderr }).toEqual({ words, code: 0, stderr: "" })
  return JSON.parse(stdout) as Answer
}

async function sendTo(server: Belfry, ...names: string[]) {
  for (const name of names) {
    const words = ["--to", `${name}@mailbox.test`, "--from", "me@mailbox.test"]
    const text = ["--subject", `For ${name}`, "--text", "hello"]
    const { id } = await json<{ id: string }>(server, "emails", "send", ...words, ...text)
    await reaches(server, id, "delivered")
  }
}

/** A receiver that counts as taken only what the official library verifies. */
function careful() {
  const state = { secret: "", is_down: false, taken: [] as string[] }
  const receiver = startReceiver((one: Received) => {
    if (state.is_down) return 500
    if (!isVerified(state.secret, one)) return 401
    state.taken.push(one.headers["webhook-id"] ?? "")
    return 200
  })
  return { state, url: receiver.url, [Symbol.dispose]: () => receiver[Symbol.dispose]() }
}

const openListen = ({ home, url, api_key }: Belfry, receiver: string) =>
  openScreen([binary, "listen", "--forward-to", receiver.replace("http://", "")], {
    ...SMALL,
    env: { HOME: home, BELFRY_URL: url, BELFRY_API_KEY: api_key, NO_COLOR: "1" },
  })

describe.skipIf(missing("tmux"))("everyone is told", () => {
  test("in one terminal by listen, in another by the monitor, and a receiver that was down later", async () => {
    await using server = await startBelfry({ env: lean })
    using here = careful()
    using hook = careful()
    await using listen = await openListen(server, here.url)
    const ready = await listen.shows("Ready. Signing secret whsec_")
    here.state.secret = /whsec_\S+/.exec(ready)?.[0] ?? ""
    await using monitor = await openMonitor(server, SMALL)
    await monitor.shows("● live")

    const words = ["webhooks", "create", hook.url, "--event", "email.*"]
    const { id, secret } = await json<Endpoint>(server, ...words)
    Object.assign(hook.state, { secret, is_down: true })
    await sendTo(server, "ann")
    await listen.until("its story", (text) =>
      STORY.every((type) => new RegExp(`${type} [0-9a-f]{8} → 200 `).test(text)),
    )
    await monitor.until("the message", (text) => /▸ .*For ann +delivered/.test(text))

    await sendTo(server, "bob", "kim", "lee")
    await monitor.press("2")
    await monitor.until("it is off", (text) => /off: breaker +\d+ +▓{10} 10\/10/.test(text))
    await sendTo(server, "mia") // nothing of it is tried
    const events = await json<{ id: string }[]>(
      server,
      "events",
      "list",
      "--oldest",
      "--event",
      "email.*",
    )
    expect(events).toHaveLength(5 * STORY.length)
    const path = `/v1/webhooks/${id}`
    const off = await until("all held", async () => {
      const endpoint = await get<Endpoint>(server, path)
      return endpoint.held_count === events.length && endpoint
    })
    expect(off).toMatchObject({ status: "disabled", disabled_reason: "circuit_breaker" })
    expect(off.consecutive_failures).toBe(10)
    expect(hook.state.taken).toEqual([])

    hook.state.is_down = false
    await json(server, "webhooks", "enable", id, "--replay")
    const list = ["webhooks", "deliveries", id, "--status", "success", "--limit", "100"]
    await until("all taken", async () => (await json<[]>(server, ...list)).length === events.length)
    const ids = events.map((event) => event.id).toSorted()
    expect(hook.state.taken.toSorted()).toEqual(ids)
    const own = await json<{ id: string }[]>(
      server,
      "events",
      "list",
      "--event",
      "webhook.disabled",
    )
    const told = [...ids, ...own.map((event) => event.id)] // by listen everything is told
    expect(own).toHaveLength(1)
    expect(here.state.taken.toSorted()).toEqual(told.toSorted())
    await monitor.until("it is on", (text) => /active +0 +░{10} 0\/10/.test(text))
    await monitor.until("what it took", (text) => /email\.delivered +success +1\/6 +200/.test(text))
    listen.kill("SIGINT")
    await listen.shows("exit 130")
  })
})

/** The program in the page, as it stands there but for its port, and for what it does with an event. */
function documented(): string {
  const page = readFileSync(join(import.meta.dir, "../../docs/webhooks.md"), "utf8")
  const [, program = ""] = /```js\n(import [\s\S]+?)```/.exec(page) ?? []
  const own = program
    .replace('"standardwebhooks"', JSON.stringify(import.meta.resolve("standardwebhooks")))
    .replace(
      "Bun.serve({\n  port: 3000",
      'const server = Bun.serve({\n  hostname: "127.0.0.1", port: 0',
    )
  return `${own}\nfunction handle(event) { console.log(event.type) }\nconsole.log(server.port)\n`
}

test("the receiver of docs/webhooks.md takes what is ours, once, and nothing else", async () => {
  await using server = await startBelfry({ env: lean })
  const folder = mkdtempSync(join(tmpdir(), "belfry-receiver-"))
  const file = join(folder, "receiver.mjs")
  writeFileSync(file, documented())
  const secret = (await server.cli("listen", "--print-secret")).stdout.trim()
  const child = Bun.spawn([process.execPath, file], {
    env: { PATH: process.env.PATH ?? "", WEBHOOK_SECRET: secret },
    stdout: "pipe",
    stderr: "inherit",
  })
  try {
    const handled = readLines(child.stdout)
    const port = await handled.first((line) => /^\d+$/.test(line))
    const verified = await server.cli("webhooks", "verify", `127.0.0.1:${port}`)
    expect(verified).toMatchObject({ code: 0, stderr: expect.stringContaining("of belfry listen") })
    await handled.first((line) => line === "webhook.test")
    child.kill()
    await handled.ended
    // The good one and the slow one: what came twice was handled once.
    expect(handled.all.filter((line) => line === "webhook.test")).toHaveLength(2)
  } finally {
    child.kill("SIGKILL")
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  }
})
