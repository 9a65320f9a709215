import { type Loaded, useSettings } from "../../src/core/config"
import { isJsonLog, log } from "../../src/core/log"
import { catchStrayErrors, catchStrayOutput } from "../../src/core/stray-output"
import type { Running, StartOptions } from "../../src/server"
import { exits, Failure } from "../failure"
import { onInterrupt, outliveReaders } from "../interrupt"
import { startFailure } from "./trouble"

/** Running deliveries are let end, which a person should not take for a hang. */
export const STOPPING =
  "Stopping. Running deliveries have 20 seconds to finish. A second signal stops at once."

/** Starts a server in this process. Everything that can go wrong comes as a Failure. */
export async function startServer(
  loaded: Loaded,
  { mode, begin }: Required<Pick<StartOptions, "mode" | "begin">>,
): Promise<Running> {
  useSettings(loaded)
  outliveReaders()
  keepLogWhole()
  process.on("SIGHUP", () => void reloadSettings(loaded))
  try {
    const { start } = await import("../../src/server")
    return await start({ loaded, mode, begin })
  } catch (error) {
    throw startFailure(error, { listen: loaded.values["http.listen"], ...loaded.values })
  }
}

/** From here on nothing is printed beside the log. */
function keepLogWhole(): void {
  const tell: Parameters<typeof catchStrayOutput>[0] = (level, ...line) => log[level](...line)
  catchStrayOutput(tell)
  catchStrayErrors(tell)
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
