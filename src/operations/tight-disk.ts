import { asc, gt } from "drizzle-orm"
import type { Disk } from "../core/disk"
import { log } from "../core/log"
import { monotonic, nextTurn, secondsFromNow, sleep } from "../core/time"
import { projects } from "../identity/tables"
import { expireContents } from "../messages/message-retention"
import { EXPIRING_CHANNELS } from "../messages/status-changes"
import { inPages } from "../store/in-steps"
import type { Store } from "../store/store"
import { giveBack } from "./give-back"

/** With less free space than twice the floor, the contents of settled messages go (contract 70, section 1). */
export const TIGHT_FLOORS = 2

/** The oldest go first: older than a week, a day and an hour, and then every settled one. */
const AGES_SECONDS = [7 * 86_400, 86_400, 3600, 0]

/** Looks of 500 messages each, after which the space goes back and the disk is looked at again. */
const LOOKS = 10

/** Between two looks, so that sends never wait for more than one of them. */
const PAUSE_MS = 5

/** The disk is read four times a second. */
const READ_AGAIN_MS = 300

/** What was open when the walk came by is looked for again after so long, and so are files that were too young. */
const ANEW_MS = 10 * 60_000

/** Projects of one look. */
const AT_ONCE = 200

const MB = 1024 * 1024

interface TightDiskOptions {
  disk: Pick<Disk, "free_bytes">
  /** `storage.min_free_mb`; 0 switches everything off. */
  min_free_mb: number
  /** Removes the files that no message names any more. */
  sweepFiles: () => Promise<void>
}

/**
 * Each call removes contents of settled messages, the oldest first, until twice the floor of the disk
 * is free. The messages stay. It does nothing on Postgres, whose rows are on another disk.
 */
export function tightDiskSweeper(
  store: Store,
  { disk, min_free_mb, sweepFiles }: TightDiskOptions,
): (signal?: AbortSignal) => Promise<void> {
  const enough = TIGHT_FLOORS * min_free_mb * MB
  const isTight = () => disk.free_bytes() < enough
  /** By age, project and channel: no settled message up to this id has a content. */
  const places = new Map<string, string>()
  let begun_at = Number.NEGATIVE_INFINITY
  let swept_at = Number.NEGATIVE_INFINITY
  let is_told = false

  return async (signal) => {
    const relieve = async () => {
      await giveBack(store, { everything: true, signal })
      await sleep(READ_AGAIN_MS, signal)
      return !isTight() || signal?.aborted === true
    }
    if (!store.file || !isTight()) {
      is_told = false
      return
    }
    if (!is_told) log.warn(ALMOST_FULL, { free_mb: megabytes(disk), next: NEXT })
    is_told = true
    if (monotonic() - begun_at > ANEW_MS) places.clear()
    if (places.size === 0) begun_at = monotonic()
    if (await relieve()) return // free pages were enough
    for (const seconds of AGES_SECONDS) {
      const relief = { places, seconds, relieve, signal }
      const came = await sweepOlder(store, secondsFromNow(-seconds), relief)
      if (came === "room" || signal?.aborted) return
      if (came === "nothing" && monotonic() - swept_at < ANEW_MS) continue
      await sweepFiles()
      swept_at = monotonic()
      if (await relieve()) return
    }
  }
}

const megabytes = (disk: Pick<Disk, "free_bytes">) => Math.floor(disk.free_bytes() / MB)

const ALMOST_FULL =
  "the disk is almost full: contents of settled messages are removed before their time, the oldest first"
const NEXT =
  "Free space on the disk, or shorten `retention` of the projects (docs/operations.md, How long things are kept)."

interface Relief {
  places: Map<string, string>
  seconds: number
  /** Resolves with whether there is room now. */
  relieve: () => Promise<boolean>
  signal: AbortSignal | undefined
}

/** There is room now; contents went, and there is none; nothing was left to go. */
type Swept = "room" | "removed" | "nothing"

async function sweepOlder(
  store: Store,
  before: string,
  { places, seconds, relieve, signal }: Relief,
): Promise<Swept> {
  let looks = 0
  for await (const project_id of allProjects(store)) {
    for (const channel of EXPIRING_CHANNELS) {
      const place = `${seconds} ${project_id} ${channel}`
      const old = { project_id, channel, before }
      for (;;) {
        const last = await expireContents(store, old, places.get(place) ?? "", signal)
        if (signal?.aborted) return "removed"
        if (last === undefined) break
        places.set(place, last)
        looks += 1
        if (looks % LOOKS === 0 && (await relieve())) return "room"
        await sleep(PAUSE_MS, signal)
      }
    }
    await nextTurn() // requests run between two projects, also where nothing is left
  }
  return looks > 0 ? "removed" : "nothing"
}

async function* allProjects({ read }: Store): AsyncGenerator<string> {
  const { id } = projects
  const next = (after: string) =>
    read.select({ id }).from(projects).where(gt(id, after)).orderBy(asc(id)).limit(AT_ONCE)
  for await (const rows of inPages(AT_ONCE, next)) for (const row of rows) yield row.id
}
