import { join } from "node:path"
import { eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { monotonic, sleep } from "../core/time"
import type { Store } from "../store/store"
import { AloneFirst, CrashGuard } from "./crash-guard"
import { keepRunning } from "./every"
import type { AnyWorkRows } from "./holds"
import { nodes } from "./tables"
import type { WakeUpTopic } from "./work-rows"

export const BEAT_MILLISECONDS = 5000
const SILENT_MILLISECONDS = 20_000
const LOOK_MILLISECONDS = 500
const TOGETHER_MILLISECONDS = 10

/** The database's own clock: those of the nodes differ. */
const databaseTime = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A condition for the rows of nodes: each of them showed life at most that many milliseconds ago. */
export const hasLived = (milliseconds: number): SQL =>
  gte(nodes.seen_at, sql`${databaseTime} - ${milliseconds}`)

export type WorkNode = ReturnType<typeof workNode>

interface NodeOptions {
  store: Store
  alone: boolean
  data_dir: string
  isAsked: () => boolean
}

export function workNode({ store, alone, data_dir, isAsked }: NodeOptions) {
  const owner = newId()
  const alone_first = new AloneFirst()
  return {
    loop: { store, alone, owner, isAsked },
    /** Where the process is alone, what remembers its work across its death. */
    guardFor: ({ name }: AnyWorkRows) =>
      alone ? new CrashGuard(join(data_dir, `in-flight-${name}.slots`), alone_first) : undefined,
    /** Shows life to the other processes. The loops may work from then on. */
    join: async () => (alone ? undefined : showLife(store, owner)),
    /** Where several processes share a database: shows life, and releases what silent nodes have claimed. */
    beat: async (tables: AnyWorkRows[]) => {
      await showLife(store, owner)
      await releaseSilent(store, tables)
    },
    /** Once no work of this node runs any more. */
    leave: async () => (alone ? undefined : forget(store, owner)),
  }
}

/** A node that starts shows life before it works, so that no other one holds the work. Resolves with how to end it. */
export async function showStart(store: Store): Promise<() => Promise<void>> {
  if (store.isAlone) return async () => {}
  const id = newId()
  const run = () => showLife(store, id)
  await run()
  const stop = keepRunning(store, [
    { name: "life sign of this start", every_ms: BEAT_MILLISECONDS, by: "node", run },
  ])
  return async () => {
    await stop()
    await forget(store, id)
  }
}

const forget = (store: Store, id: string) =>
  store.tx((tx) => tx.delete(nodes).where(eq(nodes.id, id)))

export const showLife = (store: Store, node_id: string) =>
  store.tx(async (tx) => {
    const seen_at = databaseTime as SQL<string>
    const sign = tx.insert(nodes).values({ id: node_id, seen_at })
    await sign.onConflictDoUpdate({ target: nodes.id, set: { seen_at } })
  })

/** Another node works on the database, so nothing of it can be held. */
class OtherNodeRuns extends Error {
  override readonly name = "OtherNodeRuns"

  constructor() {
    super(
      "Another node works on this database, so its open work cannot be held. Stop every node first, and start one of them with --hold.",
    )
  }
}

/** Waits until a node that died counts as silent. Throws OtherNodeRuns while one shows life. */
export async function requireNoOtherNode(store: Store): Promise<void> {
  if (store.isAlone) return
  const lives = hasLived(SILENT_MILLISECONDS)
  const until = monotonic() + SILENT_MILLISECONDS + BEAT_MILLISECONDS
  for (;;) {
    const living = await store.read.select({ id: nodes.id }).from(nodes).where(lives).limit(1)
    if (living.length === 0) return
    if (monotonic() > until) throw new OtherNodeRuns()
    await sleep(LOOK_MILLISECONDS)
  }
}

/** Releases what silent nodes had claimed, and forgets them. Returns how many rows came back. */
export async function releaseSilent(store: Store, tables: AnyWorkRows[]): Promise<number> {
  const is_silent = lt(nodes.seen_at, sql`${databaseTime} - ${SILENT_MILLISECONDS}`)
  const silent = await store.read.select({ id: nodes.id }).from(nodes).where(is_silent)
  if (silent.length === 0) return 0
  const ids = silent.map(({ id }) => id)
  let released = 0
  for (const rows of tables) {
    for (let freed = -1; freed !== 0; released += freed) freed = await rows.freeOf(store, ids)
  }
  await store.tx((tx) => tx.delete(nodes).where(inArray(nodes.id, ids)))
  log.warn("a node was silent; its work was released", { nodes: ids, released })
  return released
}

/**
 * Carries wake-ups to the other nodes on the same Postgres, and theirs to us. Commits that come
 * together are told together; what is lost, the polls find. Returns how to stop.
 */
export function shareWakeUps(store: Store, shared: WakeUpTopic[]): () => void {
  if (store.isAlone) return () => {}
  const leave = shared.map((one) => share(store, one))
  return () => {
    for (const stop of leave) stop()
  }
}

function share(store: Store, { topic, onWakeUp, wakeUp }: WakeUpTopic) {
  let is_foreign = false
  let timer: Timer | undefined
  void store.listen(topic, () => {
    is_foreign = true // what follows came from outside: it must not go out again
    wakeUp()
    is_foreign = false
  })
  const off = onWakeUp(() => {
    if (is_foreign || timer) return
    timer = setTimeout(() => {
      timer = undefined
      void store.notify(topic, "")
    }, TOGETHER_MILLISECONDS)
  })
  return () => {
    off()
    clearTimeout(timer)
  }
}
