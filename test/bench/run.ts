/**
 * `bun run bench [--quick] [name …]`: builds the binary, runs the benchmarks named (all without a
 * name) and writes `test/bench/results.md`. With `--quick` they are short, and nothing is written.
 * `bun run bench --against COMMIT` compares with another commit, and runs nothing else unless it is named.
 * Exit code 1 when one could not be measured; a missed target is said, but is not an error.
 */
import { mkdirSync } from "node:fs"
import { loadavg } from "node:os"
import { join } from "node:path"
import { binary } from "../harness/binary"
import { root } from "../harness/migrations"
import { accept } from "./accept"
import { acceptPostgres } from "./accept-postgres"
import { against } from "./against"
import { ai } from "./ai"
import { backlog } from "./backlog"
import { backup } from "./backup"
import { batch } from "./batch"
import type { Bench, Effort } from "./bench"
import { bodies } from "./bodies"
import { cold } from "./cold"
import { deliver } from "./deliver"
import { endUsers } from "./end-users"
import { fairness } from "./fairness"
import { fanOut } from "./fan-out"
import { growth } from "./growth"
import { inbound } from "./inbound"
import { inbox } from "./inbox"
import { jobs } from "./jobs"
import { limits } from "./limits"
import { monitor } from "./monitor"
import { pages } from "./pages"
import { push } from "./push"
import { reads } from "./reads"
import { render, write } from "./results"
import { retention } from "./retention"
import { slowSmtp } from "./slow-smtp"
import { submission } from "./submission"
import { subscribers } from "./subscribers"
import { suppressions } from "./suppressions"
import { templates } from "./templates"
import { texts } from "./texts"
import { tracking } from "./tracking"
import { twoNodes } from "./two-nodes"
import { webhooks } from "./webhooks"

const FULL: Effort = { rounds: 5, seconds: 5 }
const QUICK: Effort = { rounds: 2, seconds: 2 }

const mail = [
  accept,
  batch,
  deliver,
  backlog,
  cold,
  acceptPostgres,
  twoNodes,
  limits,
  bodies,
  fairness,
  texts,
]
const smtp = [submission, inbound, slowSmtp]
const after = [
  jobs,
  webhooks,
  monitor,
  pages,
  subscribers,
  suppressions,
  templates,
  tracking,
  growth,
  reads,
  retention,
  backup,
  fanOut,
  inbox,
  push,
  endUsers,
  ai,
]
const benches: Bench[] = [...mail, ...smtp, ...after]

const words = process.argv.slice(2)
const quick = words.includes("--quick")
const at = words.indexOf("--against")
const [, commit] = at < 0 ? [] : words.splice(at, 2)
if (at >= 0 && !commit) {
  console.error("--against needs a commit, such as `bun run bench --against 53d3776`")
  process.exit(2)
}
const wanted = words.filter((word) => !word.startsWith("--"))
if (commit) {
  const pairs = against(commit)
  benches.push(pairs)
  wanted.push(pairs.name)
}
const unknown = wanted.filter((word) => !benches.some(({ name }) => name === word))
if (unknown.length > 0) {
  const known = benches.map(({ name }) => name).join(", ")
  console.error(`no benchmark is called ${unknown.join(", ")}; there are ${known}`)
  process.exit(2)
}

mkdirSync(join(root, "dist"), { recursive: true })
if (!process.env.BELFRY_TEST_BINARY) build()

let broken = 0
for (const bench of benches) {
  if (wanted.length > 0 && !wanted.includes(bench.name)) continue
  const effort = quick ? QUICK : FULL
  const load_before = loadavg()[0] ?? 0
  try {
    const report = await bench.run(effort)
    const text = render(bench, report, { rounds: bench.rounds ?? effort.rounds, load_before })
    console.log(`\n${text}`)
    if (!quick) write(bench, text)
  } catch (error) {
    broken += 1
    console.error(
      `\n${bench.name} was not measured: ${error instanceof Error ? error.stack : error}`,
    )
  }
}
process.exit(broken === 0 ? 0 : 1)

function build() {
  const { exitCode } = Bun.spawnSync({
    cmd: [process.execPath, "run", "build"],
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
  })
  if (exitCode !== 0) throw new Error(`the build of ${binary} failed`)
}
