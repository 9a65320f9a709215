/**
 * `bun test/harness/upgrade-fixture.ts` writes what a database of today looks like, on both engines, into
 * `test/fixtures/upgrade/<last migration>.<engine>.sql`: the migrations so far, then rows of a server that
 * was used. `bun run generate` runs it when it adds a migration: test/store/upgrade.test.ts opens every one of
 * these files.
 */
import { Database } from "bun:sqlite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { loadSettings, useSettings } from "../../src/core/config"
import { embedded } from "../../src/store/migrations"
import { until } from "./hooks"
import { type Engine, journal } from "./migrations"
import { OWN_PORTS } from "./own-ports"
import { freshDatabase, stopOwnServer } from "./postgres"
import { fillTable, schemaTables } from "./table-rows"
import { FIXTURE_KEY, FIXTURES } from "./upgrade"

/** What belongs to one run of a server, and to none of its rows. */
const PASSING = new Set(["belfry_migrations"])

/** They name files in the data folder, which is not kept. */
const OF_THE_FOLDER = ["blob_marker", "database_mark", "instance_id"]

async function use(data_dir: string, database_url: string | null) {
  const flags = {
    data_dir,
    ...(database_url !== null && { database_url }),
    "security.master_key": FIXTURE_KEY,
    ...OWN_PORTS,
    "webhooks.require_https": false,
    "webhooks.allow_private": ["127.0.0.0/8"],
    "dns.servers": ["127.0.0.1:9"],
  }
  const loaded = loadSettings({ environment: {}, flags })
  useSettings(loaded)
  const { start } = await import("../../src/server")
  const running = await start({ loaded, mode: "up" })
  using receiver = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") })
  const call = caller(running.url)
  const owner = { email: "ann@example.org", password: "Quiet-River-42-stone" }
  const setup_token = running.setup?.token
  const { data } = await call("POST", "/v1/setup", { setup_token, ...owner, account_name: "Acme" })
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const key = bearer(data.api_key.key)
  const person = {
    ...bearer(data.session.access_token),
    "x-account-id": data.account.id,
    "x-project-id": data.project.id,
  }
  const hook = { url: `http://127.0.0.1:${receiver.port}/`, events: ["*"] }
  await call("POST", "/v1/webhooks", hook, key)
  await call("POST", "/v1/domains", { domain: "example.org" }, key)
  const guest = { email: "bob@example.org", role: "member" }
  await call("POST", "/v1/accounts/me/members/invite", guest, person)
  const mail = { from: "you@mailbox.test", subject: "Grüße 'quoted'", text: "Hello", tags: ["one"] }
  const file = { filename: "a.txt", content: Buffer.from("a file").toString("base64") }
  const sends = [
    { ...mail, to: "ann@mailbox.test", attachments: [file], metadata: { order: "1042" } },
    { ...mail, to: "bounce@mailbox.test" },
    { ...mail, to: "complain@mailbox.test" },
  ]
  for (const [at, body] of sends.entries()) {
    await call("POST", "/v1/emails", body, { ...key, "idempotency-key": `fixture-${at}` })
  }
  const statuses = async () => {
    const { data } = await call("GET", "/v1/emails", undefined, key)
    return data.map(({ status }: { status: string }) => status).join()
  }
  await until(async () => (await statuses()) === "complained,bounced,delivered")
  const configs = "/v1/providers/email_provider/config"
  const made = await call("POST", configs, { provider: "direct" }, person)
  await call("PATCH", `${configs}/${made.data.id}`, { enabled: false }, person)
  // One row in each table that the use left empty.
  for (const table of await schemaTables()) await fillTable(running.store, table)
  await running.stop()
}

const caller =
  (url: string) =>
  async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const reply = await fetch(`${url}${path}`, {
      method,
      headers: { "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await reply.text()
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${answer}`)
    return JSON.parse(answer)
  }

type Row = Record<string, unknown>

/** The migrations as they are today, their ledger, and every row. */
async function dump(engine: Engine, tables: string[], rowsOf: (table: string) => Promise<Row[]>) {
  const made = embedded[engine].flatMap(({ sql }) => sql.split("--> statement-breakpoint"))
  const ledger =
    "CREATE TABLE belfry_migrations (tag text PRIMARY KEY NOT NULL, applied_at bigint NOT NULL)"
  const applied = journal(engine).map(({ tag, when }) => ({ tag, applied_at: when }))
  const lines = [...made.map((one) => one.trim().replace(/;$/, "")), ledger]
  lines.push(...applied.map((row) => insertion(engine, "belfry_migrations", row)))
  const empty: string[] = []
  for (const table of inOrder(tables)) {
    const rows = PASSING.has(table) ? [] : await rowsOf(table)
    if (rows.length === 0 && !PASSING.has(table)) empty.push(table)
    const kept = rows.filter(({ name }) => !OF_THE_FOLDER.includes(String(name)))
    lines.push(...kept.map((row) => insertion(engine, table, row)))
  }
  console.log(`${engine}: ${lines.length} statements; without rows: ${empty.join(", ")}`)
  const name = `${embedded[engine].at(-1)?.tag}.${engine}.sql`
  await Bun.write(join(FIXTURES, name), lines.map((one) => `${one};\n`).join(BREAK))
}

const BREAK = "--> statement-breakpoint\n"

/** What others refer to comes first. */
const inOrder = (tables: string[]) => {
  const first = ["messages", "domains", "mailbox_mails", "inbound_emails"]
  return [...first, ...tables.filter((name) => !first.includes(name)).sort()]
}

function insertion(engine: Engine, table: string, row: Row): string {
  const names = Object.keys(row).map((name) => `"${name}"`)
  const values = Object.values(row).map((value) => literal(engine, value))
  return `INSERT INTO "${table}" (${names.join(", ")}) VALUES (${values.join(", ")})`
}

function literal(engine: Engine, value: unknown): string {
  if (value === null) return "NULL"
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString("hex")
    return engine === "sqlite" ? `X'${hex}'` : `'\\x${hex}'`
  }
  if (typeof value === "string") return `'${value.replaceAll("'", "''")}'`
  if (["number", "bigint", "boolean"].includes(typeof value)) return String(value)
  throw new TypeError(`there is no literal for ${typeof value}`)
}

const folder = mkdtempSync(join(tmpdir(), "belfry-fixture-"))
if (process.argv[2] === "postgres") {
  await using database = await freshDatabase()
  await use(folder, database.url)
  const sql = new SQL(database.url)
  const found = await sql`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`
  const names = found.map(({ name }: { name: string }) => name)
  await dump("postgres", names, async (table) => [
    ...(await sql.unsafe(`SELECT * FROM "${table}"`)),
  ])
  await sql.close()
} else {
  await use(folder, null)
  using file = new Database(join(folder, "belfry.db"))
  const tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
  const names = (file.query(tables).all() as { name: string }[]).map(({ name }) => name)
  await dump(
    "sqlite",
    names,
    async (table) => file.query(`SELECT * FROM "${table}"`).all() as Row[],
  )
  const other = Bun.spawnSync([process.execPath, import.meta.path, "postgres"])
  console.log(other.stdout.toString(), other.stderr.toString())
}
rmSync(folder, { recursive: true, force: true })
await stopOwnServer()
process.exit(0)
