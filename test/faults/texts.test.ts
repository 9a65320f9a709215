import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { join } from "node:path"
import { faultyGateway, type GatewayStep } from "../fakes/faulty-gateway"
import { configureProvider } from "../harness/configured-provider"
import { sizes } from "../harness/sizes"
import { until } from "../scenarios/mails"
import { initialise, lastingHome, startServe } from "../scenarios/serve"

/** Texts that are on their way at once. */
const IN_FLIGHT = 16
/** Some are composed, and the outcomes of others are not on disk yet. */
const PER_PERMIT = 4
/** At the gateways, so that some are on their way at any moment. */
const DELAY_MS = 30

/** What the dead server had sent is read by the gateways. */
const SETTLED_MS = 200
const DRAIN_DEADLINE_MS = 300_000

/** By the last digit of the number. */
const STEPS: readonly GatewayStep[] = [
  "take",
  "refuse",
  "forbid",
  "throttle",
  "take",
  "break",
  "hang",
  "close before the answer",
  "take",
  "close after the answer",
]

/** Few hang: a provider that hangs gets two texts at a time, and each of them waits for 15 seconds. */
function stepFor(to: string): GatewayStep {
  const step = STEPS[Number(to.at(-1))] ?? "take"
  return step === "hang" && Number(to) % 50 !== 6 ? "take" : step
}

/** Steps that leave open whether the text goes out. */
const UNKNOWN: readonly GatewayStep[] = ["hang", "close before the answer"]

type Server = Awaited<ReturnType<typeof startServe>>

interface Text {
  to: string
  status: string
  status_reason: string | null
}

async function send(server: Server, to: string): Promise<string> {
  const answer = await server.request("/v1/sms", {
    method: "POST",
    body: JSON.stringify({ to, body: "Your code is 1234" }),
  })
  const text = await answer.text()
  if (answer.status !== 201) throw new Error(`${answer.status}: ${text}`)
  const parsed = JSON.parse(text) as { id?: string; data?: { id: string } }
  return parsed.id ?? parsed.data?.id ?? ""
}

/** Of all texts, by their numbers; read from the database of a server that runs or not. */
function textsIn(home: string): Text[] {
  using database = new Database(join(home, "belfry/belfry.db"), { readonly: true })
  return database
    .query('SELECT address AS "to", status, status_reason FROM messages')
    .all() as Text[]
}

const ended = (home: string) =>
  textsIn(home).every(({ status }) => status !== "queued" && status !== "sending")

test(`${sizes.faulty_texts} texts while the first provider does everything wrong, and a kill -9: each leaves once`, async () => {
  using lasting = lastingHome()
  const { home } = lasting
  using first = faultyGateway({ stepFor, delay_ms: DELAY_MS })
  using second = faultyGateway({ delay_ms: DELAY_MS })
  const env = {
    BELFRY_PROVIDERS_TWILIO_ENDPOINT: first.url,
    BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.0/8",
    BELFRY_DELIVERY_CONCURRENCY: String(IN_FLIGHT),
  }
  const api_key = await initialise(home, env)
  await configure(home, second.url)
  const wanted = Array.from(
    { length: sizes.faulty_texts },
    (_, at) => `+4366012${String(10_000 + at)}`,
  )
  const half = wanted.length / 2
  const options = { home, env, api_key }
  {
    await using server = await startServe(options)
    await Promise.all(wanted.slice(0, half).map((to) => send(server, to)))
    await until("some texts are at the gateways", () => first.receipts.length > half / 2)
    server.kill("SIGKILL")
    await server.exited
    await Bun.sleep(SETTLED_MS)
  }
  first.round = 1
  second.round = 1
  await using server = await startServe(options)
  await Promise.all(wanted.slice(half).map((to) => send(server, to)))
  await until("every text has ended", () => ended(home), DRAIN_DEADLINE_MS)
  judge(textsIn(home), [...first.taken(), ...second.taken()], wanted)

  // Nobody listens any more: the second one gets what comes now.
  first[Symbol.dispose]()
  const later = Array.from({ length: 7 }, (_, at) => `+43660999900${at}`)
  for (const to of later) await send(server, to)
  await until("the later texts have ended", () => ended(home))
  const arrived = second.taken().filter(({ to }) => later.includes(to))
  expect(arrived.map(({ to }) => to).sort()).toEqual(later)
})

async function configure(home: string, gateway: string) {
  const data_dir = join(home, "belfry")
  const settings = { allowed_countries: ["+43"], from: "Belfry" }
  await configureProvider(data_dir, {
    provider: "twilio",
    priority: 1,
    credentials: { account_sid: `AC${"0".repeat(32)}`, auth_token: "0".repeat(32) },
    settings,
  })
  await configureProvider(data_dir, {
    provider: "http",
    credentials: {
      url: `${gateway}/send`,
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"to": "{{to}}", "text": "{{text}}"}',
    },
    settings,
  })
}

interface Taken {
  to: string
  step: GatewayStep
  round: number
}

function judge(texts: Text[], taken: Taken[], wanted: string[]) {
  expect(texts.map(({ to }) => to).sort()).toEqual(wanted)
  const copies = Map.groupBy(
    taken.toSorted((one, other) => one.round - other.round),
    ({ to }) => to,
  )
  const doubled = [...copies.values()].filter((list) => list.length > 1)
  // What left twice was in flight at the kill: once before it, and once after it.
  for (const list of doubled) {
    expect({ list, rounds: list.map(({ round }) => round) }).toEqual({ list, rounds: [0, 1] })
  }
  expect(doubled.length).toBeLessThanOrEqual(PER_PERMIT * IN_FLIGHT)

  for (const { to, status, status_reason } of texts) {
    const last = copies.get(to)?.at(-1)
    if (!last) {
      expect({ to, status, step: stepFor(to) }).toEqual({ to, status: "failed", step: "refuse" })
      continue
    }
    const reason = UNKNOWN.includes(last.step) ? "unconfirmed" : null
    expect({ to, status, status_reason }).toEqual({ to, status: "sent", status_reason: reason })
  }
  const unconfirmed = texts.filter((one) => one.status_reason === "unconfirmed").length
  console.log(`${texts.length} texts, ${doubled.length} twice, ${unconfirmed} unconfirmed`)
}
