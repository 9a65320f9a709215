import { log } from "../core/log"
import { metricCounter } from "../core/metrics"
import { isoFrom, millis, millisFrom, now, secondsFromNow, sleep } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store } from "../store/store"
import {
  allOwners,
  type BrokenInvariant,
  brokenDeliveries,
  brokenInAccount,
  brokenInProject,
  INVARIANTS,
  type InvariantLook,
  type InvariantName,
} from "./invariants"

const HOUR_MS = 3_600_000
const LOOK_MS = 60_000
const DAY_SECONDS = 86_400
/** A message whose last attempt is just being written, or that was told late, is not judged before. */
const SPAN_SECONDS = 26 * 3600
/** Between two steps, so that sends never wait for more than one of them. */
const PAUSE_MS = 2
/** Broken places that one log line names. */
const NAMED = 5

const SWEPT = "invariants_swept"

const violations = metricCounter(
  "belfry_invariant_violations_total",
  "Broken places that the hourly sweep of invariants found.",
)

/** What the last sweep of any node found. */
export interface SweptInvariants {
  at: string
  found: Record<InvariantName, number>
}

/**
 * Once an hour, by one of the nodes: looks whether the invariants I1, I4 and I5 hold, counts what breaks
 * them (`belfry_invariant_violations_total`), and logs it as an error.
 */
export function keepInvariants(store: Store): KeptInvariants {
  const started_at = now()
  let sweeping: Promise<void> | undefined
  let is_over = false
  const sweep = async () => {
    try {
      if (await isMine(store, started_at)) await sweepInvariants(store, started_at, () => is_over)
    } catch (error) {
      log.warn("the invariants could not be checked", { error })
    }
    sweeping = undefined
  }
  const look = async () => {
    sweeping ??= sweep()
    await sweeping
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  return {
    look,
    async stop() {
      is_over = true
      clearInterval(timer)
      await sweeping
    },
  }
}

export interface KeptInvariants {
  /** What the timer does each minute: sweeps where an hour went by. */
  look(): Promise<void>
  /** Resolves when no sweep reads any more. */
  stop(): Promise<void>
}

/** What `/readyz` warns of: how many places the last sweep found broken. */
export async function invariantWarnings(db: Reader): Promise<string[]> {
  const swept = await lastSweep(db)
  const broken = Object.entries(swept?.found ?? {}).filter(([, found]) => found > 0)
  return broken.map(
    ([name, found]) =>
      `Invariant ${name} is broken in ${found} places. ` +
      `${INVARIANTS[name as InvariantName]}. Run: belfry db check`,
  )
}

/** Undefined before the first sweep. */
export async function lastSweep(db: Reader): Promise<SweptInvariants | undefined> {
  const kept = await instanceValues.find(db, SWEPT)
  return kept === undefined ? undefined : (JSON.parse(kept) as SweptInvariants)
}

/** Whether an hour went by since the last sweep, or since this start. The node that hears yes sweeps. */
function isMine(store: Store, started_at: string): Promise<boolean> {
  return store.tx(async (tx) => {
    const kept = await instanceValues.hold(tx, SWEPT)
    const last = kept === undefined ? undefined : (JSON.parse(kept) as SweptInvariants)
    const since = last && last.at > started_at ? last.at : started_at
    if (millis() - millisFrom(since) < HOUR_MS) return false
    const found = last?.found ?? nothing()
    await instanceValues.set(tx, SWEPT, JSON.stringify({ at: now(), found }))
    return true
  })
}

const nothing = (): Record<InvariantName, number> => ({ I1: 0, I4: 0, I5: 0 })

/** One sweep. `is_over` ends it early, and nothing is said then. */
export async function sweepInvariants(
  store: Store,
  started_at: string,
  isOver: () => boolean = () => false,
): Promise<SweptInvariants> {
  const places: BrokenInvariant[] = []
  const found = nothing()
  const note = async (broken: AsyncGenerator<BrokenInvariant>) => {
    for await (const place of broken) {
      if (isOver()) return
      found[place.name] += 1
      if (places.filter(({ name }) => name === place.name).length < NAMED) places.push(place)
    }
  }
  const moment = <Result>(act: (look: InvariantLook) => Promise<Result>) =>
    store.snapshot((db) => act(lookAt(db, started_at)))
  for (const kind of ["project", "account"] as const) {
    const of = kind === "project" ? brokenInProject : brokenInAccount
    for await (const id of allOwners(store.read, kind)) {
      if (isOver()) break
      await moment((look) => note(of(look, id)))
    }
  }
  if (!isOver()) await moment((look) => note(brokenDeliveries(look)))
  const swept = { at: now(), found }
  if (!isOver()) await tell(store, swept, places)
  return swept
}

function lookAt(db: Reader, started_at: string): InvariantLook {
  const day_ago = isoFrom(millis() - DAY_SECONDS * 1000)
  // What became due while no server ran has had no chance yet.
  const overdue_before = started_at < day_ago ? day_ago : null
  return { db, pause: () => sleep(PAUSE_MS), since: secondsFromNow(-SPAN_SECONDS), overdue_before }
}

async function tell(store: Store, swept: SweptInvariants, places: BrokenInvariant[]) {
  await store.tx((tx) => instanceValues.set(tx, SWEPT, JSON.stringify(swept)))
  for (const name of Object.keys(INVARIANTS) as InvariantName[]) {
    const found = swept.found[name]
    violations.add({ name }, found)
    if (found === 0) continue
    const examples = places
      .filter((place) => place.name === name)
      .map(({ owner_id, id, what }) => ({ owner_id, id, what }))
    log.error(`AN INVARIANT IS BROKEN: ${name}. ${INVARIANTS[name]}.`, {
      found,
      examples,
      next: "run `belfry db check`, and keep a copy of the database",
    })
  }
}
