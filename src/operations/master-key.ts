import { and, asc, eq, getTableName, gt, inArray } from "drizzle-orm"
import { log } from "../core/log"
import { keyIdOf, MasterKeyError, SecretError, type Secrets } from "../core/secrets"
import { sleep } from "../core/time"
import { nodes } from "../jobs/tables"
import { hasLived } from "../jobs/work-nodes"
import { inPages } from "../store/in-steps"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"
import { LINK_KEY, MASTER_KEY, NEXT_MASTER_KEY, PREVIOUS_KEY, requireMasterKey } from "./instance"
import {
  mayBeSealed,
  SEALED_COLUMNS,
  type SealedColumn,
  sealedIn,
  withSealed,
} from "./sealed-columns"

/** Rows of one transaction, so that other transactions run between two of them. */
const AT_ONCE = 100
/** Another node seals with the old key until it hears of the new one. */
const MOST_PASSES = 20
const FOLLOW_MS = 5000
const LIVING_MS = 60_000
/** A request that sealed something has committed it after this, or was refused. */
const COMMITTED_MS = 500

interface RotateParts {
  store: Store
  secrets: Secrets
  /** How many of the living nodes are this process: none of a command beside them. Default: 1. */
  own_nodes?: number
}

/** What a rotation of this process changes now. A second one would take the old key back in the middle. */
const rotating = new WeakSet<Secrets>()

interface RotateOptions {
  /** 32 bytes in base64; null makes a key. */
  new_key: string | null
  /** Links and addresses in mail that was sent stop working: the old key is not kept for them. */
  end_links: boolean
}

export interface RotatedKey {
  from: string
  to: string
  /** Values that were sealed anew. */
  resealed: number
}

/**
 * Puts another master key into the place of the one in use, while the server works. At every moment the
 * database opens with the keys in the data folder, and a rotation that was stopped goes on with the
 * next call. Throws MasterKeyError for a key that is none, that is in use, or that is not the one it began with.
 */
export async function rotateMasterKey(
  parts: RotateParts,
  options: RotateOptions,
): Promise<RotatedKey> {
  const { secrets } = parts
  if (rotating.has(secrets)) throw new MasterKeyError(RUNNING)
  rotating.add(secrets)
  try {
    return await rotate(parts, options)
  } finally {
    rotating.delete(secrets)
  }
}

const RUNNING =
  "The master key is being rotated by an earlier command. Wait until that one has ended."

async function rotate(parts: RotateParts, { new_key, end_links }: RotateOptions) {
  const { store, secrets } = parts
  await requireMasterKey(store, secrets) // of a rotation that ended without its last step
  const { keys, key_id: from } = secrets
  const has_others = await hasOtherNodes(parts)
  if (has_others && !keys.hasNext()) throw new MasterKeyError(SEVERAL_NODES)
  const begun = await instanceValues.find(store.read, NEXT_MASTER_KEY)
  if (begun === undefined && isInUse(secrets, new_key)) throw new MasterKeyError(inUse(from))
  if (begun !== undefined && !keys.hasNext()) throw new MasterKeyError(otherKey(begun))
  const to = keys.next(new_key)
  // With the new key alone, a copy of the database that is made meanwhile opens whole.
  const previous = keys.sealWith(to, keys.current(), PREVIOUS_KEY)
  await beginWith(store, to, previous)
  const link_key = keys.forMacs()
  keys.useForMacs(link_key)
  keys.use(to)
  log.info("the master key is being rotated", { from, to })
  let resealed = 0
  for (let pass = 1, quiet = 0; quiet < 2 && pass <= MOST_PASSES; pass++) {
    const count = await resealAll({ store, secrets }, to)
    resealed += count
    quiet = count === 0 ? quiet + 1 : 0
    // What was sealed with the old key a moment ago may be about to be committed.
    if (quiet === 1) await sleep(has_others ? 2 * FOLLOW_MS : COMMITTED_MS)
  }
  await store.tx(async (tx) => {
    await instanceValues.set(tx, MASTER_KEY, to)
    await instanceValues.remove(tx, NEXT_MASTER_KEY)
    await instanceValues.remove(tx, PREVIOUS_KEY)
    if (end_links) await instanceValues.remove(tx, LINK_KEY)
    else await instanceValues.set(tx, LINK_KEY, secrets.seal(link_key, LINK_KEY))
  })
  if (end_links) keys.use(to, { also_for_macs: true })
  keys.settle()
  const is_log_empty = await store.emptyLog() // it still has the values of before
  if (!is_log_empty) log.warn(IN_LOG)
  log.warn("the master key was rotated; keep a copy of the new one apart from the backups", {
    from,
    to,
    resealed,
  })
  return { from, to, resealed }
}

const IN_LOG =
  "the write-ahead log still has secrets that the old key opens; they stay until the log is copied into the database"

const isInUse = ({ keys }: Secrets, key: string | null): boolean =>
  key !== null && Buffer.from(key, "base64").equals(Buffer.from(keys.current(), "base64"))

const inUse = (key_id: string) =>
  `The given key ${key_id} is the key in use, so nothing was changed. Give another key, or none for a random one.`

/** Throws MasterKeyError where a rotation to another key has begun, on this node or another one. */
const beginWith = (store: Store, to: string, previous: string): Promise<void> =>
  store.tx(async (tx) => {
    const begun = (await instanceValues.findForUpdate(tx, NEXT_MASTER_KEY)) ?? to
    if (begun !== to) throw new MasterKeyError(otherKey(begun))
    await instanceValues.set(tx, NEXT_MASTER_KEY, to)
    await instanceValues.set(tx, PREVIOUS_KEY, previous)
  })

const otherKey = (begun: string) =>
  `A rotation to the key ${begun} has begun, and some values are sealed with it. Copy the file of that key to ` +
  "master.key.next in this data folder, and run the command again."

/** Values that are sealed anew open on a node only if it has the new key. */
async function hasOtherNodes({ store, own_nodes = 1 }: RotateParts): Promise<boolean> {
  if (store.isAlone) return false
  const all = store.read.select({ id: nodes.id }).from(nodes)
  const rows = await all.where(hasLived(LIVING_MS)).limit(own_nodes + 1)
  return rows.length > own_nodes
}

const SEVERAL_NODES =
  "Several nodes use this database. Write the new key to master.key.next in the data folder of each node " +
  "(mode 600). Then run this command again on one of them."

async function resealAll(parts: RotateParts, to: string): Promise<number> {
  let resealed = 0
  for (const sealed of SEALED_COLUMNS) resealed += await resealColumn(parts, sealed, to)
  return resealed
}

async function resealColumn({ store, secrets }: RotateParts, sealed: SealedColumn, to: string) {
  const { key, column, contextOf } = sealed
  let resealed = 0
  for await (const rows of sealedRows(store, sealed)) {
    const old = rows.filter(({ text }) => keyIdOf(text) !== to)
    if (old.length === 0) continue
    resealed += await store.tx(async (tx) => {
      let changed = 0
      for (const row of old) {
        const context = contextOf(row.key)
        const plain = openedIn(secrets, row.text, context)
        if (plain === undefined) continue // `lost-key` lists it, before and afterwards
        const again = withSealed(row.value, secrets.seal(plain, context))
        // What was written meanwhile stays, and is met by the next pass.
        const same = and(eq(key, row.key), eq(column, row.value))
        const set = { [nameOf(column)]: again }
        const done = await tx.update(key.table).set(set).where(same).returning({ key })
        changed += done.length
      }
      return changed
    })
  }
  return resealed
}

/** What was sealed; undefined where no key at hand opens it. */
function openedIn(secrets: Secrets, text: string, context: string): string | undefined {
  try {
    return secrets.open(text, context)
  } catch (error) {
    if (error instanceof SecretError) return undefined
    throw error
  }
}

/** Our columns have the same name in code and in the database. */
const nameOf = ({ name }: SealedColumn["column"]): string => name

interface SealedRow {
  key: string
  value: unknown
  text: string
}

/** The sealed values of a column, some rows at a time. */
export async function* sealedRows(store: Store, sealed: SealedColumn): AsyncGenerator<SealedRow[]> {
  const { key, column } = sealed
  const next = async (after: string) => {
    const page = store.read.select({ id: key, value: column }).from(key.table)
    const behind = page.where(and(gt(key, after), mayBeSealed(store.read, sealed)))
    return (await behind.orderBy(asc(key)).limit(AT_ONCE)) as { id: string; value: unknown }[]
  }
  for await (const rows of inPages(AT_ONCE, next))
    yield rows.flatMap(({ id, value }) => {
      const text = sealedIn(value)
      return text === undefined ? [] : [{ key: id, value, text }]
    })
}

/** Each call follows a rotation that another node made, if there was one. */
export function masterKeyFollower({ store, secrets }: RotateParts): () => Promise<void> {
  let is_following = false
  return async () => {
    const next = await instanceValues.find(store.read, NEXT_MASTER_KEY)
    const current = await instanceValues.find(store.read, MASTER_KEY)
    const wanted = next ?? current ?? secrets.key_id
    if (wanted !== secrets.key_id) {
      if (next !== undefined) secrets.keys.useForMacs(secrets.keys.forMacs())
      if (!secrets.keys.use(wanted)) return log.error(UNKNOWN, { key: wanted })
      is_following = true
    }
    if (!is_following || next !== undefined) return
    await requireMasterKey(store, secrets) // it has ended: its file gets its name, and links their key
    is_following = false
  }
}

const UNKNOWN =
  "The master key was rotated on another node, and this node does not have the new key. Copy its file to " +
  "master.key.next in the data folder of this node."

/** Values of one column that no key at hand opens. */
interface LostSecrets {
  column: string
  what: string
  count: number
  remedy: string
}

/** What cannot be opened any more, by column. */
export async function lostSecrets(store: Store, secrets: Secrets): Promise<LostSecrets[]> {
  const all: LostSecrets[] = []
  for (const sealed of SEALED_COLUMNS) {
    const count = (await lostKeys(store, secrets, sealed)).length
    const { column, what, remedy } = sealed
    const name = `${tableOf(sealed)}.${column.name}`
    if (count > 0) all.push({ column: name, what, count, remedy })
  }
  return all
}

const tableOf = ({ column }: SealedColumn) => getTableName(column.table)

/**
 * Goes on with the key at hand: what has no other remedy is dropped, so that it is made anew, and the
 * database belongs to this key from now on. Returns what was lost.
 */
export async function acceptLostKey(store: Store, secrets: Secrets): Promise<LostSecrets[]> {
  const lost = await lostSecrets(store, secrets)
  for (const sealed of SEALED_COLUMNS) {
    const { key, column, drop } = sealed
    if (!drop) continue
    const lost = await lostKeys(store, secrets, sealed)
    for (let at = 0; at < lost.length; at += AT_ONCE) {
      const some = inArray(key, lost.slice(at, at + AT_ONCE))
      await store.tx(async (tx) => {
        if (drop === "row") await tx.delete(key.table).where(some)
        else
          await tx
            .update(key.table)
            .set({ [column.name]: null })
            .where(some)
      })
    }
  }
  await store.tx(async (tx) => {
    await instanceValues.set(tx, MASTER_KEY, secrets.key_id)
    await instanceValues.remove(tx, NEXT_MASTER_KEY)
    await instanceValues.remove(tx, PREVIOUS_KEY)
  })
  return lost
}

async function lostKeys(store: Store, secrets: Secrets, sealed: SealedColumn): Promise<string[]> {
  const lost: string[] = []
  for await (const rows of sealedRows(store, sealed)) {
    for (const { key, text } of rows)
      if (openedIn(secrets, text, sealed.contextOf(key)) === undefined) lost.push(key)
  }
  return lost
}
