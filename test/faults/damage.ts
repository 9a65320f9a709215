import { Database } from "bun:sqlite"
import { closeSync, cpSync, openSync, readFileSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { reaches, send } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const PAGE_BYTES = 4096
const SEEDED_ROWS = 3000
/** Some values are longer than a page, so that their rest lies in overflow pages. */
const textOf = (number: number) => "value ".repeat(number % 50 === 0 ? 2000 : 20)

/** A home in which a server worked and has stopped; `ids` are of the emails it delivered. */
export async function workedHome() {
  const home = makeHome()
  const ids: string[] = []
  {
    await using server = await startBelfry({ home, env: lean })
    for (let number = 0; number < 3; number++) {
      ids.push(await send(server, { text: `${number} `.repeat(8000) }))
      await reaches(server, ids.at(-1) ?? "", "delivered")
    }
  }
  seed(join(home, "belfry", "belfry.db"))
  return {
    home,
    ids,
    /** Another home with the same data, which may be damaged. */
    copy: () => copyOf(home),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}

/** So many rows that tables and indexes have pages of every kind, and the file free ones. */
function seed(path: string) {
  using database = new Database(path)
  const insert = database.prepare("INSERT INTO instance_values (name, value) VALUES (?, ?)")
  database.transaction(() => {
    for (let number = 0; number < SEEDED_ROWS; number++) {
      insert.run(`seeded ${number} ${"name ".repeat(20)}`, textOf(number))
    }
  })()
  database.run("DELETE FROM instance_values WHERE name LIKE 'seeded 1%'")
  database.run("PRAGMA wal_checkpoint(TRUNCATE)")
}

function copyOf(worked: string) {
  const home = makeHome()
  cpSync(join(worked, "belfry"), join(home, "belfry"), { recursive: true })
  return {
    home,
    folder: join(home, "belfry"),
    path: join(home, "belfry", "belfry.db"),
    /** A start that must fail, with its error. */
    async refused(...more: string[]) {
      const words = ["up", "--json", "--port", "0", "--data-dir", join(home, "belfry"), ...more]
      const { code, stdout, stderr } = await runBinary(words, { home, env: lean })
      const { error } = JSON.parse(stderr.trim().split("\n").at(-1) ?? "{}")
      return { code, stdout, message: String(error.message), error_code: String(error.code) }
    },
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}

export type PageKind = "leaf" | "internal" | "overflow"

/** Numbers of the pages of a table or index, in the order of the file; never page 1. */
export function pagesOf(path: string, name: string, kind: PageKind): number[] {
  using database = new Database(path, { readonly: true })
  const rows = database
    .query("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? AND pageno > 1 ORDER BY 1")
    .values(name, kind)
  return rows.map(([page]) => Number(page))
}

/** The first page of the list of free pages (SQLite file format, 1.5). */
export const freeListPage = (path: string): number => readFileSync(path).readUInt32BE(32)

/** Overwrites whole pages with bytes that belong to no page. */
export function overwrite(path: string, pages: number[]): void {
  const file = openSync(path, "r+")
  try {
    const bytes = Buffer.alloc(PAGE_BYTES, 0xa5)
    for (const page of pages) writeSync(file, bytes, 0, PAGE_BYTES, (page - 1) * PAGE_BYTES)
  } finally {
    closeSync(file)
  }
}

/** To more than what is checked before the server serves. */
export function grow(path: string): void {
  using database = new Database(path)
  const insert = database.prepare("INSERT INTO instance_values (name, value) VALUES (?, ?)")
  database.transaction(() => {
    for (let number = 0; number < 1500; number++) {
      insert.run(`grown ${number}`, "value ".repeat(1500))
    }
  })()
  database.run("PRAGMA wal_checkpoint(TRUNCATE)")
}
