import { createServer } from "node:net"
import { hostAndPort, type Loaded, useSettings } from "../../src/core/config"
import { isJsonLog, log } from "../../src/core/log"
import { catchStrayErrors, catchStrayOutput } from "../../src/core/stray-output"
import type { Running, StartOptions } from "../../src/server"
import { exits, Failure, usage } from "../lib/errors"
import { onInterrupt, outliveReaders } from "../lib/interrupt"
import { requireFolders } from "./settings"
import { portTaken, startFailure } from "./start-errors"

/** Running deliveries are let end, which a person should not take for a hang. */
export const STOPPING =
  "Stopping. Running deliveries have 20 seconds to finish. A second signal stops at once."

/** Starts a server in this process. Everything that can go wrong comes as a Failure. */
export async function startServer(
  loaded: Loaded,
  options: Required<Pick<StartOptions, "mode" | "begin">> & Pick<StartOptions, "hold">,
): Promise<Running> {
  requireFolders(loaded)
  useSettings(loaded)
  outliveReaders()
  keepLogWhole()
  for (const setting of loaded.gone)
    log.warn("the server ignores a setting that this version does not have any more", { setting })
  let running: Running | undefined
  process.on("SIGHUP", () => void reloadSettings(loaded).then(() => running?.reload()))
  try {
    const { enterUpgrade } = await import("./upgrade-entry")
    // Before the journal is read: the database has to be taken right after it.
    const { start } = await import("../../src/server")
    const entry = await enterUpgrade(loaded)
    running = await start({ loaded, ...options, ...entry })
    return running
  } catch (error) {
    throw startFailure(error, loaded.values)
  }
}

/** From here on nothing is printed beside the log. */
function keepLogWhole(): void {
  const notify: Parameters<typeof catchStrayOutput>[0] = (level, ...line) => log[level](...line)
  catchStrayOutput(notify)
  catchStrayErrors(notify)
}

async function reloadSettings(loaded: Loaded): Promise<void> {
  const { reload } = await import("../../src/operations/reload")
  reload(loaded)
}

/** Where the log is JSON, what ends the server is told as JSON, too, also on a terminal. */
export function inFormOfLog(error: unknown): unknown {
  if (!isJsonLog()) return error
  const message = error instanceof Error ? error.message : String(error)
  const failure =
    error instanceof Failure ? error : new Failure(exits.failed, "internal_error", message)
  failure.is_for_log = true
  return failure
}

/**
 * Resolves when SIGINT or SIGTERM came and everything is stopped; a second signal does not wait for
 * that. `stopping` is called at the first. Throws with exit 74 when the storage died.
 */
export function untilStopped(running: Running, stopping: () => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    let is_stopping = false
    const stop = () => {
      if (is_stopping) process.exit(exits.interrupted)
      is_stopping = true
      stopping()
      running.stop().then(resolve, reject)
    }
    onInterrupt(stop)
    process.on("SIGTERM", stop)

    const died = (error: unknown) => reject(storageDied(error, running.data_dir))
    running.failed.then(died, died)
  })
}

function storageDied(error: unknown, data_dir: string): Failure {
  const reason = error instanceof Error ? error.message : String(error)
  const message = `The storage failed, so the server stopped: ${reason}`
  const hint = `check the disk of ${data_dir}, then start again; accepted mail is stored`
  return new Failure(exits.storage, "storage", message, { details: { data_dir }, hint })
}

export const LOOPBACK = "127.0.0.1"

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(false))
    probe.listen({ host: LOOPBACK, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })

export function portNumber(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (!(port <= 65_535))
    throw usage(`--port: "${text}" is not a port`, "write 0 to 65535; 0 takes a free port")
  return port
}

/** Where no setting names the address of the embedded mailbox: the setting of a free one, if the usual is taken. */
export async function settledMailbox({ values, explain }: Loaded): Promise<string[]> {
  const { source } = explain("mailbox.listen")
  if (!values["mailbox.enabled"] || source !== "default") return []
  const { port } = hostAndPort(values["mailbox.listen"])
  return (await settledPort(port, false)) === port ? [] : [`mailbox.listen=${LOOPBACK}:0`]
}

/** A port by request must be free (exit 69); a usual one gives way to any free one. */
export async function settledPort(port: number, is_request: boolean): Promise<number> {
  if (port === 0 || (await isFree(port))) return port
  if (is_request) throw portTaken(`${LOOPBACK}:${port}`, "--port")
  return 0
}
