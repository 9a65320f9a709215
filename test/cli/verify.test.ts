import { expect, test } from "bun:test"
import { isVerified, type Received, type Receiver, startReceiver } from "../harness/receiver"
import { freshHome, onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const SECRET = `whsec_${Buffer.alloc(32, 3).toString("base64")}`

const careful = (secret: string) => startReceiver((one) => (isVerified(secret, one) ? 200 : 401))

const score = async (receiver: Receiver, ...words: string[]) => {
  const { exit, out } = await belfry(["webhooks", "verify", receiver.url, ...words])
  const trials = JSON.parse(out) as { name: string; passed: boolean }[]
  return { exit, trials, failed: trials.flatMap(({ name, passed }) => (passed ? [] : name)) }
}

test("a careful receiver passes every trial", async () => {
  using receiver = careful(SECRET)
  const { exit, trials, failed } = await score(receiver, "--secret", SECRET)
  expect({ exit, failed }).toEqual({ exit: 0, failed: [] })
  expect(trials.map(({ name }) => name)).toEqual([
    "good",
    "tampered",
    "forged",
    "unsigned",
    "stale",
    "duplicate",
    "slow",
  ])
  expect(trials[0]).toMatchObject({ expected: "2xx", response_status: 200, error: null })
  expect(receiver.ids()[5]).toBe(receiver.ids()[0] ?? "")
  expect(receiver.received[5]?.body).toBe(receiver.received[0]?.body ?? "")
  expect(receiver.received[1]?.body).not.toBe(receiver.received[0]?.body ?? "")
})

test.each<[string, (one: Received) => number, string[]]>([
  ["that verifies nothing", () => 200, ["tampered", "forged", "unsigned", "stale"]],
  [
    "that verifies only what is signed",
    (one) => (!one.headers["webhook-signature"] || isVerified(SECRET, one) ? 204 : 400),
    ["unsigned"],
  ],
  [
    "that breaks on what is wrong",
    (one) => (isVerified(SECRET, one) ? 200 : 500),
    ["tampered", "forged", "unsigned", "stale"],
  ],
])("a receiver %s fails some: 8", async (_, answer, expected) => {
  using receiver = startReceiver(answer)
  const { exit, failed } = await score(receiver, "--secret", SECRET)
  expect({ exit, failed }).toEqual({ exit: 8, failed: expected })
})

test("where nothing answers, everything fails: 1", async () => {
  const words = ["webhooks", "verify", "127.0.0.1:1", "--secret", SECRET]
  const { exit, out } = await belfry(words)
  expect(exit).toBe(1)
  expect(JSON.parse(out)[0]).toMatchObject({ response_status: null, error: "connection refused" })
})

test("without a secret it is the one that listen shows", async () => {
  const env = { BELFRY_URL: "http://127.0.0.1:1", HOME: freshHome() } // no server is asked
  const { out } = await belfry(["listen", "--print-secret", "--quiet"], { env })
  using receiver = careful(out.trim())
  const { exit } = await belfry(["webhooks", "verify", receiver.url], { env })
  expect(exit).toBe(0)
})

test("on a terminal it is a line for each, with what cannot be seen from outside", async () => {
  using receiver = careful(SECRET)
  const words = ["webhooks", "verify", receiver.url, "--secret", SECRET, "--no-color"]
  const { exit, out } = await onTerminal(words, { columns: 80 })
  expect(exit).toBe(0)
  expect(out).toContain("DELIVERY   WHAT                              EXPECTED → ANSWER")
  expect(out).toMatch(/✓ {2}tampered {3}body changed after signing {8}4xx → 401 {2}\d+ ms/)
  expect(out).toContain("duplicate: this test cannot see if the receiver acted twice")
  expect(out).toContain("7 of 7 answers are right")
})

test("a line stands there before the next is answered, which is waited for before all eyes", async () => {
  const { promise: seen, resolve } = Promise.withResolvers<void>()
  let count = 0
  using receiver = startReceiver(async () => {
    count += 1
    if (count === 5) await seen
    return 200
  })
  const words = ["webhooks", "verify", receiver.url, "--secret", SECRET, "--no-color"]
  const until = "·  stale      valid, but ten minutes old        4xx → … 1 of 30 s"
  const { out } = await onTerminal(words, { columns: 80, until, seen: resolve })
  expect(out.indexOf("✗  unsigned")).toBeLessThan(out.indexOf("·  stale"))
  expect(out.indexOf("·  stale")).toBeLessThan(out.indexOf("✗  stale"))
})

test("a dumb terminal and a pipe are told nothing that passes", async () => {
  using receiver = careful(SECRET)
  const words = ["webhooks", "verify", receiver.url, "--secret", SECRET]
  const dumb = await onTerminal(words, { env: { TERM: "dumb" } })
  const pipe = await belfry([...words, "--ndjson"])
  expect([dumb.exit, dumb.out.includes("\u001b"), dumb.out.includes("… 0 of")]).toEqual([
    0,
    false,
    false,
  ])
  expect([pipe.err, pipe.out.trim().split("\n").length]).toEqual([
    `signed with the secret ${SECRET.slice(0, 12)}… of --secret\n`,
    7,
  ])
})

test("a field that there is not is told before anything is sent: 2", async () => {
  using receiver = careful(SECRET)
  const words = ["webhooks", "verify", receiver.url, "--secret", SECRET, "--json=name,verdict"]
  expect((await belfry(words)).exit).toBe(2)
  expect(receiver.received).toEqual([])
})

test("what is no secret is refused: 2", async () => {
  const words = ["webhooks", "verify", "localhost:1", "--secret", "whsec_short"]
  expect((await belfry(words)).exit).toBe(2)
})

test("the secret that signed is always named, and a registered receiver has one of its own", async () => {
  using api = new FakeApi()
  using receiver = careful(SECRET)
  const endpoint = receiver.url.replace("127.0.0.1", "localhost")
  api.data("GET /v1/webhooks", [{ id: ID, url: endpoint }])
  const env = { BELFRY_URL: api.url, BELFRY_API_KEY: KEY }
  const verify = ["webhooks", "verify", receiver.url]
  const own = await belfry(verify, { env })
  expect(own.err).toContain(`${endpoint} is the endpoint ${ID}, which has a secret of its own`)
  expect(own.err).toContain("--secret whsec_…")
  expect(own.err).toContain(`belfry webhooks test ${ID}`)
  expect(own.err).toMatch(/signed with the secret whsec_\S{6}… of belfry listen for http/)
  const given = await belfry([...verify, "--secret", SECRET], { env })
  expect(given.err).toBe(`signed with the secret ${SECRET.slice(0, 12)}… of --secret\n`)
  api.data("GET /v1/webhooks", [{ id: ID, url: `${endpoint}/other` }])
  expect((await belfry(verify, { env })).err).not.toContain("endpoint")
})
