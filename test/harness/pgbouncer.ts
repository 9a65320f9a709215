import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { SQL } from "bun"
import { locate } from "./peers"
import { freePort } from "./ports"
import { unprivileged } from "./postgres"
import { NEVER_MS } from "./waits"

/** PgBouncer in transaction mode before a Postgres: a session lasts for one transaction. */
export interface PgBouncer extends AsyncDisposable {
  /** The url of a database as it is reached through here. */
  through(database_url: string): string
  /** What it logged. */
  log(): string
}

/** Few server connections, so that clients must share them and anything kept in a session is lost. */
const SERVER_CONNECTIONS = 4

/** Starts Debian's pgbouncer on a free port, for all databases of the server of `url`. */
export async function startPgBouncer(url: string): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-bouncer-"))
  chmodSync(folder, 0o755)
  const owner = unprivileged()
  const port = await freePort()
  const file = join(folder, "pgbouncer.ini")
  writeFileSync(file, settingsFor(new URL(url), port, folder))
  writeFileSync(join(folder, "users"), '"belfry" ""\n')
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid)
  const server = spawn(locate("pgbouncer") ?? "pgbouncer", [file], { ...owner, cwd: folder })
  const lines: string[] = []
  for (const stream of [server.stdout, server.stderr]) {
    stream?.on("data", (part) => lines.push(String(part)))
  }
  const through = (database_url: string) => {
    const changed = new URL(database_url)
    changed.port = String(port)
    return changed.href
  }
  const stop = async () => {
    await halt(server)
    rmSync(folder, { recursive: true, force: true })
  }
  await ready(through(url), server).catch(async (error) => {
    await stop()
    throw new Error(`${error}:\n${lines.slice(-5).join("")}`)
  })
  return { through, log: () => lines.join(""), [Symbol.asyncDispose]: stop }
}

const settingsFor = (server: URL, port: number, folder: string) => `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, "users")}
pool_mode = transaction
default_pool_size = ${SERVER_CONNECTIONS}
max_client_conn = 200
`

async function ready(url: string, server: ChildProcess): Promise<void> {
  const deadline = performance.now() + NEVER_MS
  for (;;) {
    if (server.exitCode !== null) throw new Error(`pgbouncer ended at once (${server.exitCode})`)
    const sql = new SQL(url, { max: 1, prepare: false })
    const failure = await sql`SELECT 1`.then(
      () => undefined,
      (error: unknown) => error,
    )
    await sql.close()
    if (failure === undefined) return
    if (performance.now() > deadline) throw failure
    await Bun.sleep(50)
  }
}

async function halt(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = new Promise((resolve) => server.once("exit", resolve))
  server.kill("SIGTERM") // at once: SIGINT would wait for its clients
  await ended
}
