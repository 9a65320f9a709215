import { expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { type CountingRelay, countingRelay } from "../fakes/counting-relay"
import { type Belfry, binary, makeHome, startBelfry } from "../harness/binary"
import { sizes } from "../harness/sizes"
import { get, until } from "./mails"
import { relaySettings } from "./serve"

const PEOPLE = sizes.audience
const TOPIC = "product-news"
const CATEGORY = "product"
const JOINED_AT_ONCE = 1000
const DEADLINE_MS = 900_000

/** Who hears nothing of a publish, or hears it later, by external id. */
const SILENT = { quiet: ["p1", "p2"], opted_out: "p3", suppressed: "p4" }
const LEAVER = "p5"

const externalId = (number: number) => `p${number}`
const addressOf = (external_id: string) => `${external_id}@people.test`

interface Publish {
  id: string
  status: string
  audience: number
  channels: { email: { planned: number; sent: number; skipped: Skipped; failed: number } }
}

interface Skipped {
  no_address: number
  preference: number
  suppressed: number
  frequency_cap: number
  quota: number
}

interface Reachability {
  email: { allowed: boolean; reason: string | null; next_allowed_at: string | null }
}

const NAMES = ["Ann Bell", 'Bo "B" Kim', "Özil, Jörg", "李 雷", "Ngọc Trần"]

/** A file as a spreadsheet saves it: with a BOM, quotes where they are needed, and CRLF. */
function csv(): string {
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`
  const rows = Array.from({ length: PEOPLE }, (_, at) => {
    const id = externalId(at + 1)
    return `${id},${addressOf(id)},${quoted(NAMES[at % NAMES.length] ?? "")},Europe/Vienna`
  })
  return `\uFEFFexternal_id,email,name,timezone\r\n${rows.join("\r\n")}\r\n`
}

async function change<Data>(
  server: Belfry,
  method: string,
  path: string,
  body: object,
): Promise<Data> {
  const answer = await server.request(path, { method, body: JSON.stringify(body) })
  const { data, error } = (await answer.json()) as { data: Data; error?: object }
  expect(error).toBeUndefined()
  return data
}

/** A long file takes longer than other commands may. */
async function importPeople({ home, url, api_key }: Belfry): Promise<void> {
  const file = join(home, "people.csv")
  await Bun.write(file, csv())
  const child = Bun.spawn([binary, "subscribers", "import", file, "--json"], {
    cwd: join(home, "work"),
    env: {
      ...{ PATH: process.env.PATH ?? "", HOME: home, XDG_STATE_HOME: join(home, "state") },
      ...{ BELFRY_URL: url, BELFRY_API_KEY: api_key },
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`exit ${code}: ${err}`)
  expect(JSON.parse(out)).toMatchObject({ created: PEOPLE, updated: 0, failed: 0 })
}

async function joinEverybody(server: Belfry): Promise<void> {
  for (let from = 1; from <= PEOPLE; from += JOINED_AT_ONCE) {
    const count = Math.min(JOINED_AT_ONCE, PEOPLE - from + 1)
    const subscriber_ids = Array.from({ length: count }, (_, at) => externalId(from + at))
    const { added } = await change<{ added: number }>(
      server,
      "POST",
      `/v1/topics/${TOPIC}/subscribers`,
      { subscriber_ids },
    )
    expect(added).toBe(count)
  }
}

/** Around the clock but for the hour that has just passed: whatever time it is, they are quiet now. */
function quietNow() {
  const hour = (shift: number) => {
    const at = new Date(Date.now() + shift * 3_600_000).getUTCHours()
    return `${String(at).padStart(2, "0")}:00`
  }
  return { enabled: true, start: hour(-1), end: hour(3), timezone: "UTC", channels: ["email"] }
}

async function prepare(server: Belfry): Promise<void> {
  await importPeople(server)
  await change(server, "POST", "/v1/subscribers/categories", { name: "Product", slug: CATEGORY })
  await change(server, "POST", "/v1/topics", { name: "Product news", key: TOPIC })
  await joinEverybody(server)
  for (const id of SILENT.quiet) {
    const path = `/v1/subscribers/${id}/preferences`
    await change(server, "POST", path, { quiet_hours: quietNow() })
  }
  const opted_out = { email: { categories: { [CATEGORY]: false } } }
  await change(server, "POST", `/v1/subscribers/${SILENT.opted_out}/preferences`, opted_out)
  const suppressed = { email: addressOf(SILENT.suppressed) }
  await change(server, "POST", "/v1/suppressions", suppressed)
  await change(server, "POST", "/v1/templates", {
    name: "product-news",
    subject: "News for {{subscriber.name}}",
    html: '<p>Hello {{subscriber.name}}</p><a href="{{unsubscribe_url}}">no more</a>',
  })
}

const publish = (server: Belfry, dedupe_key: string) =>
  change<Publish>(server, "POST", `/v1/topics/${TOPIC}/publish`, {
    channels: ["email"],
    template_id: "product-news",
    category: CATEGORY,
    dedupe_key,
  })

const completed = (server: Belfry, id: string) =>
  until(
    `publish ${id} completed`,
    async () => {
      const found = await get<Publish>(server, `/v1/topics/${TOPIC}/publishes/${id}`)
      return found.status === "completed" && found
    },
    DEADLINE_MS,
  )

/** The addresses that mails went to, and the different mails that each address got. */
function received(relay: CountingRelay) {
  const mails = new Map<string, Set<string>>()
  for (const { recipients, message_id } of relay.receipts) {
    const [address = ""] = recipients
    mails.set(address, (mails.get(address) ?? new Set()).add(message_id))
  }
  return mails
}

const arrived = (relay: CountingRelay, people: number) =>
  until(`mail for ${people}`, () => received(relay).size >= people, DEADLINE_MS)

const reachability = async (server: Belfry, id: string) =>
  (await get<Reachability>(server, `/v1/subscribers/${id}/reachability?category=${CATEGORY}`)).email

/** Why each one was silent, as the API says it. */
async function explained(server: Belfry): Promise<void> {
  expect(await reachability(server, LEAVER)).toMatchObject({ allowed: true, reason: null })
  const opted_out = await reachability(server, SILENT.opted_out)
  expect(opted_out).toMatchObject({ allowed: false, reason: "preference" })
  const suppressed = await reachability(server, SILENT.suppressed)
  expect(suppressed).toMatchObject({ allowed: false, reason: "suppressed" })
  for (const id of SILENT.quiet) {
    const { reason, next_allowed_at } = await reachability(server, id)
    expect([reason, next_allowed_at]).toEqual(["quiet_hours", expect.any(String)])
    const [mail] = await get<{ id: string; scheduled_at: string | null }[]>(
      server,
      `/v1/emails?to=${encodeURIComponent(addressOf(id))}`,
    )
    expect(mail?.scheduled_at).toBe(next_allowed_at)
    const why = JSON.stringify(await get(server, `/v1/emails/${mail?.id}/explain`))
    expect(why).toContain("quiet_hours")
  }
}

const NOBODY_SKIPPED = { no_address: 0, preference: 0, suppressed: 0, frequency_cap: 0, quota: 0 }

function expectCounts({ audience, channels: { email } }: Publish, skipped: Partial<Skipped>) {
  const all = { ...NOBODY_SKIPPED, ...skipped }
  const left_out = Object.values(all).reduce((sum, count) => sum + count, 0)
  expect(audience).toBe(PEOPLE)
  expect(email).toEqual({
    ...{ planned: PEOPLE, sent: PEOPLE - left_out, failed: 0 },
    skipped: all,
  })
}

/** Follows the link of the mail, as the recipient's mail program does. */
async function unsubscribe(server: Belfry, relay: CountingRelay, address: string): Promise<void> {
  const mail = relay.receipts.find(({ recipients }) => recipients[0] === address)
  const head = mail?.raw.replaceAll(/\r\n[ \t]+/g, " ") ?? ""
  const [, url = ""] = /^List-Unsubscribe: <([^>]+)>/m.exec(head) ?? []
  const body = new URLSearchParams({ "List-Unsubscribe": "One-Click" })
  const answer = await fetch(`${server.url}${new URL(url).pathname}`, { method: "POST", body })
  expect(answer.status).toBe(200)
}

test("an audience comes from a file, gets a publish over a SIGKILL, and who leaves is left out of the next", async () => {
  const home = makeHome()
  using relay = countingRelay({ delay_ms: 2 })
  const env = relaySettings(relay.port, {
    BELFRY_SENDING_DOMAINS: "example.test",
    BELFRY_SUBSCRIBERS_BULK_PER_MINUTE: "100000",
  })
  let server = await startBelfry({ home, env })
  try {
    await change(server, "PATCH", "/v1/settings", { default_from: "news@example.test" })
    await prepare(server)
    const first = await publish(server, "first")
    await until("the first mails", () => relay.receipts.length > 0)
    server.kill("SIGKILL")
    await server.exited
    const silent = SILENT.quiet.length + 2
    expect(received(relay).size).toBeLessThan(PEOPLE - silent)

    server = await startBelfry({ home, env })
    expect((await publish(server, "first")).id).toBe(first.id)
    const done = await completed(server, first.id)
    expectCounts(done, { preference: 1, suppressed: 1 })
    await arrived(relay, PEOPLE - silent)
    const mails = received(relay)
    expect(Math.max(...[...mails.values()].map((ids) => ids.size))).toBe(1)
    const nobody = [...SILENT.quiet, SILENT.opted_out, SILENT.suppressed].map(addressOf)
    expect(nobody.filter((address) => mails.has(address))).toEqual([])
    expect(mails.size).toBe(PEOPLE - silent)
    await explained(server)

    await unsubscribe(server, relay, addressOf(LEAVER))
    const asked = `email=${encodeURIComponent(addressOf(LEAVER))}&topic=${TOPIC}`
    const check = await get<{ suppressed: boolean }>(server, `/v1/suppressions/check?${asked}`)
    expect(check.suppressed).toBe(true)
    relay.receipts.length = 0
    const second = await completed(server, (await publish(server, "second")).id)
    expectCounts(second, { preference: 1, suppressed: 2 })
    await arrived(relay, PEOPLE - silent - 1)
    expect(received(relay).has(addressOf(LEAVER))).toBe(false)
    expect(received(relay).size).toBe(PEOPLE - silent - 1)
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
}, 1_800_000)
