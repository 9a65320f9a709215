import { Database } from "bun:sqlite"
import { millis } from "../core/time"

/**
 * Pauses queues in a copy that no server has open: those that are named, and every kind of job that waits. A
 * server of any version that opens the copy then delivers nothing of it.
 */
export function pauseQueues(path: string, named: readonly string[]): void {
  using database = new Database(path, { readwrite: true })
  const kinds = database.query("SELECT DISTINCT name FROM jobs").all() as { name: string }[]
  const pause = database.query(
    "INSERT OR IGNORE INTO paused_queues (queue, paused_at) VALUES (?, ?)",
  )
  for (const queue of [...named, ...kinds.map(({ name }) => name)]) pause.run(queue, millis())
}
