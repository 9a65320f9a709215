import { Database } from "bun:sqlite"
import { afterEach, beforeAll, expect, test } from "bun:test"
import { mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { embedded } from "../../src/store/migrations"
import { NEXT_VERSION, type NextRelease, nextRelease } from "../harness/next-release"
import { sizes } from "../harness/sizes"
import {
  besidesGoneFiles,
  FIXTURE_KEY,
  fixturesOf,
  keptRows,
  statementsOf,
} from "../harness/upgrade"
import { ended, type UpgradeBox, upgradeBox } from "./upgrade-box"

let release: NextRelease
beforeAll(async () => {
  if (sizes.upgraded_schemas > 0) release = await nextRelease()
})

const open: UpgradeBox[] = []
afterEach(async () => {
  for (const box of open.splice(0)) await box[Symbol.asyncDispose]()
})

/** A box that does not serve, whose data are those of an earlier version. */
async function boxOf(path: string, fault = "") {
  const env = { BELFRY_SECURITY_MASTER_KEY: FIXTURE_KEY }
  const box = await upgradeBox({ release, fault, env })
  open.push(box)
  await box.stop()
  rmSync(box.data_dir, { recursive: true })
  mkdirSync(box.data_dir, { mode: 0o700 })
  using file = new Database(join(box.data_dir, "belfry.db"), { create: true })
  for (const statement of await statementsOf(path)) file.run(statement)
  return box
}

/** Rows of every table, without the list of migrations. */
function rowsOf({ data_dir }: UpgradeBox): Record<string, number> {
  using file = new Database(join(data_dir, "belfry.db"), { readonly: true })
  const tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
  const names = (file.query(tables).all() as { name: string }[]).map(({ name }) => name)
  const rows = names.map((name) => {
    const [row] = file.query(`SELECT count(*) AS n FROM "${name}"`).all() as { n: number }[]
    return [name, row?.n ?? 0]
  })
  const { belfry_migrations, ...others } = Object.fromEntries(rows)
  return others
}

/** Statuses of the messages, as a server of the box answers them. */
async function statusesIn({ program, data_dir, env, folder }: UpgradeBox) {
  const words = ["up", "--json", "--port", "0", "--new-key", "--data-dir", data_dir]
  const around = { cwd: folder, env, stdin: "ignore", stderr: "ignore" } as const
  const child = Bun.spawn([program, ...words], { ...around, stdout: "pipe" })
  const decoder = new TextDecoder()
  let line = ""
  for await (const part of child.stdout) {
    line += decoder.decode(part, { stream: true })
    if (line.includes("\n")) break
  }
  const { url, api_key } = JSON.parse(line) as { url: string; api_key: string }
  const reply = await fetch(`${url}/v1/emails`, { headers: { "x-api-key": api_key } })
  const { data } = (await reply.json()) as { data: { status: string }[] }
  const { version } = (await (await fetch(`${url}/healthz`)).json()) as { version: string }
  return { version, statuses: data.map(({ status }) => status) }
}

test.each(fixturesOf("sqlite").slice(0, sizes.upgraded_schemas))(
  "one command upgrades a folder with the schema of $tag, and its mail is there",
  async ({ tag, path }) => {
    const box = await boxOf(path)
    const before = rowsOf(box)
    const done = await ended(box.upgrade())
    expect([done.code, besidesGoneFiles(done.stderr)]).toEqual([0, []])
    const tags = embedded.sqlite.map((one) => one.tag)
    const missing = [...tags.slice(tags.indexOf(tag) + 1), "9999_next"]
    expect(JSON.parse(done.stdout)).toMatchObject({ done: true, migrations: missing })
    const after = rowsOf(box)
    expect(after).toMatchObject(keptRows(before))
    expect(after.counters).toBeGreaterThanOrEqual(before.counters ?? 0)
    expect(await statusesIn(box)).toEqual({
      version: NEXT_VERSION,
      statuses: ["complained", "bounced", "delivered"],
    })
  },
)

test.skipIf(sizes.upgraded_schemas === 0)(
  "a folder with the oldest schema has every byte of it again where the last migration fails",
  async () => {
    const [{ path } = { path: "" }] = fixturesOf("sqlite")
    const box = await boxOf(path, "bad-migration")
    const bytes = () => readFileSync(join(box.data_dir, "belfry.db"))
    const before = bytes()
    const failed = await ended(box.upgrade())
    expect([failed.code, failed.stderr.includes("upgrade_undone")]).toEqual([1, true])
    expect(bytes().equals(before)).toBe(true)
  },
)
