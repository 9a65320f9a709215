/**
 * A step of `bun run build`: starts a server in both ways, and writes into `dist/bytecode-order` which compiled
 * code each start needs. The build puts that code side by side, so an idle server holds little else of it.
 */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import manifest from "../../package.json" with { type: "json" }
import { millis } from "../../src/core/time"
import { type Belfry, folders, makeHome, startBelfry } from "./binary"
import { readLines } from "./lines"
import { root } from "./migrations"

const DIST = join(root, "dist")
const ORDERS = join(DIST, "bytecode-order")
const WORK = "order-"

/** Longer than any build takes. */
const STALE_MS = 3_600_000

/** A build may have to share its machine with much else. */
const READY_MS = 120_000

/** The runtime writes the record there when the process ends. */
const recordInto = (path: string) => ({ BUN_BYTECODE_ORDER_OUT: path })

/** Builds without an order, and records one. Throws where a server does not start. */
export async function writeBytecodeOrder(): Promise<void> {
  removeStale()
  const work = mkdtempSync(join(DIST, WORK))
  const home = makeHome()
  try {
    const program = join(work, "belfry")
    compile(program)
    await recordUp(program, home, join(work, "up"))
    await recordServe(program, home, join(work, "serve"))
    mkdirSync(ORDERS, { recursive: true })
    for (const name of ["serve", "up"]) renameSync(join(work, name), join(ORDERS, name))
  } finally {
    rmSync(work, { recursive: true, force: true })
    rmSync(home, { recursive: true, force: true })
  }
}

/** A build that was killed leaves a program of 130 MB. */
function removeStale() {
  for (const name of readdirSync(DIST)) {
    const path = join(DIST, name)
    const made = name.startsWith(WORK) ? statSync(path, { throwIfNoEntry: false }) : undefined
    if (made && millis() - made.mtimeMs > STALE_MS) rmSync(path, { recursive: true, force: true })
  }
}

/** With the flags of the build that follows. */
function compile(program: string) {
  const [last = ""] = manifest.scripts.build.split(" && ").slice(-1)
  const command = last
    .replace(/ --bytecode-order=\S+/, "")
    .replace(/--outfile \S+$/, `--outfile '${program}'`)
  const built = Bun.spawnSync(["sh", "-c", command], { cwd: root, stderr: "pipe" })
  if (!built.success) throw new Error(built.stderr.toString())
}

/** A first start, and one mail until it is delivered. */
async function recordUp(program: string, home: string, record: string) {
  const server = await startBelfry({
    ...{ program, home, env: recordInto(record) },
    ready_timeout_ms: READY_MS,
  })
  try {
    await sendOne(server)
  } finally {
    await server.stop()
  }
}

async function sendOne(server: Belfry) {
  const mail = { from: "build@mailbox.test", to: "build@mailbox.test", subject: "Hi", text: "Hi" }
  const answer = await server.request("/v1/emails", { method: "POST", body: JSON.stringify(mail) })
  if (answer.status !== 201) throw new Error(`the mail was refused: ${await answer.text()}`)
  const { data } = (await answer.json()) as { data: { id: string } }
  await server.next((line) => line.id === data.id && line.status === "delivered", READY_MS)
}

/** A later start, in the folder that `up` made. */
async function recordServe(program: string, home: string, record: string) {
  const place = ["--data-dir", join(home, "belfry"), "--listen", "127.0.0.1:0"]
  const child = Bun.spawn({
    cmd: [program, "serve", "--json", ...place, ...PORTS],
    env: { ...folders(home), ...recordInto(record) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const trouble = readLines(child.stderr)
  try {
    const ready = readLines(child.stdout).first((line) => line.startsWith("{"), READY_MS)
    const { url } = JSON.parse(await ready) as { url: string }
    await fetch(`${url}/healthz`)
  } catch (error) {
    throw new Error(`belfry serve did not get ready (${error}):\n${trouble.all.join("\n")}`)
  } finally {
    child.kill("SIGTERM")
    await child.exited
  }
}

/** Free ones, because another server may have the usual ones. */
const PORTS = ["mailbox", "smtp.submission", "smtp.inbound"].flatMap((server) => [
  "--set",
  `${server}.listen=127.0.0.1:0`,
])

if (import.meta.main) await writeBytecodeOrder()
