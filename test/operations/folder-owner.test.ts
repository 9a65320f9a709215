import { expect, test } from "bun:test"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import type { Settings } from "../../src/core/config"
import { createBackup } from "../../src/operations/backup/create-backup"
import { claimFolders, FolderOfAnother, INSTANCE_ID } from "../../src/operations/folder-owner"
import * as instanceValues from "../../src/store/instance-values"
import { quietLog } from "../harness/quiet"
import { engine } from "../harness/store"
import { instance } from "./backup/instance"

quietLog()

const FILE = "belfry-instance"

type Instance = Awaited<ReturnType<typeof instance>>

const claimed = ({ store, settings }: Instance, changes: Partial<Settings> = {}) =>
  claimFolders(store, { ...settings, ...changes })

const refusal = async (claiming: Promise<unknown>) => {
  const error = await claiming.catch((one: unknown) => one)
  expect(error).toBeInstanceOf(FolderOfAnother)
  return (error as Error).message
}

const idIn = (dir: string) => readFileSync(join(dir, FILE), "utf8").split("\n")[0]

test.each(["storage.blobs.dir", "backup.dir"] as const)(
  "an instance whose %s is that of another one is refused, until it has gone",
  async (setting) => {
    await using first = await instance()
    const dir = join(first.folder, "shared")
    mkdirSync(dir)
    await using second = await instance()
    const shared = { [setting]: dir }
    await claimed(first, shared)
    await claimed(first, shared)
    const message = await refusal(claimed(second, shared))
    expect(message).toContain(setting)
    expect(message).toContain(`data folder ${first.folder} on `)
    expect(message).toContain(join(dir, FILE))
    expect(existsSync(join(second.folder, FILE))).toBe(false)
    expect(await instanceValues.find(second.store.read, INSTANCE_ID)).toBeUndefined()

    rmSync(join(dir, FILE))
    await claimed(second, shared)
    await refusal(claimed(first, shared))
  },
)

test("a data folder that was moved keeps its instance, and so its folders", async () => {
  await using box = await instance()
  const shared = { "storage.blobs.dir": join(box.folder, "blobs") }
  await claimed(box, shared)
  const data_dir = join(box.folder, "moved")
  mkdirSync(data_dir)
  renameSync(join(box.folder, FILE), join(data_dir, FILE))
  await claimed(box, { ...shared, data_dir })
  expect(idIn(data_dir)).toBe(idIn(join(box.folder, "blobs")))
})

test("a folder that exists after the start is claimed by the first backup into it, and then refused to others", async () => {
  await using first = await instance()
  await using second = await instance({ "backup.dir": first.dir })
  await claimed(first)
  await claimed(second)
  expect(existsSync(first.dir)).toBe(false)
  const { path } = await createBackup(first)
  expect(idIn(first.dir)).toBe(idIn(first.folder))

  const message = await refusal(createBackup(second, { keep: 1 }))
  expect(message).toContain("backup.dir")
  expect(existsSync(path)).toBe(true)
  expect(readdirSync(first.dir).filter((name) => name.includes("draft"))).toEqual([])
})

test("a copy of the database in another data folder is another instance, and a node is not", async () => {
  await using box = await instance()
  const shared = { "storage.blobs.dir": join(box.folder, "blobs") }
  await claimed(box, shared)
  const data_dir = join(box.folder, "node")
  mkdirSync(data_dir)
  const node = claimed(box, { ...shared, data_dir })
  if (engine === "sqlite") await refusal(node)
  else {
    await node
    expect(idIn(data_dir)).toBe(idIn(box.folder))
  }
})

if (engine === "postgres") {
  test("of nodes that start at once on a new database, all have one instance", async () => {
    await using box = await instance()
    const nodes = ["a", "b", "c"].map((name) => join(box.folder, name))
    for (const dir of nodes) mkdirSync(dir)
    const shared = { "storage.blobs.dir": join(box.folder, "blobs") }
    await Promise.all(nodes.map((data_dir) => claimed(box, { ...shared, data_dir })))
    expect(new Set([join(box.folder, "blobs"), ...nodes].map(idIn)).size).toBe(1)
  })
}
