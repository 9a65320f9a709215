import type { Database } from "bun:sqlite"
import { atMost, type Bench, median, ratioOf, type Series, series } from "./bench"
import { manyMails, oneMail } from "./mail"
import { scratchFolder } from "./scratch"
import { databaseOf, initialise, type Serving, serve } from "./serving"
import { post } from "./wrk"

const SMALL = 10_000
const LARGE = 1_000_000
const LISTERS = 32
/** At the small size the rarer status has as many. */
const PAGES = 40
/** Messages that are sent through the embedded mailbox, for their claims and ends. */
const CLAIMED = 2000
const A_BATCH = 100
const FROM = "bench@mailbox.test"
/** One of so many bounced. */
const BOUNCED = 10

const OPERATIONS = ["accept", "list", "get", "claim", "counters"] as const

type Figures = Record<(typeof OPERATIONS)[number] | "p99 of lists", number>

export const growth: Bench = {
  name: "growth",
  title: "lists, reads, accepts and claims among 1,000,000 messages of a project, against 10,000",

  async run({ rounds, seconds }) {
    const sizes = [SMALL, LARGE].map((size) => ({ size, figures: figuresOf(size) }))
    const folders = sizes.map(() => scratchFolder())
    try {
      const keys: string[] = []
      for (const [at, { size }] of sizes.entries()) keys.push(await filled(folders[at]?.path, size))
      for (let round = 0; round < rounds; round++) {
        for (const [at, { figures }] of sizes.entries()) {
          const found = await measure(folders[at]?.path ?? "", keys[at] ?? "", seconds)
          for (const { name, of } of figures) of.values.push(found[name])
        }
      }
    } finally {
      for (const folder of folders) folder[Symbol.dispose]()
    }
    const [few, many] = sizes.map(({ figures }) => figures)
    const ratioFor = (name: keyof Figures) => {
      const of = (list: typeof few) => list?.find((one) => one.name === name)?.of ?? series("", "")
      return ratioOf(of(many), of(few))
    }
    return {
      series: [...(few ?? []), ...(many ?? [])].map(({ of }) => of),
      verdicts: [
        atMost("p99 of lists", ratioFor("p99 of lists"), 1.5, "×"),
        ...OPERATIONS.map((name) => atMost(`growth of ${name}`, ratioFor(name), 1.2, "×")),
      ],
      notes: [
        `Lists: ${LISTERS} at once, any of ${PAGES} pages, all messages or those of one status, ${100 / BOUNCED} % bounced. The others one after the other. Accept: the time of one among 16 connections; claim: the time for each of ${CLAIMED} messages from the first request until the mailbox has them and their ends are written; counters: the usage of the account and the totals of lists.`,
      ],
    }
  },
}

const figuresOf = (size: number) =>
  (["p99 of lists", ...OPERATIONS] as const).map((name) => ({
    name,
    of: series(`${name}, ${size.toLocaleString("en")} messages`, "ms") as Series,
  }))

/** Sends a few messages, and copies their rows until there are enough, the youngest this old. Returns the key. */
export async function filled(folder = "", size: number, age_days = 0): Promise<string> {
  const key = await initialise(folder)
  {
    await using server = await serve(folder, key)
    for (const to of ["ann@mailbox.test", "bounce@mailbox.test"]) {
      const body = { from: FROM, to, subject: "Your order has shipped", html: `<p>${TEXT}</p>` }
      await asked(server, "/v1/emails", { method: "POST", body: JSON.stringify(body) })
    }
    await until(async () => (await totalOf(server, "&status=bounced")) === 1)
    await until(async () => (await totalOf(server, "&status=delivered")) === 1)
    await server.stop()
  }
  using database = databaseOf(folder)
  copyRows(database, size, age_days * 86_400_000)
  return key
}

const TEXT = "Hello, your order is on its way. ".repeat(25)

const TABLES = {
  messages: "id",
  message_contents: "message_id",
  message_raws: "message_id",
  attempts: "message_id",
  events: "subject_id",
} as const

type Row = Record<string, string | number | Uint8Array | null>

/** As if the messages had been sent over thirty days, the last one this long and an hour ago. */
function copyRows(database: Database, size: number, age_ms: number) {
  database.run("PRAGMA synchronous = OFF")
  database.run("PRAGMA cache_size = -262144")
  const messages = database.query("SELECT * FROM messages ORDER BY status DESC").all() as Row[]
  const copiers = messages.map((message) => copierOf(database, message))
  const [delivered, bounced] = copiers
  const last = Date.now() - 3_600_000 - age_ms
  const step = (29 * 86_400_000) / size
  for (let done = 0; done < size; ) {
    database.run("BEGIN IMMEDIATE")
    for (let nth = 0; nth < 10_000 && done < size; nth++, done++) {
      const at = Math.floor(last - (size - done) * step)
      const copy = done % BOUNCED === 0 ? bounced : delivered
      copy?.(at)
    }
    database.run("COMMIT")
  }
  const share = size / BOUNCED
  for (const [name, value] of [
    ["email", size],
    ["email.delivered", size - share],
    ["email.bounced", share],
  ] as const) {
    database.run("UPDATE counters SET value = value + ? WHERE name = ?", [value, name])
  }
  database.run("ANALYZE")
  database.run("PRAGMA wal_checkpoint(TRUNCATE)")
}

function copierOf(database: Database, message: Row): (at: number) => void {
  const writers = Object.entries(TABLES).flatMap(([table, key]) => {
    const rows = database
      .query(`SELECT * FROM ${table} WHERE ${key} = ?`)
      .all(message.id as Uint8Array)
    return (rows as Row[]).map((row) => writerOf(database, table, key, row))
  })
  return (at) => {
    const id = Bun.randomUUIDv7("buffer", at)
    for (const write of writers) write(id, at)
  }
}

function writerOf(database: Database, table: string, key: string, row: Row) {
  const columns = Object.keys(row)
  const values = Object.values(row)
  const holes = columns.map(() => "?").join(", ")
  const names = columns.map((column) => `"${column}"`).join(", ")
  const statement = database.prepare(`INSERT INTO ${table} (${names}) VALUES (${holes})`)
  const own = columns.indexOf(key)
  const event = table === "events" ? columns.indexOf("id") : -1
  const times = columns.flatMap((column, at) => (/_at$/.test(column) && row[column] ? [at] : []))
  return (id: Uint8Array, at: number) => {
    values[own] = id
    if (event >= 0) values[event] = Bun.randomUUIDv7("buffer", at)
    for (const time of times) values[time] = at
    statement.run(...values)
  }
}

async function measure(folder: string, key: string, seconds: number): Promise<Figures> {
  await using server = await serve(folder, key)
  const sample = await idsOf(server)
  const query = () => {
    const status = ["", "&status=delivered", "&status=bounced"][Math.floor(Math.random() * 3)]
    return `/v1/emails?page=${1 + Math.floor(Math.random() * PAGES)}&per_page=25${status}`
  }
  await listing(server, query, 0.5)
  const listed = await listing(server, query, seconds)
  const list = await oneByOne(seconds, () => asked(server, query()))
  const get = await oneByOne(seconds, (nth) =>
    asked(server, `/v1/emails/${sample[nth % sample.length]}`),
  )
  const counters = await oneByOne(seconds / 2, () => asked(server, "/v1/usage"))
  const accepted = await post({
    url: `${server.url}/v1/emails`,
    headers: server.headers,
    body: oneMail(folder, FROM),
    connections: 16,
    seconds,
  })
  await settled(server)
  const claim = await claimed(folder, server)
  await server.stop()
  const accept = 1000 / accepted.per_second
  return { "p99 of lists": listed, accept, list, get, claim, counters }
}

/** Ids of messages of every age. */
async function idsOf(server: Serving): Promise<string[]> {
  const pages = [1, 7, 50, 100, 400]
  const lists = await Promise.all(pages.map((page) => asked(server, `/v1/emails?page=${page}`)))
  return lists.flatMap(({ data }) => (data as { id: string }[]).map(({ id }) => id))
}

/** The p99 of so many at once. */
async function listing(server: Serving, query: () => string, seconds: number): Promise<number> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  const lane = async () => {
    while (performance.now() < end) {
      const begun = performance.now()
      await asked(server, query())
      times.push(performance.now() - begun)
    }
  }
  await Promise.all(Array.from({ length: LISTERS }, lane))
  times.sort((one, other) => one - other)
  return times[Math.floor(times.length * 0.99)] ?? Number.NaN
}

/** The median time of one, in ms. */
async function oneByOne(seconds: number, ask: (nth: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  for (let nth = 0; performance.now() < end; nth++) {
    const begun = performance.now()
    await ask(nth)
    times.push(performance.now() - begun)
  }
  return median(times)
}

/** How long one message takes from its request until its end is written, where many wait. */
async function claimed(folder: string, server: Serving): Promise<number> {
  const body = await Bun.file(manyMails(folder, FROM, A_BATCH)).text()
  const begun = performance.now()
  for (let sent = 0; sent < CLAIMED; sent += A_BATCH) {
    await asked(server, "/v1/emails/batch", { method: "POST", body })
  }
  await settled(server)
  return (performance.now() - begun) / CLAIMED
}

/** Until the end of every message is written. */
const settled = (server: Serving) =>
  until(async () => {
    const filters = ["", "&status=delivered", "&status=bounced"]
    const [all = 0, delivered = 0, bounced = 0] = await Promise.all(
      filters.map((filter) => totalOf(server, filter)),
    )
    return delivered + bounced === all
  })

async function totalOf(server: Serving, filter: string): Promise<number> {
  const { meta } = await asked(server, `/v1/emails?per_page=1${filter}`)
  return meta.total
}

interface Answer {
  data: unknown
  meta: { total: number }
}

async function asked(server: Serving, path: string, init: RequestInit = {}): Promise<Answer> {
  const headers = { ...server.headers, "Content-Type": "application/json" }
  const answer = await fetch(`${server.url}${path}`, { ...init, headers })
  if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`)
  return (await answer.json()) as Answer
}

const PATIENCE_MS = 120_000

async function until(holds: () => Promise<boolean>) {
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
    if (await holds()) return
    await Bun.sleep(20)
  }
  throw new Error("it did not come to an end")
}
