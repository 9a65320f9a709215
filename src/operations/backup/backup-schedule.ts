import type { Settings } from "../../core/config"
import { ApiError } from "../../core/errors"
import { log } from "../../core/log"
import { millis } from "../../core/time"
import type { Store } from "../../store/store"
import { requestBackup } from "./backup-job"
import { backupState, dueAt, holdState } from "./backup-state"

const LOOK_MS = 60_000

export interface KeptBackups {
  /** What the timer does each minute: begins a backup where one is due. */
  look(): Promise<void>
  stop(): void
}

/** Makes backups on the schedule, by one of the nodes. */
export function keepBackups(
  store: Store,
  settings: Pick<Settings, "backup.schedule">,
): KeptBackups {
  const isDue = (due: number | undefined) => due !== undefined && millis() >= due
  const look = async () => {
    const { "backup.schedule": schedule } = settings
    if (schedule === "off") return
    const known = await backupState(store.read)
    if (known && !isDue(dueAt(schedule, known))) return
    await store.tx(async (tx) => {
      const state = await holdState(tx)
      if (isDue(dueAt(schedule, state))) await requestBackup(tx)
    })
  }
  const told = (error: unknown) => {
    if (error instanceof ApiError) return // one is running
    log.warn("the scheduled backup could not begin", { error })
  }
  const timer = setInterval(() => void look().catch(told), LOOK_MS)
  return { look: () => look().catch(told), stop: () => clearInterval(timer) }
}
