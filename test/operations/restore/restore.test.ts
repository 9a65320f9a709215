import { Database } from "bun:sqlite"
import { afterEach, beforeEach, expect, test } from "bun:test"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { newId } from "../../../src/core/ids"
import { openSecrets } from "../../../src/core/secrets"
import { emitAll } from "../../../src/events/emit"
import * as feed from "../../../src/events/feed"
import { apiKeys, consoleSessions, refreshTokens } from "../../../src/identity/tables"
import { jobs, longJobs, pausedQueues } from "../../../src/jobs/tables"
import { HELD, RESTORE_HOLD } from "../../../src/jobs/work-item"
import { messages } from "../../../src/messages/tables"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import { requestBackup } from "../../../src/operations/backup/backup-job"
import { writeArchive } from "../../../src/operations/backup/pack-task"
import { raiseMark, whyPutBack } from "../../../src/operations/database-mark"
import { claimFolders, INSTANCE_ID } from "../../../src/operations/folder-owner"
import { type RestoreParts, restore } from "../../../src/operations/restore/restore"
import * as instanceValues from "../../../src/store/instance-values"
import { sqlitePath } from "../../../src/store/open"
import { ALLOWED_WHILE_HELD } from "../../../src/work"
import { person } from "../../harness/people"
import { quietLog } from "../../harness/quiet"
import { engine } from "../../harness/store"
import { original, target } from "./original"

quietLog()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "belfry-restore-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const OWNER_FILE = "belfry-instance"

const partsFor = (
  settings: RestoreParts["settings"],
  secrets: RestoreParts["secrets"],
  changes: Partial<RestoreParts> = {},
): RestoreParts => ({
  ...{ settings, secrets, master_key: null, runs_on: ALLOWED_WHILE_HELD, revoke_keys: false },
  ...changes,
})

test("a backup comes back with its rows and files, and what was open in it is held", async () => {
  await using box = await original()
  const attached = Buffer.from("an attachment").toString("base64")
  const attachments = [{ filename: "a.txt", content: attached }]
  const sent = [await box.send({ attachments }), await box.send()]
  const archive = await openArchive(await box.archive())
  await using place = await target(folder)
  const key = readFileSync(join(box.service.folder, "master.key"), "utf8").trim()
  const steps = new Set<string>()
  const changed = await restore(
    archive,
    partsFor(place.settings, box.secrets, { master_key: key }),
    {
      onProgress: ({ step }) => steps.add(step),
    },
  )
  expect(changed.held).toEqual({ messages: 2, webhook_deliveries: 0, jobs: 0 })
  expect(steps).toContain("extracting")

  const { data_dir } = place.settings
  expect(readFileSync(join(data_dir, "master.key"), "utf8")).toBe(`${key}\n`)
  expect(statSync(join(data_dir, "master.key")).mode & 0o777).toBe(0o600)
  expect(existsSync(join(data_dir, "restoring"))).toBe(false)
  expect(existsSync(join(data_dir, "restored-manifest.json"))).toBe(true)
  await using store = disposable(await place.open())
  expect(await whyPutBack(store, data_dir)).toBeUndefined()
  const rows = await store.read.select().from(messages).orderBy(messages.id)
  expect(rows.map(({ id, state, owner }) => [id, state, owner])).toEqual(
    sent.map((id) => [id, HELD, RESTORE_HOLD]),
  )
  expect(await store.read.select().from(pausedQueues)).toMatchObject([{ queue: RESTORE_HOLD }])
  const [{ sha256 } = { sha256: "" }] = rows[0]?.envelope?.attachments ?? []
  const blob = join(data_dir, "blobs", sha256.slice(0, 2), sha256)
  expect(readFileSync(blob, "utf8")).toBe("an attachment")
  expect(readdirSync(join(data_dir, "blobs"))).toEqual([sha256.slice(0, 2)])
})

test("sessions end, and the keys are listed with their last use, or revoked", async () => {
  await using box = await original()
  await person(box.service)
  const path = await box.archive()
  for (const revoke_keys of [false, true]) {
    await using place = await target(folder)
    const parts = partsFor(place.settings, box.secrets, { revoke_keys })
    const changed = await restore(await openArchive(path), parts)
    expect(changed.ended.sessions).toBeGreaterThan(0)
    const listed = { id: box.project.key_id, last_used_at: null, name: "test" }
    if (revoke_keys) expect(changed).toMatchObject({ revoked_keys: 1, active_keys: 0, keys: [] })
    else expect(changed).toMatchObject({ revoked_keys: 0, active_keys: 1, keys: [listed] })
    await using store = disposable(await place.open())
    const sessions = await store.read.select().from(consoleSessions)
    expect(sessions.filter(({ revoked_at }) => revoked_at === null)).toEqual([])
    expect(await store.read.select().from(refreshTokens)).toEqual([])
    const [key] = await store.read.select().from(apiKeys).where(eq(apiKeys.name, "test"))
    expect(key?.revoked_at === null).toBe(!revoke_keys)
  }
})

test("a restore into the attachments of a server that still uses them is refused, and one in its place is not", async () => {
  await using box = await original()
  await box.send({ attachments: [{ filename: "a.txt", content: "YQ==" }] })
  // As in a backup of Postgres.
  await box.service.store.tx((tx) => instanceValues.set(tx, INSTANCE_ID, newId()))
  const archive = await openArchive(await box.archive())
  await using place = await target(folder)
  const blobs_dir = join(folder, "blobs")
  const settings = { ...place.settings, "storage.blobs.dir": blobs_dir }
  const elsewhere = { ...settings, data_dir: box.service.folder, database_url: null }
  await claimFolders(box.service.store, elsewhere)
  const files = readdirSync(blobs_dir)
  const parts = partsFor(settings, box.secrets)
  expect(restore(archive, parts)).rejects.toMatchObject({ name: "FolderOfAnother" })
  await restore(archive, parts).catch(() => {})
  expect(existsSync(settings.data_dir)).toBe(false)
  expect(readdirSync(blobs_dir)).toEqual(files)

  mkdirSync(settings.data_dir) // the folder that is left where only the database was lost
  copyFileSync(join(box.service.folder, OWNER_FILE), join(settings.data_dir, OWNER_FILE))
  await restore(archive, parts)
  await using store = disposable(await place.open())
  await claimFolders(store, settings)
  expect(readdirSync(blobs_dir).length).toBeGreaterThan(files.length)
})

test("the backup that was running in the original ends, and a new one can be made", async () => {
  await using box = await original()
  const { id } = await box.service.store.tx(requestBackup)
  const path = await box.archive()
  await using place = await target(folder)
  const changed = await restore(await openArchive(path), partsFor(place.settings, box.secrets))
  expect(changed.held.jobs).toBe(0)
  await using store = disposable(await place.open())
  expect(await store.read.select().from(jobs)).toEqual([])
  const [ended] = await store.read.select().from(longJobs).where(eq(longJobs.id, id))
  expect(ended).toMatchObject({ status: "failed", error: { code: "conflict" } })
  expect(ended?.completed_at).toBeString()
  expect((await store.tx(requestBackup)).status).toBe("queued")
})

test("a reader of the feed goes on behind events that are lost", async () => {
  await using box = await original()
  const { account_id, project_id } = box.project
  const event = { account_id, project_id, subject_id: null, type: "email.sent", data: {} }
  const emit = async (store: typeof box.service.store) =>
    (await store.tx((tx) => emitAll(tx, [event])))[0]?.id ?? ""
  const kept = await emit(box.service.store)
  await Bun.sleep(5)
  const path = await box.archive()
  const lost = await emit(box.service.store)
  await using place = await target(folder)
  await restore(await openArchive(path), partsFor(place.settings, box.secrets))
  await using store = disposable(await place.open())
  await Bun.sleep(5)
  const fresh = await emit(store)
  const after = async (id: string) =>
    (await feed.read(store.read, project_id, { after: id, limit: 10, types: [] })).rows.map(
      (one) => one.id,
    )
  expect(await after(lost)).toEqual([fresh])
  expect(await after(kept)).toEqual([fresh])
  expect(after(`evt_${Bun.randomUUIDv7()}`)).rejects.toMatchObject({ code: "validation_error" })
})

test("a wrong master key is refused before anything is written", async () => {
  await using box = await original()
  const path = await box.archive()
  await using place = await target(folder)
  const master_key = Buffer.alloc(32, 9).toString("base64")
  const secrets = openSecrets({ data_dir: folder, master_key })
  const refused = restore(await openArchive(path), partsFor(place.settings, secrets))
  expect(refused).rejects.toMatchObject({ name: "WrongMasterKey" })
  await refused.catch(() => {})
  expect(existsSync(place.settings.data_dir)).toBe(false)
})

test("data that is there is never written over", async () => {
  await using box = await original()
  const path = await box.archive()
  await using place = await target(folder)
  const parts = partsFor(place.settings, box.secrets)
  await restore(await openArchive(path), parts)
  const again = restore(await openArchive(path), parts)
  expect(again).rejects.toMatchObject({ name: "TargetInUse" })
  await again.catch(() => {})
  await using store = disposable(await place.open())
  expect(await store.read.select().from(apiKeys)).toHaveLength(1)
})

if (engine === "postgres") {
  test("of two restores into one database at once, the later one changes nothing", async () => {
    await using box = await original()
    await box.send()
    const path = await box.archive()
    await using place = await target(folder)
    const begin = async (data_dir: string) =>
      restore(await openArchive(path), partsFor({ ...place.settings, data_dir }, box.secrets))
    const { data_dir } = place.settings
    const ends = await Promise.allSettled([begin(data_dir), begin(`${data_dir}-later`)])
    const later = ends.find(({ status }) => status === "rejected")
    expect(ends.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"])
    expect(later).toMatchObject({ reason: { name: "TargetInUse" } })
    await using store = disposable(await place.open())
    expect(await store.read.select().from(messages)).toHaveLength(1)
  })
}

test("an archive that is damaged leaves no database, and what is left does not hinder the next", async () => {
  await using box = await original()
  await box.send()
  const path = await box.archive()
  const bytes = readFileSync(path)
  bytes[40_000] = (bytes[40_000] ?? 0) ^ 1
  const damaged = join(folder, "damaged.tar")
  writeFileSync(damaged, bytes)
  await using place = await target(folder)
  const { settings } = place
  mkdirSync(join(settings.data_dir, "restoring", "old"), { recursive: true })
  const parts = partsFor(settings, box.secrets)
  const broken = restore(await openArchive(damaged), parts)
  expect(broken).rejects.toMatchObject({ name: "ArchiveError", fault: "damaged" })
  await broken.catch(() => {})
  expect(existsSync(join(settings.data_dir, "restoring"))).toBe(false)
  expect(existsSync(sqlitePath(settings))).toBe(false)
  const given_up = { signal: AbortSignal.abort(new Error("given up")) }
  const ended = restore(await openArchive(path), parts, given_up)
  expect(ended).rejects.toThrow("given up")
  await ended.catch(() => {})
  expect((await restore(await openArchive(path), parts)).held.messages).toBe(1)
})

test("an archive whose database is not what it tells is refused before a table or a file is made", async () => {
  await using box = await original()
  const archive = await openArchive(await box.archive())
  const unpacked = join(folder, "unpacked")
  await archive.extract({ folder: unpacked })
  const { format: _, entries, blobs, inbound_blobs, ...manifest } = archive.manifest
  const database = join(unpacked, "database.db")
  writeFileSync(database, "")
  const emptied = join(folder, "emptied.tar")
  await writeArchive(emptied, { database, blobs: [], config: {}, manifest })
  await using place = await target(folder)
  const parts = partsFor(place.settings, box.secrets, { master_key: "x" })
  const refused = await restore(await openArchive(emptied), parts).catch((error) => error)
  expect(refused.message).toMatch(/has 0 rows in 0 tables, but its manifest says \d+ rows/)
  const { data_dir } = place.settings
  const left = readdirSync(data_dir).filter((name) => !/^belfry\.db\.(lock|pid)$/.test(name))
  expect(left).toEqual([])
  await restore(archive, partsFor(place.settings, box.secrets))
})

test("one that is interrupted at any step leaves no data, and the next one works", async () => {
  await using box = await original()
  const content = Buffer.from("an attachment").toString("base64")
  await box.send({ attachments: [{ filename: "a.txt", content }] })
  const path = await box.archive()
  const master_key = readFileSync(join(box.service.folder, "master.key"), "utf8").trim()
  await using place = await target(folder)
  const { settings } = place
  const parts = partsFor(settings, box.secrets, { master_key })
  const steps = ["extracting", "holding", ...(engine === "postgres" ? ["copying"] : [])]
  for (const at of steps) {
    const stop = new AbortController()
    const onProgress = ({ step }: { step: string }) => step === at && stop.abort(new Error(at))
    const ended = restore(await openArchive(path), parts, { onProgress, signal: stop.signal })
    expect(ended).rejects.toThrow(at)
    await ended.catch(() => {})
    const left = readdirSync(settings.data_dir, { recursive: true }).map(String)
    expect(left.filter((name) => !/^belfry\.db\.(lock|pid)$|^blobs$/.test(name))).toEqual([])
  }
  expect((await restore(await openArchive(path), parts)).held.messages).toBe(1)
})

test("a schema of a later version is refused before anything is written", async () => {
  await using box = await original()
  const archive = await openArchive(await box.archive())
  archive.manifest.migrations.push("9999_of_tomorrow")
  await using place = await target(folder)
  const refused = restore(archive, partsFor(place.settings, box.secrets))
  expect(refused).rejects.toThrow('has the migration "9999_of_tomorrow"')
  await refused.catch(() => {})
  expect(existsSync(place.settings.data_dir)).toBe(false)
})

if (engine === "sqlite") {
  test("a database with a place of its own is unpacked beside it, so on the same disk", async () => {
    await using box = await original()
    const archive = await openArchive(await box.archive())
    await using place = await target(folder)
    const path = join(folder, "elsewhere", "own.db")
    const settings = { ...place.settings, "storage.sqlite.path": path }
    const unpacked = join(folder, "elsewhere", "restoring", "database.db")
    let was_beside = false
    const onProgress = () => {
      was_beside ||= existsSync(unpacked)
    }
    await restore(archive, partsFor(settings, box.secrets), { onProgress })
    expect(was_beside).toBe(true)
    expect(readdirSync(join(folder, "elsewhere")).filter((name) => name === "restoring")).toEqual(
      [],
    )
    expect(existsSync(path)).toBe(true)
    expect(readdirSync(settings.data_dir)).toContain("restored-manifest.json")
  })

  test("the original is recognized where it is put into the place of its restored copy", async () => {
    await using box = await original()
    const { store, folder: home } = box.service
    await raiseMark(store, home)
    const archive = await openArchive(await box.archive())
    await using place = await target(folder)
    const { data_dir } = place.settings
    await restore(archive, partsFor(place.settings, box.secrets))
    await using restored = disposable(await place.open())
    expect(await whyPutBack(restored, data_dir)).toBeUndefined()
    for (let at = 0; at < 3; at++) await raiseMark(store, home)
    expect(await whyPutBack(store, data_dir)).toContain("comes from another folder")
  })

  test("a log without its database is not written over", async () => {
    await using box = await original()
    const archive = await openArchive(await box.archive())
    await using place = await target(folder)
    mkdirSync(place.settings.data_dir)
    writeFileSync(`${sqlitePath(place.settings)}-wal`, "pages")
    const refused = restore(archive, partsFor(place.settings, box.secrets))
    expect(refused).rejects.toThrow("-wal exists")
  })
}

const disposable = <Closable extends { close(): Promise<void> }>(one: Closable) =>
  Object.assign(one, { [Symbol.asyncDispose]: () => one.close() })

test("a restore into a folder where another process begins a database meanwhile is refused", async () => {
  await using box = await original()
  const path = await box.archive()
  await using place = await target(folder, "sqlite")
  const { settings } = place
  const archive = await openArchive(path)
  const begins = () => {
    mkdirSync(settings.data_dir, { recursive: true })
    copyFileSync(join(box.service.folder, "test.db"), sqlitePath(settings))
    return archive.size // it is asked for after the look for a database, and before the lock
  }
  const late = Object.create(archive, { size: { get: begins } })
  const refused = restore(late, partsFor(settings, box.secrets))
  await expect(refused).rejects.toMatchObject({ name: "TargetInUse" })
  expect(existsSync(join(settings.data_dir, "restoring"))).toBe(false)
})

test("a copy whose last changes are only in its log is no restored database", async () => {
  await using box = await original()
  await box.send()
  const archive = await openArchive(await box.archive())
  await using place = await target(folder, "sqlite")
  const { settings } = place
  let reader: Database | undefined
  const onProgress = ({ step }: { step: string }) => {
    if (step !== "holding" || reader) return
    reader = new Database(join(settings.data_dir, "restoring/database.db"), { readonly: true })
    reader.run("BEGIN")
    reader.query("SELECT count(*) FROM messages").get() // the log cannot be emptied from here on
  }
  const refused = restore(archive, partsFor(settings, box.secrets), { onProgress })
  const message = await refused.then(
    () => "restored",
    (error: Error) => error.message,
  )
  reader?.close()
  expect([reader === undefined, message]).toEqual([
    false,
    expect.stringContaining("could not be written whole"),
  ])
  expect(existsSync(sqlitePath(settings))).toBe(false)
})
