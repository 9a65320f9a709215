import { type Loaded, useSettings } from "../../src/core/config"
import type { Running, StartOptions } from "../../src/server"
import { exits, Failure } from "../failure"
import { onInterrupt, outliveReaders } from "../interrupt"
import { startFailure } from "./trouble"

/** Running deliveries are let end, which a person should not take for a hang. */
export const STOPPING = "Stopping: what is being delivered may end. Once more stops at once."

/** Starts a server in this process. Everything that can go wrong comes as a Failure. */
export async function startServer(
  loaded: Loaded,
  { mode, begin }: Required<Pick<StartOptions, "mode" | "begin">>,
): Promise<Running> {
  useSettings(loaded)
  outliveReaders()
  try {
    const { start } = await import("../../src/server")
    return await start({ loaded, mode, begin })
  } catch (error) {
    throw startFailure(error, { listen: loaded.values["http.listen"], ...loaded.values })
  }
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
  const hint = `look at the disk of ${data_dir}, then start again: what was accepted is kept`
  return new Failure(exits.storage, "storage", message, { details: { data_dir }, hint })
}
