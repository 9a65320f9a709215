import { afterAll, beforeAll, expect, test } from "bun:test"
import { connect } from "node:net"
import { listening } from "../../src/core/destination"
import { resolver } from "../../src/core/dns"
import { NetError, request } from "../../src/core/net"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { FRIEND, inwardUrl, rebinding, scriptedNames } from "./inward-forms"
import type { NameServer } from "./name-server"

const LIMIT_MS = 300_000

/** Whoever gets through is counted, at both of the machine's own addresses. */
let canaries: [Canary, Canary]
/** One loopback address is allowed, as the public one of the stories; it keeps connections open. */
let friend: { answered(): number; close(): void }
let names: NameServer

interface Canary {
  host: string
  port: number
  connections: number
  knocks: number
  close(): void
}

beforeAll(async () => {
  names = await scriptedNames()
  const four = canary("127.0.0.1", 0)
  canaries = [four, canary("::1", four.port)]
  friend = befriend(four.port)
})

afterAll(() => {
  names.close()
  for (const { close } of canaries) close()
  friend.close()
})

function canary(host: string, port: number): Canary {
  const open = (socket: Bun.Socket) => {
    own.connections += 1
    socket.end()
  }
  const server = Bun.listen({ hostname: host, port, socket: { open, data: () => {} } })
  const close = () => server.stop(true)
  const own: Canary = { host, port: server.port, connections: 0, knocks: 0, close }
  return own
}

function befriend(port: number) {
  let answered = 0
  const server = Bun.serve({
    hostname: FRIEND,
    port,
    fetch() {
      answered += 1
      return new Response("friend")
    },
  })
  return { answered: () => answered, close: () => void server.stop(true) }
}

/** Connections come in order: when our own knock is counted, whatever came before it is, too. */
async function connectionsInside(): Promise<number> {
  let found = 0
  for (const one of canaries) {
    const before = one.connections
    const socket = connect(one.port, one.host)
    socket.on("error", () => undefined)
    const closed = new Promise((resolve) => socket.once("close", resolve))
    socket.resume()
    await closed
    one.knocks += 1
    if (one.connections === before) throw new Error("the canary is deaf")
    found += one.connections - one.knocks
  }
  return found
}

const go = (url: string) =>
  request({
    url,
    timeout_ms: 10_000,
    capture_bytes: 100,
    allow_private: [`${FRIEND}/32`],
    resolver: resolver({ servers: [names.address] }),
  })

/** The friend's answer or a refusal; anything else would be a mistake of another kind. */
async function outcome(url: string): Promise<string> {
  try {
    const { status, body } = await go(url)
    return status === 200 ? new TextDecoder().decode(body) : `status ${status}`
  } catch (error) {
    return error instanceof NetError ? error.kind : `not a NetError but ${error}`
  }
}

const fates = ["blocked_address", "invalid_url", "dns", "friend"]

test(
  "no form of an inner address is ever connected to",
  async () => {
    const seen = new Map<string, number>()
    const { port } = canaries[0]
    await fc.assert(
      fc.asyncProperty(inwardUrl(port), async (url) => {
        const fate = await outcome(url)
        seen.set(fate, (seen.get(fate) ?? 0) + 1)
        // The friend speaks no TLS.
        const fine = fates.includes(fate) || (fate === "tls" && url.includes("rebind.test"))
        if (!fine || canaries.some(({ connections, knocks }) => connections !== knocks)) {
          throw new Error(`${JSON.stringify(url)}: ${fate}`)
        }
      }),
      { numRuns: sizes.inward },
    )
    expect(await connectionsInside()).toBe(0)
    expect([...seen.keys()].sort()).toEqual(expect.arrayContaining(fates.toSorted()))
  },
  LIMIT_MS,
)

test(
  "names that change their mind reach the friend over warm connections, and nobody else",
  async () => {
    const { port } = canaries[0]
    const before = friend.answered()
    let [refused, answered] = [0, 0]
    const urls = fc.sample(rebinding, sizes.inward).map((name) => `http://${name}:${port}/`)
    const lane = async () => {
      for (let url = urls.pop(); url; url = urls.pop()) {
        const fate = await outcome(url)
        if (fate === "friend") answered += 1
        else if (fate === "blocked_address") refused += 1
        else expect(fate).toBe("dns")
      }
    }
    await Promise.all(Array.from({ length: 16 }, lane))
    expect(await connectionsInside()).toBe(0)
    expect(friend.answered() - before).toBe(answered)
    expect(Math.min(answered, refused)).toBeGreaterThan(sizes.inward / 100)
  },
  LIMIT_MS,
)

test("our own listeners are refused in every form, even where all of loopback is allowed", async () => {
  const { port } = canaries[0]
  const stop = [listening("127.0.0.1", port), listening("::1", port), listening(FRIEND, port)]
  const all = { timeout_ms: 10_000, capture_bytes: 100, allow_private: ["127.0.0.0/8", "::1/128"] }
  const hosts = [
    ...[
      "127.0.0.1",
      "2130706433",
      "0x7f.1",
      "017700000001",
      "①②⑦.⓪.⓪.①",
      "localhost",
      "LOCALHOST.",
    ],
    ...["[::1]", "[::ffff:127.0.0.1]", "inside.rebind.test", "inside6.rebind.test"],
    ...["mixed.rebind.test", "flip.rebind.test"],
  ]
  for (const host of hosts) {
    const url = `http://${host}:${port}/`
    const work = request({ url, ...all, resolver: resolver({ servers: [names.address] }) })
    const kind = await work.then(
      () => "answered",
      (error: NetError) => error.kind,
    )
    expect([host, kind]).toEqual([host, "blocked_address"])
  }
  expect(await connectionsInside()).toBe(0)
  for (const end of stop) end()
})
