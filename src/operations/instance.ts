import { ne, sql } from "drizzle-orm"
import type { Blobs } from "../core/blobs"
import type { Settings } from "../core/config"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { openSecrets, type Secrets } from "../core/secrets"
import { now } from "../core/time"
import { events } from "../events/tables"
import * as instanceValues from "../store/instance-values"
import type { Reader, Store } from "../store/store"

const PROBE = "last_probe_at"
/** The name of the master key of the database, and of the one that a rotation puts in its place. */
export const MASTER_KEY = "master_key_id"
export const NEXT_MASTER_KEY = "next_master_key_id"
/** Sealed with the next master key, as long as a rotation goes on: the key that it takes the place of. */
export const PREVIOUS_KEY = "previous_master_key"
/** Sealed: the first master key, with which the MACs of links and addresses are made. */
export const LINK_KEY = "link_key"
/** The name of the value that names the marker in the folder of the blobs. */
export const BLOB_MARKER = "blob_marker"
const CLUSTER = "postgres_cluster"

/** The database was sealed with another master key: starting would only break things later. */
export class WrongMasterKey extends Error {
  constructor(expected: string, found: string) {
    super(
      `The secrets in this database are sealed with the master key ${expected}, but this start has ` +
        `the key ${found}. Set security.master_key to the right key, or restore its file master.key.`,
    )
    this.name = "WrongMasterKey"
  }
}

/** The nodes on this database keep their files elsewhere: half of the attachments would be missing. */
export class BlobsElsewhere extends Error {
  constructor() {
    super(
      "The blob folder of this node is not the one that the other nodes on this database use. " +
        "Set storage.blobs.dir to the folder that all of them share. If that folder is lost, delete " +
        `the row "${BLOB_MARKER}" from instance_values. The next start then uses its own folder.`,
    )
    this.name = "BlobsElsewhere"
  }
}

type KeySettings = Pick<Settings, "data_dir" | "security.master_key">

/**
 * Opens the secrets of a database. A new master key is made only where the database has none yet, and where
 * `makes` is not false: a new key in the place of a lost one would hide what was lost. Throws MasterKeyError.
 */
export async function openSecretsFor(
  store: Store,
  { data_dir, "security.master_key": master_key }: KeySettings,
  { makes = true }: { makes?: boolean } = {},
): Promise<Secrets> {
  const wanted = await instanceValues.find(store.read, MASTER_KEY)
  return openSecrets({ data_dir, master_key, make: makes && wanted === undefined, wanted })
}

/**
 * The first start decides which master key belongs to the database; every node needs that one. After a
 * rotation it may still lie beside the key that was used before: then it is used from here on.
 */
export async function requireMasterKey(store: Store, secrets: Secrets): Promise<void> {
  const { key_id, keys } = secrets
  const expected = await instanceValues.findOrInitialize(store, MASTER_KEY, key_id)
  const link_key = await instanceValues.find(store.read, LINK_KEY)
  // Without a kept key, links have that of the database, also on a node that kept one in the rotation.
  const is_known = keys.use(expected, link_key === undefined ? { also_for_macs: true } : {})
  if (!is_known) throw new WrongMasterKey(expected, key_id)
  keys.settle()
  if (link_key !== undefined) keys.useForMacs(secrets.open(link_key, LINK_KEY))
  const next = await instanceValues.find(store.read, NEXT_MASTER_KEY)
  if (next === undefined) return
  log.warn(
    "a rotation of the master key has not ended; run `belfry admin rotate-master-key` again",
    {
      from: expected,
      to: next,
    },
  )
}

/** The first node leaves a marker in its blob folder, and every other one must find it in its own. */
export async function requireSharedBlobs(store: Store, blobs: Blobs): Promise<void> {
  const known = await instanceValues.find(store.read, BLOB_MARKER)
  const marker =
    known ?? (await instanceValues.findOrInitialize(store, BLOB_MARKER, await newMarker(blobs)))
  if (!(await blobs.get(marker))) throw new BlobsElsewhere()
}

const newMarker = async (blobs: Blobs) =>
  (await blobs.put(Buffer.from(`belfry blob folder ${newId()}\n`))).sha256

/** A write that means nothing, to learn whether the database takes writes again. */
export const probe = (store: Store): Promise<void> =>
  store.tx((tx) => instanceValues.set(tx, PROBE, now()))

/**
 * An event's position is the number of its transaction, which only the cluster that gave it can
 * count on from. After a restore into another one (or another database) new numbers may be lower
 * than old ones: then what is there already is put before everything that comes.
 */
export async function followCluster(store: Store): Promise<void> {
  if (store.isAlone) return
  const here = await identityOf(store.read)
  if (here === undefined) return
  const left = await store.tx(async (tx) => {
    await instanceValues.initialize(tx, CLUSTER, here)
    const kept = await instanceValues.findForUpdate(tx, CLUSTER)
    if (kept === here) return undefined
    await tx.update(events).set({ position: 0 }).where(ne(events.position, 0))
    await instanceValues.set(tx, CLUSTER, here)
    return kept
  })
  if (left)
    log.warn(
      "the data moved to another Postgres server; readers get events from before the move first",
      {
        left,
        here,
      },
    )
}

/** `undefined` where the server does not tell, which some that only speak like Postgres do not. */
async function identityOf(db: Reader): Promise<string | undefined> {
  const system = sql<string>`system_identifier::text`
  const database = sql<string>`(SELECT oid::text FROM pg_database WHERE datname = current_database())`
  try {
    const [row] = await db.select({ system, database }).from(sql`pg_control_system()`)
    return row && `${row.system}/${row.database}`
  } catch (error) {
    log.warn(
      "this Postgres server does not give its identity; Belfry cannot notice a move to another server",
      { error },
    )
    return undefined
  }
}
