import { request } from "node:http"
import { dirname } from "node:path"
import type { Loaded } from "../../src/core/config"
import { codes, type ErrorCode } from "../../src/core/errors"
import type { AdminOrder } from "../../src/operations/admin"
import type { Context } from "../lib/context"
import { exitOfStatus, exits, Failure, usage } from "../lib/errors"
import { socketsFor, whereServersRun } from "./find-server"
import { withStore } from "./init"
import { serverOf } from "./server-process"
import { dataSettings, type LocalOptions, localSettings } from "./settings"

interface OrderRefusal {
  code: string
  message: string
  details: Record<string, unknown>
}

/**
 * Lets the running server carry the order out. Without a server this command opens the data itself. It
 * never makes a database: when there is none, it says where servers run. `rehearses`: with --dry-run the
 * order changes nothing.
 */
export async function runOrder<Data>(
  context: Context,
  options: LocalOptions,
  what: AdminOrder,
  { rehearses = false }: { rehearses?: boolean } = {},
): Promise<Data> {
  if (context.flags.dryRun && !rehearses) throw usage("--dry-run is not possible with this command")
  const loaded = dataSettings(context.flags, options)
  const { data_dir, base_url, sign_up } = loaded.values
  const answer = await askServer<Data>(loaded, what)
  if (answer) return answer
  return withStore(loaded, { begin: "never" }, async (store, openSecrets) => {
    const { administer } = await import("../../src/operations/admin")
    const { openBackups } = await import("../../src/operations/backup/create-backup")
    const { sessionParts } = await import("../../src/tenancy/setup")
    const { PROVIDERS } = await import("../../src/channels")
    const { ownEmailProvider } = await import("../../src/providers/own-provider")
    const { ApiError } = await import("../../src/core/errors")
    const secrets = await openSecrets()
    const parts = { store, secrets, data_dir, sign_up, base_url: () => base_url ?? "" }
    try {
      const providers = { own: { email: ownEmailProvider(PROVIDERS, loaded.values) } }
      const backups = openBackups({ settings: loaded.values, secrets })
      const link_base = parts.base_url
      const own = { store, secrets, providers, backups, own_nodes: 0, link_base }
      const all = { ...own, ...sessionParts(parts) }
      return (await administer(all, what)) as Data
    } catch (error) {
      throw error instanceof ApiError ? failureOf(error as OrderRefusal) : error
    }
  })
}

/** The answer of the running server; undefined when no server runs on this data. */
export async function askServer<Data>(loaded: Loaded, what: AdminOrder): Promise<Data | undefined> {
  for await (const socket of meantSockets(loaded)) {
    const answer = await sendOrder(socket, what)
    if (answer) return answer as Data
  }
  return undefined
}

/** The settings of the server that `askServer` asks, with its own environment; the given ones where none runs. */
export async function settingsOfServer(
  loaded: Loaded,
  flags: Context["flags"],
  options: LocalOptions,
): Promise<Loaded> {
  for await (const socket of meantSockets(loaded)) {
    const dataDir = dirname(socket)
    const server = serverOf(dataDir)
    if (server) return localSettings(flags, { ...options, dataDir }, {}, server.environment)
  }
  return loaded
}

async function* meantSockets(loaded: Loaded): AsyncGenerator<string> {
  for (const socket of socketsFor(loaded)) {
    yield socket
    if (await hasDatabase(loaded)) break
  }
}

/** Before that no other server is asked: this data is meant. */
async function hasDatabase(loaded: Loaded): Promise<boolean> {
  const { hasBegun } = await import("../../src/store/open")
  return hasBegun(loaded.values)
}

/** Undefined where no server listens. */
export function sendOrder(socketPath: string, what: AdminOrder): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>()
  const headers = { "content-type": "application/json" }
  const call = request({ socketPath, method: "POST", path: "/", headers }, (response) => {
    let text = ""
    response.setEncoding("utf8")
    response.on("data", (part: string) => {
      text += part
    })
    response.on("end", () => {
      const { data, error } = JSON.parse(text) as { data?: unknown; error?: OrderRefusal }
      if (error) reject(failureOf(error))
      else resolve(data)
    })
  })
  call.on("error", (error: Error & { code?: string }) => {
    const none = ["ENOENT", "ECONNREFUSED", "ENOTSOCK", "FailedToOpenSocket"]
    if (none.includes(error.code ?? "")) resolve(undefined)
    else reject(new Failure(exits.unreachable, "unreachable", error.message))
  })
  call.end(JSON.stringify(what))
  return promise
}

/** Nothing takes orders in this data folder. */
export function noServer(data_dir: string): Failure {
  const hint = whereServersRun() ?? "start one with `belfry up`"
  const message = `No server runs on the data in ${data_dir}.`
  return new Failure(exits.unreachable, "unreachable", message, { hint })
}

function failureOf({ code, message, details }: OrderRefusal): Failure {
  const status = codes[code as ErrorCode]?.[0] ?? 500
  return new Failure(exitOfStatus(status), code, message, { details })
}
