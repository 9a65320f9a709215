import type { Blobs } from "../core/blobs"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"

const PROBE = "last_probe_at"
const MASTER_KEY = "master_key_id"
const MARKER = "blob_marker"

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
        `the row "${MARKER}" from instance_values. The next start then uses its own folder.`,
    )
    this.name = "BlobsElsewhere"
  }
}

/** The first start decides which master key belongs to the database; every node needs that one. */
export async function demandMasterKey(store: Store, { key_id }: Secrets): Promise<void> {
  const expected = await instanceValues.findOrInitialize(store, MASTER_KEY, key_id)
  if (expected !== key_id) throw new WrongMasterKey(expected, key_id)
}

/** The first node leaves a marker in its blob folder, and every other one must find it in its own. */
export async function demandSharedBlobs(store: Store, blobs: Blobs): Promise<void> {
  const known = await instanceValues.find(store.read, MARKER)
  const marker =
    known ?? (await instanceValues.findOrInitialize(store, MARKER, await newMarker(blobs)))
  if (!(await blobs.get(marker))) throw new BlobsElsewhere()
}

const newMarker = async (blobs: Blobs) =>
  (await blobs.put(Buffer.from(`belfry blob folder ${newId()}\n`))).sha256

/** A write that means nothing, to learn whether the database takes writes again. */
export const probe = (store: Store): Promise<void> =>
  store.tx((tx) => instanceValues.set(tx, PROBE, now()))
