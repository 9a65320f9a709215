import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { freePort } from "./ports"

const START_TIMEOUT_MS = 30_000
const STOP_TIMEOUT_MS = 15_000

/** A Postgres of our own: fresh, on the loopback, as durable as a real one (fsync stays on). */
export interface Postgres extends AsyncDisposable {
  url: string
  stop(): Promise<void>
}

/** An empty database inside the server that the test command started. */
export interface Database extends AsyncDisposable {
  url: string
}

/**
 * Makes a database that nobody else uses, from the url in BELFRY_TEST_POSTGRES. Disposing of it
 * drops it, with whoever is still connected. Throws where the variable is not set.
 */
export async function freshDatabase(): Promise<Database> {
  const server = process.env.BELFRY_TEST_POSTGRES
  if (!server) throw new Error("BELFRY_TEST_POSTGRES is not set: start the tests by `bun run test`")
  const name = `belfry_${crypto.randomUUID().replaceAll("-", "")}`
  await command(server, `CREATE DATABASE ${name}`)
  const url = new URL(server)
  url.pathname = `/${name}`
  return {
    url: url.href,
    [Symbol.asyncDispose]: () => command(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

async function command(url: string, text: string): Promise<void> {
  const sql = new SQL(url, { max: 1 })
  try {
    await sql.unsafe(text)
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

/** Starts a server on a free port, in a folder of its own that `stop` removes. */
export async function startPostgres(programs: string): Promise<Postgres> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-pg-"))
  const owner = unprivileged()
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid)
  try {
    initialise(programs, folder, owner)
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
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

type Owner = { uid?: number; gid?: number }

/** Postgres refuses to run as root. */
function unprivileged(): Owner {
  if (userInfo().uid !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    const uid = spawnSync("id", ["-u", name], { encoding: "utf8" })
    const gid = spawnSync("id", ["-g", name], { encoding: "utf8" })
    if (uid.status === 0 && gid.status === 0)
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  }
  throw new Error("no user `postgres` or `nobody` to run Postgres as")
}

function initialise(programs: string, folder: string, owner: Owner) {
  const flags = ["--username=belfry", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
  const made = spawnSync(join(programs, "initdb"), ["-D", join(folder, "data"), ...flags], {
    ...owner,
    cwd: folder,
    encoding: "utf8",
  })
  if (made.status !== 0) throw new Error(`initdb failed:\n${made.stdout}${made.stderr}`)
}

function launch(programs: string, folder: string, port: number, owner: Owner): ChildProcess {
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: folder,
    fsync: "on",
    max_connections: 200,
    shared_buffers: "32MB",
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
  const deadline = performance.now() + START_TIMEOUT_MS
  for (;;) {
    if (server.exitCode !== null) throw new Error(`Postgres ended at once (${server.exitCode})`)
    const failure = await command(url, "SELECT 1").catch((error: unknown) => error)
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
