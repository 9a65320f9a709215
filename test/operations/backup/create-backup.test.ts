import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { newId } from "../../../src/core/ids"
import { openSecrets } from "../../../src/core/secrets"
import { inboundFiles } from "../../../src/inbound/tables"
import { messageFiles } from "../../../src/messages/tables"
import { openArchive } from "../../../src/operations/backup/archive-reader"
import {
  type Backup,
  BackupRunning,
  listBackups,
} from "../../../src/operations/backup/backup-folder"
import {
  BackupFailed,
  type BackupProgress,
  createBackup,
} from "../../../src/operations/backup/create-backup"
import * as instanceValues from "../../../src/store/instance-values"
import { movableClock } from "../../harness/clock"
import { addProject } from "../../harness/project-rows"
import { quietLog } from "../../harness/quiet"
import { engine } from "../../harness/store"
import { instance } from "./instance"

const clock = movableClock()
const lines = quietLog()

test("a backup holds the rows, and the files that rows name", async () => {
  await using it = await instance()
  const { project_id } = await addProject(it.store)
  const named = await it.blobs.put(Buffer.from("attached"))
  const received = await it.inbound_blobs.put(Buffer.from("received"))
  await it.blobs.put(Buffer.from("of nobody"))
  await it.store.tx(async (tx) => {
    await tx.insert(messageFiles).values({ message_id: newId(), sha256: named.sha256 })
    await tx.insert(inboundFiles).values({ inbound_id: newId(), sha256: received.sha256 })
  })
  const backup = await createBackup(it)
  expect(await listBackups(it.settings)).toEqual([backup])
  expect(backup).toMatchObject({ verified: true, size: statSync(backup.path).size })
  expect(statSync(backup.path).mode & 0o777).toBe(0o600)
  expect(statSync(it.dir).mode & 0o777).toBe(0o700)
  const archive = await openArchive(backup.path)
  expect(archive.manifest).toMatchObject({
    id: backup.id,
    engine,
    created_at: backup.created_at,
    master_key_id: it.secrets.key_id,
    rows: { projects: 1, message_files: 1, instance_values: 2 },
    blobs: { count: 1, bytes: 8, missing: 0 },
    inbound_blobs: { count: 1, bytes: 8, missing: 0 },
  })
  const out = join(it.folder, "out")
  await archive.extract({ folder: out })
  using copied = new Database(join(out, "database.db"), { readonly: true })
  const [project] = copied.query("SELECT hex(id) FROM projects").values()
  expect(project).toEqual([project_id.replaceAll("-", "").toUpperCase()])
  expect(copied.query("PRAGMA auto_vacuum").values()).toEqual([[2]])
  expect(readFileSync(it.blobs.path(named.sha256))).toEqual(
    readFileSync(join(out, "blobs", named.sha256.slice(0, 2), named.sha256)),
  )
})

test("nothing unfinished stays in the folder, and what a crash left goes", async () => {
  await using it = await instance()
  const first = await createBackup(it)
  const kinds = ["db.draft", "tar.draft", "db.draft-journal"]
  for (const kind of kinds) writeFileSync(join(it.dir, `${newId()}.${kind}`), "left")
  const scratch = join(it.dir, "belfry-verify-a1B2c3")
  mkdirSync(scratch)
  utimesSync(scratch, 1, 1)
  const second = await createBackup(it)
  const archives = readdirSync(it.dir).filter((name) => !name.startsWith("backup."))
  expect(archives.sort()).toEqual(
    [first, second].map(({ path }) => path.slice(it.dir.length + 1)).sort(),
  )
})

test("a folder that fails behind the backup does not fail it, and the next one can be made", async () => {
  await using it = await instance()
  const away = `${it.dir}-away`
  const onProgress = () => {
    if (!readdirSync(it.dir).some((name) => name.endsWith(".tar"))) return
    renameSync(it.dir, away)
    writeFileSync(it.dir, "no folder")
  }
  const made = await createBackup(it, { onProgress })
  rmSync(it.dir)
  renameSync(away, it.dir)
  expect(await listBackups(it.settings)).toEqual([made])
  const told = lines().join()
  for (const stays of ["old backups stay", "the draft of a backup stays"])
    expect(told).toContain(stays)
  const next = await createBackup(it)
  expect((await listBackups(it.settings)).map(({ id }) => id)).toEqual([next.id, made.id])
})

test("what the operator keeps in the same folder stays", async () => {
  await using it = await instance()
  mkdirSync(it.dir, { mode: 0o700 })
  const others = ["letter.draft", "verify-2025", "belfry-verify-2025-results"]
  for (const name of others) {
    mkdirSync(join(it.dir, name))
    utimesSync(join(it.dir, name), 1, 1)
  }
  await createBackup(it)
  expect(readdirSync(it.dir)).toEqual(expect.arrayContaining(others))
})

test("the master key and the passwords of the settings are in no archive", async () => {
  const planted = "hunter2-hunter2"
  await using it = await instance({ "providers.smtp.password": planted })
  const { path } = await createBackup(it)
  const bytes = readFileSync(path)
  const key = readFileSync(join(it.folder, "master.key"), "utf8").trim()
  for (const secret of [planted, key, "secret\0"]) expect(bytes.includes(secret)).toBe(false)
  expect(bytes.includes(Buffer.from(key, "base64"))).toBe(false)
})

test("progress rises to the whole", async () => {
  await using it = await instance()
  const heard: BackupProgress[] = []
  const backup = await createBackup(it, { onProgress: (progress) => heard.push(progress) })
  const last = heard.at(-1)
  expect(last).toMatchObject({ step: "packing", done: last?.total })
  const bytes = backup.size - (last?.done ?? 0) / 2 // the database is copied, then packed
  expect(bytes).toBeLessThan(16 * 1024)
})

test("only the newest are kept, and one that is not whole does not count", async () => {
  await using it = await instance({ "backup.keep": 2 })
  const made: Backup[] = []
  for (let number = 0; number < 3; number++) made.push(await createBackup(it))
  const kept = (await listBackups(it.settings)).map(({ id }) => id)
  expect(kept).toEqual(
    made
      .slice(1)
      .map(({ id }) => id)
      .reverse(),
  )
  writeFileSync(made[2]?.path ?? "", "cut")
  const fourth = await createBackup(it)
  const ids = (await listBackups(it.settings)).map(({ id, verified }) => [id, verified])
  expect(ids).toEqual([
    [fourth.id, true],
    [made[2]?.id ?? "", false],
    [made[1]?.id ?? "", true],
  ])
})

test("the newest backup that lacks no file stays, however many later ones lack some", async () => {
  await using it = await instance({ "backup.keep": 2 })
  const { sha256 } = await it.blobs.put(Buffer.from("attached"))
  await it.store.tx((tx) => tx.insert(messageFiles).values({ message_id: newId(), sha256 }))
  const make = async () => (await createBackup(it)).id
  const listed = async () =>
    (await listBackups(it.settings)).map(({ id, missing }) => [id, missing])
  await make()
  const whole = await make()
  const path = it.blobs.path(sha256)
  renameSync(path, `${path}.away`)
  for (let number = 0; number < 2; number++) await make()
  const [third, fourth] = [await make(), await make()]
  expect(await listed()).toEqual([
    [fourth, 1],
    [third, 1],
    [whole, 0],
  ])
  expect(lines().join()).toContain(sha256)
  renameSync(`${path}.away`, path)
  const last = await make()
  expect(await listed()).toEqual([
    [last, 0],
    [fourth, 1],
  ])
})

test("the one that was just made stays, also where the clock was set back", async () => {
  await using it = await instance({ "backup.keep": 1 })
  clock.advance({ seconds: 86_400 })
  const ahead = await createBackup(it)
  clock.advance({ seconds: -86_400 })
  const made = await createBackup(it)
  expect((await listBackups(it.settings)).map(({ id }) => id)).toEqual([ahead.id, made.id])
})

const NOBODY = 65_534

/** Root may read every file, so the work is done as a user that may not. */
async function asNobody<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  if (process.getuid?.() !== 0) return work()
  for (let at = path; at.includes("belfry-"); at = dirname(at)) chownSync(at, NOBODY, NOBODY)
  process.seteuid?.(NOBODY)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
  }
}

test("one that another user made hides no other, and hinders none", async () => {
  await using it = await instance()
  const foreign = await createBackup(it)
  chmodSync(foreign.path, 0o000)
  const own = await createBackup(it)
  utimesSync(foreign.path, 1, 1) // what was read of it counts no more
  const ids = async () => (await listBackups(it.settings)).map(({ id, verified }) => [id, verified])
  expect(await asNobody(own.path, ids)).toEqual([
    [own.id, true],
    [foreign.id, false],
  ])
  chmodSync(foreign.path, 0o600)
  expect((await ids())[1]).toEqual([foreign.id, true])
})

test("two at once are refused, and the first goes on", async () => {
  await using it = await instance()
  const [first, second] = await Promise.allSettled([createBackup(it), createBackup(it)])
  expect(first.status).toBe("fulfilled")
  expect(second).toMatchObject({ status: "rejected", reason: expect.any(BackupRunning) })
  await createBackup(it)
})

test("a backup that is told to end leaves nothing", async () => {
  await using it = await instance()
  const given_up = createBackup(it, { signal: AbortSignal.abort(new Error("given up")) })
  expect(given_up).rejects.toThrow("given up")
  await given_up.catch(() => {})
  expect(await listBackups(it.settings)).toEqual([])
})

test("too little space is told before anything is written", async () => {
  await using it = await instance({ "storage.min_free_mb": 9_000_000 })
  const refused = createBackup(it)
  expect(refused).rejects.toThrow(BackupFailed)
  expect(refused).rejects.toThrow("set backup.dir to a folder on another disk")
  await refused.catch(() => {})
  expect(readdirSync(it.dir).filter((name) => !name.startsWith("backup."))).toEqual([])
})

test("another master key, or a secret that it does not open, makes no backup", async () => {
  await using it = await instance()
  await it.store.tx((tx) =>
    instanceValues.set(tx, "something", it.secrets.seal("secret", "something else")),
  )
  const changed = createBackup(it)
  expect(changed).rejects.toThrow("An encrypted value was changed")
  await changed.catch(() => {})
  rmSync(join(it.folder, "master.key"))
  const secrets = openSecrets({ data_dir: it.folder, master_key: null })
  expect(createBackup({ ...it, secrets })).rejects.toThrow(
    `has secrets of the master key ${it.secrets.key_id}, but the key here is ${secrets.key_id}`,
  )
})
