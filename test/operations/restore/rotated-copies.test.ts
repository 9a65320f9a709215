import { expect, test } from "bun:test"
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Settings, settings } from "../../../src/core/config"
import { openSecrets, type Secrets } from "../../../src/core/secrets"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { createBackup } from "../../../src/operations/backup/create-backup"
import { verifyArchive } from "../../../src/operations/backup/verify-archive"
import { NEXT_MASTER_KEY, PREVIOUS_KEY, requireMasterKey } from "../../../src/operations/instance"
import { lostSecrets, rotateMasterKey } from "../../../src/operations/master-key"
import { restore } from "../../../src/operations/restore/restore"
import * as instanceValues from "../../../src/store/instance-values"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { dying } from "../../harness/dying-store"
import { leftover } from "../../harness/leftovers"
import { quietLog } from "../../harness/quiet"
import { endpoint } from "../../webhooks/endpoints"
import { original, target } from "./original"

quietLog()

const NEW_KEY = Buffer.alloc(32, 9).toString("base64")
const STRANGE_KEY = Buffer.alloc(32, 7).toString("base64")
const ROTATION = { new_key: NEW_KEY, end_links: false }

const emptyFolder = () => leftover(mkdtempSync(join(tmpdir(), "belfry-rotated-")))
/** Of a machine that has this key and no other. */
const aloneWith = (master_key: string) => openSecrets({ data_dir: emptyFolder(), master_key })
const keyIn = (data_dir: string) => readFileSync(join(data_dir, "master.key"), "utf8").trim()

/** A server with secrets in rows of several kinds. */
async function sealedBox() {
  const box = await original()
  const { store } = box.service
  await requireMasterKey(store, box.secrets)
  await store.tx((tx) => instanceValues.set(tx, "kept", box.secrets.seal("plain", "kept")))
  for (let made = 0; made < 3; made++) await endpoint(box.project)
  return box
}

/** A server whose rotation is killed after so many transactions; undefined where it ended before. */
async function killedRotation(box: Awaited<ReturnType<typeof original>>, after: number) {
  const { store, folder: data_dir } = box.service
  const secrets = openSecrets({ data_dir, master_key: null })
  await requireMasterKey(store, secrets)
  const rotated = rotateMasterKey({ store: dying(store, after), secrets }, ROTATION)
  const error = await rotated.then(
    () => undefined,
    (one: Error) => one.message,
  )
  expect([undefined, "killed"]).toContain(error)
  return error && secrets
}

async function backupOf(data_dir: string, secrets: Secrets): Promise<string> {
  const own = { data_dir, database_url: null, "storage.sqlite.path": join(data_dir, "test.db") }
  const where = { ...settings(), ...own, "storage.min_free_mb": 0 }
  return (await createBackup({ settings: where, secrets })).path
}

async function restored(path: string, where: Settings, master_key: string) {
  const secrets = aloneWith(master_key)
  const parts = {
    settings: where,
    secrets,
    master_key,
    runs_on: ALLOWED_WHILE_HELD,
    revoke_keys: false,
  }
  await restore(await openArchive(path), parts)
}

test("a backup from the midst of a rotation is restored with either key, and the rotation ends", async () => {
  await using box = await sealedBox()
  const { folder } = box.service
  const from = keyIn(folder)
  let copies = 0
  for (let after = 1; ; after++) {
    const secrets = await killedRotation(box, after)
    if (!secrets) break
    copies += 1
    const path = await backupOf(folder, secrets)
    const { manifest } = await openArchive(path)
    expect(manifest).toMatchObject({
      master_key_id: aloneWith(from).key_id,
      next_master_key_id: aloneWith(NEW_KEY).key_id,
    })
    await verifyArchive(path, { secrets: aloneWith(from) })
    await verifyArchive(path, { secrets: aloneWith(NEW_KEY) })

    await using next = await target(emptyFolder())
    await restored(path, next.settings, NEW_KEY)
    expect(await endedIn(next)).toEqual({ lost: [], left: [undefined, undefined] })
    expect(keyIn(next.settings.data_dir)).toBe(NEW_KEY)

    await using earlier = await target(emptyFolder())
    await restored(path, earlier.settings, from)
    const { data_dir } = earlier.settings
    expect(keyIn(data_dir)).toBe(from)
    writeFileSync(join(data_dir, "master.key.next"), NEW_KEY, { mode: 0o600 })
    expect(await endedIn(earlier, true)).toEqual({ lost: [], left: [undefined, undefined] })
    expect(keyIn(data_dir)).toBe(NEW_KEY)
  }
  expect(copies).toBeGreaterThan(1)
})

test("another key is refused with the names of both, and one that is not sealed in the copy is no fault", async () => {
  await using box = await original()
  const secrets = await killedRotation(box, 1)
  const path = await backupOf(box.service.folder, secrets as Secrets)
  await using place = await target(emptyFolder())
  const names = [keyIn(box.service.folder), NEW_KEY].map((key) => aloneWith(key).key_id)
  expect(restored(path, place.settings, STRANGE_KEY)).rejects.toThrow(names.join(" or "))
  const strange = verifyArchive(path, { secrets: aloneWith(STRANGE_KEY) })
  expect(strange).rejects.toThrow(`of the master key ${names[0]}`)
  await strange.catch(() => {})
})

test("a backup from before a rotation is verified with the earlier key, which the folder still has", async () => {
  await using box = await sealedBox()
  const { folder: data_dir, store } = box.service
  const path = await backupOf(data_dir, box.secrets)
  await rotateMasterKey({ store, secrets: box.secrets }, ROTATION)
  const secrets = openSecrets({ data_dir, master_key: null })
  expect(await verifyArchive(path, { secrets })).toMatchObject({ secrets_opened: true })
})

/** What no key of the folder opens, and what a rotation left, in a start of a restored server. */
async function endedIn({ settings, open }: Awaited<ReturnType<typeof target>>, goes_on = false) {
  const store = await open()
  try {
    const secrets = openSecrets({ data_dir: settings.data_dir, master_key: null, make: false })
    await requireMasterKey(store, secrets)
    if (goes_on) await rotateMasterKey({ store, secrets }, { new_key: null, end_links: false })
    const left = [NEXT_MASTER_KEY, PREVIOUS_KEY].map((name) =>
      instanceValues.find(store.read, name),
    )
    return { lost: await lostSecrets(store, aloneWith(NEW_KEY)), left: await Promise.all(left) }
  } finally {
    await store.close()
  }
}
