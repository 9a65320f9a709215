import { describe, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeHome } from "../harness/binary"
import { type CuttingProxy, cuttingProxy } from "../harness/cutting-proxy"
import { readLines } from "../harness/lines"
import { root } from "../harness/migrations"
import { DEBIAN_PYTHON, missing, missingModules, note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { NEVER_MS, TEST_MS } from "../harness/waits"
import { until } from "./mails"
import { initialise, startServe } from "./serve"

const CLIENTS = join(root, "test/scenarios/inbox-clients")
const PATH = "/v1/subscriber-inbox"
const TOPIC = "news"
/** Before which so many bytes a connection breaks. */
const BYTES = { least: 300, most: 20_000 }
const MARKS = ["read", "unread", "seen", "archived", "unarchived"]

type Known = [string, number, string, boolean, boolean, boolean, string | null]
interface Client {
  person: string
  last: number
  errors: string[]
  messages: Known[]
}

/** The servers, behind addresses that stay. */
interface Stage extends AsyncDisposable {
  api: string[]
  addresses: string[]
  key: string
  /** Ends one of the servers without a word, and starts it again. */
  kill(at: number): Promise<void>
  /** From here on no connection breaks. */
  calm(): void
}

async function stage(nodes: number, database_url: string | null): Promise<Stage> {
  const homes = Array.from({ length: nodes }, makeHome)
  const master = { BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") }
  const blobs = { BELFRY_STORAGE_BLOBS_DIR: join(homes[0] ?? "", "blobs") }
  const base = { BELFRY_BASE_URL: "https://belfry.test" } // tokens name it, and ports change
  const env: Record<string, string> =
    database_url === null ? base : { ...base, DATABASE_URL: database_url, ...master, ...blobs }
  const key = await initialise(homes[0] ?? "", env)
  let is_calm = false
  const range = BYTES.most - BYTES.least
  const budget = () => (is_calm ? undefined : BYTES.least + Math.floor(Math.random() * range))
  const ways: { api: CuttingProxy; sockets: CuttingProxy }[] = []
  const servers: Awaited<ReturnType<typeof startServe>>[] = []
  const start = async (at: number) => {
    const server = await startServe({ home: homes[at] ?? "", api_key: key, env })
    servers[at] = server
    for (const way of Object.values(ways[at] ?? {})) way.leadTo(Number(new URL(server.url).port))
  }
  for (let at = 0; at < nodes; at++) {
    ways.push({ api: await cuttingProxy(), sockets: await cuttingProxy(budget) })
    await start(at)
  }
  return {
    key,
    api: ways.map(({ api }) => `http://127.0.0.1:${api.port}`),
    addresses: ways.map(({ sockets }) => `ws://127.0.0.1:${sockets.port}`),
    async kill(at) {
      servers[at]?.kill("SIGKILL")
      await servers[at]?.exited
      await start(at)
    },
    calm() {
      is_calm = true
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) await server[Symbol.asyncDispose]()
      for (const way of ways.flatMap(Object.values)) way[Symbol.dispose]()
      for (const home of homes) rmSync(home, { recursive: true, force: true })
    },
  }
}

/** A request to one of the servers; another one is asked where it is gone. */
async function ask<Data>(
  { api, key }: Stage,
  method: string,
  path: string,
  body?: object,
  token = key,
): Promise<{ status: number; data: Data; meta: Record<string, unknown> }> {
  for (let tries = 0; ; tries++) {
    const url = `${api[Math.floor(Math.random() * api.length)]}${path}`
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const given = body && { body: JSON.stringify(body) }
    const answer = await fetch(url, { method, headers, ...given }).catch(() => undefined)
    const text = await answer?.text().catch(() => undefined)
    if (answer && text && answer.status < 500 && answer.status !== 429) {
      if (![200, 201, 404].includes(answer.status)) throw new Error(`${method} ${path}: ${text}`)
      return { status: answer.status, ...JSON.parse(text) }
    }
    if (tries > 200) throw new Error(`no server answers ${method} ${path}: ${text}`)
    await Bun.sleep(50)
  }
}

function startClients(cmd: string[], folder: string, config: object) {
  const file = join(folder, `${cmd.at(-1)?.split("/").at(-1)}.json`)
  writeFileSync(file, JSON.stringify(config))
  const child = Bun.spawn({
    cmd: [...cmd, file],
    env: { PATH: process.env.PATH ?? "" },
    cwd: root,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  const say = (line: string) => {
    child.stdin.write(`${line}\n`)
    child.stdin.flush()
  }
  let reports = 0
  return {
    say,
    async report(): Promise<Client[]> {
      const wanted = ++reports
      say("report")
      await until("a report", () => lines.all.length >= wanted, NEVER_MS)
      return JSON.parse(lines.all[wanted - 1] ?? "[]") as Client[]
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/** What the server has of an inbox, in the form in which the clients tell theirs. */
async function truth(to: Stage, token: string): Promise<{ last: unknown; messages: Known[] }> {
  const found = new Map<string, Known>()
  let last: unknown
  for (const filter of ["all", "archived", "snoozed"]) {
    for (let cursor = ""; ; ) {
      const path = `${PATH}?filter=${filter}&per_page=100${cursor}`
      const page = await ask<Record<string, never>[]>(to, "GET", path, undefined, token)
      for (const one of page.data) {
        const { id = "", seq = 0, title = "", seen_at, read_at, archived_at, snoozed_until } = one
        const state = [!!seen_at, !!read_at, !!archived_at, snoozed_until ?? null] as const
        found.set(id, [id, seq, title, ...state])
      }
      last = page.meta.last_seq
      if (!page.meta.next_cursor) break
      cursor = `&cursor=${encodeURIComponent(String(page.meta.next_cursor))}`
    }
  }
  return { last, messages: [...found.values()] }
}

const one = <Item>(list: readonly Item[]): Item =>
  list[Math.floor(Math.random() * list.length)] as Item

interface Person {
  id: string
  token: string
}

/** Changes inboxes at random, from every side. */
async function change(to: Stage, people: Person[], clients: { say(line: string): void }[]) {
  const { id, token } = one(people)
  const theirs = (method: string, path: string, body?: object) =>
    ask<{ id: string }[]>(to, method, `${PATH}${path}`, body, token)
  const kind = Math.random()
  const category = one(["billing", "news", undefined])
  if (kind < 0.4) {
    const some = people.filter(() => Math.random() < 3 / people.length).map((person) => person.id)
    const target = some.length > 0 ? { subscriber_ids: some } : { subscriber_id: id }
    const collapse_key = one([undefined, undefined, "a", "b"])
    const soon = new Date(Date.now() + 1500).toISOString()
    const expires_at = Math.random() < 0.05 ? soon : undefined
    const title = `Number ${Math.random()}`
    await ask(to, "POST", "/v1/inbox", { ...target, title, category, collapse_key, expires_at })
  } else if (kind < 0.42) {
    const content = { in_app: { title: "News for {{subscriber.external_id}}", body: "All of it" } }
    await ask(to, "POST", `/v1/topics/${TOPIC}/publish`, { channels: ["in_app"], content })
  } else if (kind < 0.46) {
    await theirs("POST", one(["/read-all", "/seen-all"]), {})
  } else if (kind < 0.48) {
    await theirs("POST", "/archive-all", one([{ read_only: false }, category ? { category } : {}]))
  } else {
    const { data } = await theirs(
      "GET",
      `?filter=${one(["all", "unread", "archived"])}&per_page=20`,
    )
    const message = one(data)
    if (!message) return
    const path = `/${message.id}`
    if (kind < 0.6) for (const each of clients) each.say(`mark ${id} ${message.id} ${one(MARKS)}`)
    else if (kind < 0.75)
      await theirs("POST", "/mark", { ids: data.map((row) => row.id), as: one(MARKS) })
    else if (kind < 0.85)
      await theirs("PATCH", path, one([{ read: true }, { archived: false }, { read: false }]))
    else if (kind < 0.9) {
      const snoozed_until = new Date(Date.now() + one([1000, 3_600_000])).toISOString()
      await theirs("PATCH", path, { snoozed_until })
    } else if (kind < 0.95) await ask(to, "PATCH", `/v1/inbox${path}`, { title: "Changed" })
    else await theirs("DELETE", path)
  }
}

async function holds(to: Stage, folder: string, changes: number, kills: number) {
  const people: Person[] = []
  for (let at = 0; at < sizes.inbox_people; at++) {
    const given = { external_id: `person-${at}` }
    const { data } = await ask<{ id: string }>(to, "POST", "/v1/subscribers", given)
    const asked = { subscriber_id: data.id }
    const { token } = (await ask<{ token: string }>(to, "POST", `${PATH}/token`, asked)).data
    people.push({ id: data.id, token })
  }
  await ask(to, "POST", "/v1/topics", { name: "News", key: TOPIC })
  const subscriber_ids = people.map(({ id }) => id)
  await ask(to, "POST", `/v1/topics/${TOPIC}/subscribers`, { subscriber_ids })
  const { api, addresses, key } = to
  const config = { api, addresses, key, people: subscriber_ids, ttl_seconds: 60 }
  await using js = startClients(["node", join(CLIENTS, "ws.mjs")], folder, config)
  await using py = startClients([DEBIAN_PYTHON, join(CLIENTS, "follow.py")], folder, config)
  const clients = [js, py]
  for (let at = 0; at < changes; ) {
    const together = Array.from({ length: 4 }, () => change(to, people, clients))
    await Promise.all(together)
    at += together.length
    if (at % 100 === 0) for (const each of clients) each.say("cut")
    const next = Math.floor((at * kills) / changes)
    if (kills > 0 && next > Math.floor(((at - together.length) * kills) / changes)) {
      await to.kill(next % to.api.length)
    }
  }
  to.calm()
  for (const person of people) {
    let difference = ""
    await until("each client knows what the server has", async () => {
      const { last, messages } = await truth(to, person.token)
      for (const each of clients) {
        const found = (await each.report()).find((client) => client.person === person.id)
        if (!found || found.errors.length > 0) throw new Error(JSON.stringify(found?.errors))
        difference = found.last === last ? differenceOf(found.messages, messages) : `${found.last}`
        if (difference !== "") return false
      }
      return true
    }).catch((error) => {
      throw new Error(`${error}: ${difference}`)
    })
  }
}

/** The first messages of which the one knows something else than the other. */
function differenceOf(some: Known[], others: Known[]): string {
  const [these, those] = [new Set(some.map(String)), new Set(others.map(String))]
  return [...these.symmetricDifference(those)].sort().slice(0, 6).join(" | ")
}

const without = missing("node") || missingModules("websockets")

describe.skipIf(without)("sockets of inboxes that break at every byte", () => {
  test(
    "on one server: each client comes to what the server has, without a gap, and hears nothing twice",
    async () => {
      const home = makeHome()
      await using to = await stage(1, null)
      await holds(to, home, sizes.inbox_changes, sizes.inbox_kills)
      rmSync(home, { recursive: true, force: true })
    },
    2 * TEST_MS.on_binary,
  )

  const has_postgres = !noPostgres()
  if (!has_postgres) note("inboxes of two nodes: start the tests by `bun run test`")

  test.skipIf(!has_postgres || !sizes.inbox_nodes)(
    "on two nodes that are killed in turn, the same",
    async () => {
      const home = makeHome()
      await using database = await freshDatabase()
      await using to = await stage(2, database.url)
      await holds(to, home, sizes.inbox_changes, 2 * sizes.inbox_kills)
      rmSync(home, { recursive: true, force: true })
    },
    2 * TEST_MS.on_binary,
  )
})
