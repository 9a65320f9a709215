/**
 * `bun run test [--full] [part of a path …]`: every test on SQLite, what touches a database again
 * on a Postgres started for it, then the stories on the compiled binary. The last line is always
 * `N passed, N failed`.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Subprocess } from "bun"
import { type Group, groups } from "./groups"
import { type Failure, readJunit, type Totals } from "./junit"
import { root } from "./migrations"
import { missing } from "./peers"
import { type Postgres, postgresFolder, startPostgres } from "./postgres"

const MESSAGE_LINES = 12

const full = process.argv.includes("--full")
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("--"))

/** The tests' TMPDIR too: what an interrupted one leaves behind goes with it. */
const scratch = mkdtempSync(join(tmpdir(), "belfry-tests-"))
chmodSync(scratch, 0o755) // peers run as `nobody`
const notes = join(scratch, "notes")
process.env.BELFRY_TEST_NOTES = notes // for `missing`, here and in the tests
const failures: Failure[] = []
let passed = 0
let skipped = 0
let postgres: Postgres | undefined
let running: Subprocess | undefined
let interrupted = false

process.once("exit", () => rmSync(scratch, { recursive: true, force: true }))
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => interrupt(signal))
}

try {
  await runAll()
} finally {
  await postgres?.stop()
}
summary()
process.exit(interrupted ? 130 : failures.length === 0 && passed > 0 ? 0 : 1)

async function runAll() {
  const chosen = groups(root, wanted, full)
  const wantsPostgres = chosen.some(
    ({ engine, needsBinary }) => engine === "postgres" || needsBinary,
  )
  if (wantsPostgres) await bringUpPostgres()
  for (const group of chosen) {
    if (interrupted) return
    if (group.engine === "postgres" && !postgres) continue
    if (group.needsBinary && !(await buildBinary(group))) continue
    await run(group)
  }
}

async function bringUpPostgres() {
  const programs = postgresFolder()
  if (!programs) return void missing("initdb")
  try {
    postgres = await startPostgres(programs)
  } catch (error) {
    fail("Postgres starts", "test/harness/postgres.ts", String(error))
  }
}

/** A binary named by the environment is taken as it is. */
async function buildBinary(group: Group): Promise<boolean> {
  if (process.env.BELFRY_TEST_BINARY) return true
  running = Bun.spawn({
    cmd: ["sh", "install.sh", "build"],
    cwd: root,
    env: childEnvironment(),
    stdio: ["ignore", "inherit", "inherit"],
  })
  const code = await running.exited
  if (code !== 0) fail(`the binary builds, for ${group.name}`, "install.sh", `exit code ${code}`)
  return code === 0
}

async function run(group: Group) {
  console.log(`\n== ${group.name}: ${group.files.length} files ==`)
  const report = join(scratch, "report.xml")
  rmSync(report, { force: true })
  const child = Bun.spawn({
    cmd: [
      process.execPath,
      "test",
      "--isolate", // a file must not see another's clock, settings or engine
      "--no-orphans", // and leaves nothing running behind
      `--timeout=${group.testTimeoutMs}`,
      "--reporter=junit",
      `--reporter-outfile=${report}`,
      ...group.files.map((path) => `./${path}`),
    ],
    cwd: root,
    env: { ...childEnvironment(), ...(postgres ? postgresFor(group, postgres) : {}) },
    stdio: ["ignore", "inherit", "inherit"],
  })
  running = child
  const late = setTimeout(() => child.kill("SIGKILL"), group.groupTimeoutMs)
  const code = await child.exited
  clearTimeout(late)
  running = undefined
  if (interrupted) return
  if (existsSync(report)) add(readJunit(readFileSync(report, "utf8")), code, group)
  else fail(group.name, group.files.join(" "), `ended without a report (${ending(child)})`)
}

function ending({ exitCode, signalCode }: Subprocess): string {
  return signalCode === "SIGKILL"
    ? "killed, perhaps over its time limit"
    : `exit code ${exitCode ?? signalCode}`
}

function add(totals: Totals, code: number, group: Group) {
  passed += totals.passed
  skipped += totals.skipped
  failures.push(...totals.failures.map((one) => ({ ...one, name: `${one.name} (${group.name})` })))
  if (code !== 0 && totals.failures.length === 0)
    fail(group.name, group.files.join(" "), `exit code ${code}: an error outside of the tests`)
}

/** A developer's own settings, keys and proxies stay out of the tests: all peers are local. */
function childEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(DATABASE_URL|(HTTPS?|ALL|NO)_PROXY|BELFRY_(?!TEST_).*)$/i.test(name),
  )
  return {
    ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""])),
    TMPDIR: scratch,
    ...(full ? { BELFRY_TEST_FULL: "1" } : {}),
  }
}

/** Only the Postgres group has DATABASE_URL: a process knows one engine, from its first import. */
function postgresFor({ engine }: Group, { url }: Postgres): Record<string, string> {
  return { BELFRY_TEST_POSTGRES: url, ...(engine === "postgres" ? { DATABASE_URL: url } : {}) }
}

function fail(name: string, file: string, message: string) {
  failures.push({ name, file, message })
}

/** The run comes to its ordinary end, with what was counted so far. */
function interrupt(signal: NodeJS.Signals) {
  console.error(`\n${signal}: stopping`)
  interrupted = true
  running?.kill("SIGTERM")
}

function summary() {
  const lines = existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []
  if (failures.length > 0) console.log(`\n== ${failures.length} failed ==`)
  for (const { file, name, message } of failures) {
    console.log(`\n${name}\n  ${file}`)
    for (const line of message.split("\n").slice(0, MESSAGE_LINES)) console.log(`    ${line}`)
  }
  console.log()
  for (const line of new Set(lines)) console.log(`not run: ${line}`)
  if (skipped > 0) console.log(`skipped: ${skipped}`)
  if (passed + failures.length === 0) console.log(`no test matches ${wanted.join(" ")}`)
  console.log(`${passed} passed, ${failures.length} failed`)
}
