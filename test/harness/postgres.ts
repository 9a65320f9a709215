import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { missing } from "./peers"
import { freePort } from "./ports"
import { NEVER_MS } from "./waits"

const STOP_TIMEOUT_MS = 15_000
const MEMORY_ROOM_BYTES = 2 * 2 ** 30
const LOOK_MS = 3
const LOOKS = 100

/** A Postgres of our own: fresh, on the loopback, with fsync on as in a real one. */
export interface Postgres extends AsyncDisposable {
  url: string
  stop(): Promise<void>
}

/** A database of our own inside the server that the test command started. */
export interface Database extends AsyncDisposable {
  url: string
}

/**
 * Makes a database that nobody else uses, on the server of the test command or else on one that
 * starts here: empty, or a copy of the one called `like`. Disposing of it drops it, with every
 * connection to it. Throws where Postgres is not installed.
 */
export async function freshDatabase(like = "template1"): Promise<Database> {
  const name = `belfry_${crypto.randomUUID().replaceAll("-", "")}`
  const server = await serverUrl()
  await within(server, async (sql) =>
    sql.unsafe(`CREATE DATABASE ${name} TEMPLATE ${like} ${await strategyOf(sql)}`),
  )
  return {
    url: named(server, name),
    [Symbol.asyncDispose]: () => within(server, (sql) => drop(sql, name)),
  }
}

let strategy: string | undefined

/** Files are copied in half the time that their pages take through the log. Before 15 there was no choice. */
async function strategyOf(sql: SQL): Promise<string> {
  const [row] = strategy === undefined ? await sql`SHOW server_version_num` : []
  if (row) strategy = Number(row.server_version_num) >= 150_000 ? "STRATEGY file_copy" : ""
  return strategy ?? ""
}

/** Makes the database `name` unless the server has it, by `fill`. Others wait until it is whole. */
export async function sharedTemplate(
  name: string,
  fill: (url: string) => Promise<void>,
): Promise<string> {
  const server = await serverUrl()
  await within(server, async (sql) => {
    await sql`SELECT pg_advisory_lock(hashtext(${name}))` // until the connection ends
    const found = await sql`SELECT 1 FROM pg_database WHERE datname = ${name}`
    if (found.length > 0) return
    const unfinished = `${name}_unfinished`
    await sql.unsafe(`DROP DATABASE IF EXISTS ${unfinished} WITH (FORCE)`)
    await sql.unsafe(`CREATE DATABASE ${unfinished}`)
    await fill(named(server, unfinished))
    await gone(sql, unfinished)
    await sql.unsafe(`ALTER DATABASE ${unfinished} RENAME TO ${name}`)
  })
  return name
}

/** The server of a test that was started without the test command. */
let own: Promise<Postgres> | undefined

/** The url of the server that the test command started, or else of one that starts now. */
export async function serverUrl(): Promise<string> {
  const given = process.env.BELFRY_TEST_POSTGRES
  if (given) return given
  const programs = postgresFolder()
  if (!programs) throw new Error("Postgres is not installed: apt-get install postgresql")
  own ??= startPostgres(programs, memoryFolder())
  return (await own).url
}

/** Stops the server that `serverUrl` started, if there is one. */
export async function stopOwnServer(): Promise<void> {
  const server = await own?.catch(() => undefined)
  own = undefined
  await server?.stop()
}

/** For `test.skipIf(noPostgres())`: true, and said, where Postgres is not installed. */
export function noPostgres(): boolean {
  if (process.env.BELFRY_TEST_POSTGRES || postgresFolder()) return false
  return missing("initdb")
}

function named(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

async function drop(sql: SQL, name: string) {
  await gone(sql, name)
  await sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
}

/** Postgres itself looks every 100 ms whether the last session has ended, which is long for a test. */
async function gone(sql: SQL, name: string) {
  for (let look = 0; look < LOOKS; look++) {
    const open = await sql`SELECT 1 FROM pg_stat_activity WHERE datname = ${name}`
    if (open.length === 0) return
    await Bun.sleep(LOOK_MS)
  }
}

async function within(url: string, act: (sql: SQL) => Promise<unknown>): Promise<void> {
  const sql = new SQL(url, { max: 1 })
  try {
    await act(sql)
  } finally {
    await sql.close()
  }
}

/** The folder of Postgres' programs, newest version first, or undefined where there is none. */
export function postgresFolder(): string | undefined {
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian) : []
  const onPath = Bun.which("initdb")
  const folders = [
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => `${debian}/${version}/bin`),
    ...(onPath ? [join(onPath, "..")] : []),
    "/opt/homebrew/opt/postgresql/bin",
    "/usr/local/opt/postgresql/bin",
  ]
  return folders.find((folder) => existsSync(join(folder, "initdb")))
}

/** In memory where Linux has room for it there: making a database is making 400 files. */
export function memoryFolder(): string | undefined {
  const folder = "/dev/shm"
  if (!existsSync(folder)) return undefined
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize > MEMORY_ROOM_BYTES ? folder : undefined
}

/** Starts a server on a free port, in a folder of its own below `place`, which `stop` removes. */
export async function startPostgres(programs: string, place = tmpdir()): Promise<Postgres> {
  const [server] = await startServers(programs, 1, place)
  if (!server) throw new Error("no server was asked for")
  return server
}

/** As `startPostgres`, so many of them. Starts all or none: throws what kept one of them. */
export async function startServers(
  programs: string,
  count: number,
  place = tmpdir(),
): Promise<Postgres[]> {
  const owner = unprivileged()
  const folders = Array.from({ length: count }, () => ownFolder(place, owner))
  try {
    initialise(programs, folders, owner)
  } catch (error) {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    throw error
  }
  const started = await Promise.allSettled(folders.map((each) => start(programs, each, owner)))
  const servers = started.flatMap((one) => (one.status === "fulfilled" ? one.value : []))
  const failed = started.find((one) => one.status === "rejected")
  if (!failed) return servers
  await Promise.all(servers.map((server) => server.stop()))
  throw failed.reason
}

function ownFolder(place: string, owner: Owner): string {
  const folder = mkdtempSync(join(place, "belfry-pg-"))
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid)
  return folder
}

async function start(programs: string, folder: string, owner: Owner): Promise<Postgres> {
  const port = await freePort()
  const server = launch(programs, folder, port, owner)
  const url = `postgres://belfry@127.0.0.1:${port}/postgres`
  const stop = async () => {
    await halt(server)
    rmSync(folder, { recursive: true, force: true })
  }
  await ready(url, server).catch(async (error) => {
    await stop()
    throw error
  })
  return { url, stop, [Symbol.asyncDispose]: stop }
}

type Owner = { uid?: number; gid?: number }

/** Postgres refuses to run as root. */
export function unprivileged(): Owner {
  if (userInfo().uid !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    const uid = spawnSync("id", ["-u", name], { encoding: "utf8" })
    const gid = spawnSync("id", ["-g", name], { encoding: "utf8" })
    if (uid.status === 0 && gid.status === 0)
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  throw new Error("no user `postgres` or `nobody` to run Postgres as")
}

/** The first one is made, the others are copies of it, which takes a tenth of the time. */
function initialise(programs: string, [first = "", ...others]: string[], owner: Owner) {
  const data = join(first, "data")
  const flags = ["--username=belfry", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
  const run = (program: string, words: string[]) => {
    const ran = spawnSync(program, words, { ...owner, cwd: first, encoding: "utf8" })
    if (ran.status !== 0) throw new Error(`${program} failed:\n${ran.stdout}${ran.stderr}`)
  }
  run(join(programs, "initdb"), ["-D", data, ...flags])
  for (const other of others) run("cp", ["-a", data, join(other, "data")])
}

function launch(programs: string, folder: string, port: number, owner: Owner): ChildProcess {
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: folder,
    fsync: "on",
    max_connections: 200,
    shared_buffers: "32MB",
    max_wal_size: "256MB",
    logging_collector: "off",
    log_min_messages: "panic",
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  const command = [join(programs, "postgres"), "-D", join(folder, "data"), ...flags]
  // Where Linux offers it, the server also goes when the runner is killed without a chance to stop it.
  const guarded = Bun.which("setpriv") ? ["setpriv", "--pdeathsig", "INT", ...command] : command
  const [program = "", ...rest] = guarded
  return spawn(program, rest, {
    ...owner,
    cwd: folder,
    detached: true, // a Ctrl-C in the terminal is the runner's to handle
    stdio: ["ignore", "ignore", "inherit"],
  })
}

async function ready(url: string, server: ChildProcess): Promise<void> {
  const deadline = performance.now() + NEVER_MS
  for (;;) {
    if (server.exitCode !== null) throw new Error(`Postgres ended at once (${server.exitCode})`)
    const failure = await within(url, (sql) => sql`SELECT 1`).catch((error: unknown) => error)
    if (failure === undefined) return
    if (performance.now() > deadline) throw new Error(`Postgres does not answer: ${failure}`)
    await Bun.sleep(100)
  }
}

/** SIGINT is Postgres' fast shutdown: connections are closed, data is written. */
async function halt(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = new Promise((resolve) => server.once("exit", resolve))
  server.kill("SIGINT")
  const late = setTimeout(() => server.kill("SIGQUIT"), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(late)
}
