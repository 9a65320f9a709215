import { Database } from "bun:sqlite"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type ArchiveContent, writeArchive } from "../../../src/operations/backup/pack-task"
import type { BlobFolder } from "../../../src/store/named-blobs"

export const sha256 = (text: string | Uint8Array) =>
  new Bun.CryptoHasher("sha256").update(text).digest("hex")

/** What an archive is made of: a small database and some blobs, in files of the folder. */
export function contentIn(folder: string, texts: Partial<Record<BlobFolder, string[]>> = {}) {
  const database = join(folder, "copied.db")
  const file = new Database(database, { create: true })
  file.run("CREATE TABLE birds (id INTEGER PRIMARY KEY, name TEXT)")
  for (const name of ["owl", "kite", "wren"])
    file.run("INSERT INTO birds (name) VALUES (?)", [name])
  file.close()
  const blobs = (["blobs", "inbound-blobs"] as const).flatMap((kind) =>
    (texts[kind] ?? [])
      .map((text) => ({ text, folder: kind, sha256: sha256(text) }))
      .sort((one, other) => (one.sha256 < other.sha256 ? -1 : 1))
      .map(({ text, ...blob }) => {
        const path = join(folder, "stored", kind, blob.sha256)
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
        return { ...blob, path }
      }),
  )
  const content: ArchiveContent = {
    database,
    blobs,
    config: { "log.level": "info" },
    manifest: {
      id: "019ab000-0000-7000-8000-000000000001",
      version: "0.1.0",
      created_at: "2026-11-23T02:00:00.000Z",
      engine: "sqlite",
      migrations: ["0000_initial_schema"],
      master_key_id: "0a1b2c3d",
      rows: { birds: 3 },
    },
  }
  return content
}

/** An archive of that content, with a name that is new in the folder. */
export async function archiveIn(folder: string, content = contentIn(folder)): Promise<string> {
  const path = join(folder, `${Bun.randomUUIDv7()}.tar`)
  await writeArchive(path, content)
  return path
}
