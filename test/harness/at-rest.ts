import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { SQL } from "bun"
import type { TestStore } from "./store"

type Kept = Pick<TestStore, "folder" | "database_url">

/** All that a thief of the disk reads: every file of the folder, every row of every table. */
export async function atRest({ folder, database_url }: Kept): Promise<string> {
  const files = filesIn(folder).map((path) => readFileSync(path).toString("latin1"))
  const rows = database_url ? await rowsOf(database_url) : []
  return [...files, ...rows].join("\n")
}

/** Every file below a folder. */
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))

async function rowsOf(url: string): Promise<string[]> {
  await using sql = new SQL(url, { max: 1 })
  const tables = await sql`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
  const found: string[] = []
  for (const { tablename } of tables as { tablename: string }[]) {
    for (const row of await sql`SELECT * FROM ${sql(tablename)}`) found.push(written(row))
  }
  return found
}

const written = (row: Record<string, unknown>): string =>
  Object.values(row)
    .map((value) =>
      ArrayBuffer.isView(value)
        ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("latin1")
        : typeof value === "string"
          ? value
          : JSON.stringify(value),
    )
    .join(" ")
