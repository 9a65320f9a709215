/**
 * `bun run test [--full] [part of a path …]`: every test on SQLite, beside it what touches a
 * database again on a Postgres started for it, then the stories on the compiled binary. A file that
 * failed runs once more, alone, at the end. The last line is always `N passed, N failed`.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Subprocess } from "bun"
import { bunTest, type Ended } from "./bun-test"
import { type Group, stages } from "./groups"
import type { Failure, Taken } from "./junit"
import { root } from "./migrations"
import { type Failed, onceMore } from "./once-more"
import { missing } from "./peers"
import { memoryFolder, type Postgres, postgresFolder, startServers } from "./postgres"

const MESSAGE_LINES = 12
const LINE_CHARACTERS = 300
const SLOWEST = 20

const words = process.argv.slice(2)
const unknown = words.filter((word) => word.startsWith("-") && word !== "--full")
if (unknown.length > 0) {
  console.error(
    `unknown option ${unknown.join(" ")}. Usage: bun run test [--full] [PART OF A PATH ...]`,
  )
  process.exit(2)
}
const full = words.includes("--full")
const wanted = words.filter((word) => word !== "--full")

/** Reports, and the TMPDIR of tests that end programs or fill disks. */
const scratch = scratchIn(tmpdir())
/** The TMPDIR of all others: in memory, where there is room, nothing waits for a disk. */
const quick_scratch = scratchIn(memoryFolder() ?? tmpdir())
const notes = join(scratch, "notes")
process.env.BELFRY_TEST_NOTES = notes // for `missing`, here and in the tests
/** Those of tests, which may be flaky, and all that failed for good. */
const failed: Failed<Group>[] = []
const failures: Failure[] = []
const flaky: Failure[] = []
const tests: Taken[] = []
const files: Taken[] = []
/** How long each group took: a line each at the end. */
const times: string[] = []
let passed = 0
let skipped = 0
const servers: Postgres[] = []
const running = new Set<Subprocess>()
let interrupted = false

process.once("exit", () => {
  for (const folder of [scratch, quick_scratch]) rmSync(folder, { recursive: true, force: true })
})
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => interrupt(signal))
}

try {
  await runAll()
  if (!interrupted) await runOnceMore()
} finally {
  await Promise.all(servers.map((server) => server.stop()))
}
failures.push(...failed.map((one) => ({ ...one, name: `${one.name} (${one.group.name})` })))
summary()
process.exit(interrupted ? 130 : failures.length === 0 && passed > 0 ? 0 : 1)

/** What an interrupted test leaves behind goes with it. */
function scratchIn(place: string): string {
  const folder = mkdtempSync(join(place, "belfry-tests-"))
  chmodSync(folder, 0o755) // peers run as `nobody`
  return folder
}

async function runAll() {
  const chosen = stages(root, wanted, full)
  await bringUpPostgres(Math.max(...chosen.map(serversFor)))
  for (const stage of chosen) {
    const able: Group[] = []
    for (const group of stage) if (await isAble(group)) able.push(group)
    if (interrupted) return
    await runStage(able)
  }
}

async function isAble(group: Group): Promise<boolean> {
  if (group.engine === "postgres" && servers.length === 0) return false
  return !group.needsBinary || (await buildBinary(group))
}

/** What the groups of a stage need, which run side by side; none where no test asks for Postgres. */
function serversFor(stage: Group[]): number {
  const isAsked = stage.some(({ engine, needsBinary }) => engine === "postgres" || needsBinary)
  return isAsked ? stage.reduce((sum, group) => sum + ownServers(group), 0) : 0
}

/** One for each process on Postgres. The others have a few tests that use one, and share it. */
function ownServers({ engine, processes }: Group): number {
  return engine === "postgres" ? processes : 1
}

async function bringUpPostgres(count: number) {
  if (count < 1) return
  const programs = postgresFolder()
  if (!programs) return void missing("initdb")
  try {
    servers.push(...(await startServers(programs, count, memoryFolder())))
  } catch (error) {
    fail("Postgres starts", "test/harness/postgres.ts", String(error))
  }
}

/** A binary named by the environment is taken as it is. */
async function buildBinary(group: Group): Promise<boolean> {
  if (process.env.BELFRY_TEST_BINARY) return true
  const child = Bun.spawn({
    cmd: ["sh", "install.sh", "build"],
    cwd: root,
    env: childEnvironment(),
    stdio: ["ignore", "inherit", "inherit"],
  })
  keep(child)
  const code = await child.exited
  if (code !== 0) fail(`the binary builds, for ${group.name}`, "install.sh", `exit code ${code}`)
  return code === 0
}

/** The first group of a stage speaks as it goes; the others after it, each in one piece. */
async function runStage(groups: Group[]) {
  const free = [...servers]
  const ends = groups.map((group, place) => {
    return run(group, free.splice(0, ownServers(group)), place === 0)
  })
  for (const [place, end] of ends.entries()) {
    const group = groups[place]
    if (!group) continue
    const ended = await end
    if (place > 0) process.stdout.write(`${heading(group)}\n${ended.kept}`)
    if (!interrupted) add(ended, group)
  }
}

function heading({ name, files }: Group): string {
  return `\n== ${name}: ${files.length} files ==`
}

function run(group: Group, own: Postgres[], aloud: boolean): Promise<Ended> {
  if (aloud) console.log(heading(group))
  const TMPDIR = group.onDisk ? scratch : quick_scratch
  const env = { ...childEnvironment(), TMPDIR, ...postgresFor(group, own) }
  return bunTest(group, { env, scratch, aloud, onStart: keep })
}

/** Until it has ended, an interrupt reaches it. */
function keep(child: Subprocess) {
  running.add(child)
  void child.exited.then(() => running.delete(child))
}

function add({ totals, code, signal, errors, wall_ms, cpu_ms }: Ended, group: Group) {
  const paths = group.files.join(" ")
  const [wall, cpu] = [wall_ms, cpu_ms].map((ms) => `${Math.round(ms / 1000)} s`)
  times.push(`${group.name}: ${wall}, of the processor ${cpu}`)
  if (!totals) {
    const ending =
      signal === "SIGKILL" ? "killed, perhaps over its time limit" : `exit code ${signal ?? code}`
    return fail(group.name, paths, `ended without a report (${ending})`)
  }
  passed += totals.passed
  skipped += totals.skipped
  failed.push(...totals.failures.map((one) => ({ ...one, group })))
  tests.push(...totals.tests.map((one) => ({ ...one, name: `${one.name} (${group.name})` })))
  files.push(...totals.files.map((one) => ({ ...one, name: `(${group.name})` })))
  if (errors > 0 || (code !== 0 && totals.failures.length === 0))
    fail(group.name, paths, `exit code ${code}: an error outside of the tests`)
}

/** What passes then was flaky, and counts as passed. */
async function runOnceMore() {
  const free = [...servers]
  for (const { file, group } of onceMore(failed)) {
    if (interrupted) return
    const alone = {
      ...group,
      name: `${file} once more`,
      files: [file],
      processes: 1,
      isAlone: true,
    }
    const { totals, code } = await run(alone, free.slice(0, 1), true)
    if (code !== 0 || totals?.failures.length !== 0) continue
    const own = failed.filter((one) => one.file === file && one.group === group)
    for (const one of own) failed.splice(failed.indexOf(one), 1)
    flaky.push(...own)
    passed += own.length
  }
}

/** A developer's own settings, keys and proxies stay out of the tests: all peers are local. */
function childEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(DATABASE_(DIRECT_)?URL|(HTTPS?|ALL|NO)_PROXY|BELFRY_(?!TEST_).*)$/i.test(name),
  )
  return {
    ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""])),
    ...(full ? { BELFRY_TEST_FULL: "1" } : {}),
  }
}

/** Each process chooses its own of the servers, and its engine: see `own-server.ts`. */
function postgresFor({ engine }: Group, own: Postgres[]): Record<string, string> {
  if (own.length === 0) return {}
  return {
    BELFRY_TEST_POSTGRES: own.map(({ url }) => url).join(" "),
    BELFRY_TEST_ENGINE: engine,
  }
}

function fail(name: string, file: string, message: string) {
  failures.push({ name, file, message })
}

/** The run comes to its ordinary end, with what was counted so far. */
function interrupt(signal: NodeJS.Signals) {
  console.error(`\n${signal}: stopping`)
  interrupted = true
  for (const child of running) child.kill("SIGTERM")
}

function summary() {
  sayThe("tests", tests)
  sayThe("files", files)
  const lines = existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []
  if (failures.length > 0) console.log(`\n== ${failures.length} failed ==`)
  for (const { file, name, message } of failures) {
    console.log(`\n${name}\n  ${file}`)
    const lines = message.split("\n").slice(0, MESSAGE_LINES)
    for (const line of lines) console.log(`    ${line.slice(0, LINE_CHARACTERS)}`)
  }
  console.log()
  for (const line of times) console.log(line)
  for (const line of new Set(lines)) console.log(`not run: ${line}`)
  for (const { file, name } of flaky) console.log(`flaky: ${file}: ${name}`)
  if (skipped > 0) console.log(`skipped: ${skipped}`)
  if (passed + failures.length === 0) console.log(`no test matches ${wanted.join(" ")}`)
  console.log(`${passed} passed, ${failures.length} failed`)
}

/** Where the time goes. */
function sayThe(what: string, taken: Taken[]) {
  const slowest = taken.toSorted((one, other) => other.seconds - one.seconds).slice(0, SLOWEST)
  console.log(`\n== the slowest ${what} ==`)
  for (const { file, name, seconds } of slowest) {
    console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}: ${name}`)
  }
}
