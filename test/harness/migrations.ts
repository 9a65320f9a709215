import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join, relative } from "node:path"
import { Glob } from "bun"

export const ENGINES = ["sqlite", "postgres"] as const
export type Engine = (typeof ENGINES)[number]

/** The repository's root, wherever the command was started from. */
export const root = join(import.meta.dir, "../..")

/** The file that carries the migrations into the binary. Written by `bun run generate` only. */
export const EMBEDDED = "src/store/migrations.ts"

export interface Entry {
  idx: number
  tag: string
  when: number
}

/** The journal drizzle-kit keeps beside an engine's migrations; empty before the first one. */
export function journal(engine: Engine): Entry[] {
  const path = join(root, "migrations", engine, "meta/_journal.json")
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).entries : []
}

/** The names of the SQL files in a folder of migrations, in order. */
export function sqlFiles(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort()
}

/** The pictures of the schema that drizzle-kit compares with, in order. It reads only the last of them. */
export function snapshots(engine: Engine): string[] {
  const names = readdirSync(join(root, "migrations", engine, "meta"))
  return names.filter((name) => name.endsWith("_snapshot.json")).sort()
}

export function keepNewestSnapshot(engine: Engine): void {
  for (const name of snapshots(engine).slice(0, -1)) {
    rmSync(join(root, "migrations", engine, "meta", name))
  }
}

/**
 * Lets drizzle-kit compare the tables with the snapshots in the folder `out` and write what is
 * missing there. Resolves to what it printed; throws with its output when it fails.
 *
 * The environment holds nothing but what the run needs: `drizzle.config.ts`
 * chooses the engine by DATABASE_URL, and a developer's own settings must not reach it.
 */
export async function drizzleKit(engine: Engine, out: string, name?: string): Promise<string> {
  const run = Bun.spawn({
    cmd: [
      process.execPath,
      "node_modules/drizzle-kit/bin.cjs",
      "generate",
      ...(name ? ["--name", name] : []),
    ],
    cwd: root,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      // drizzle-kit puts "./" before every path, so it must be a relative one.
      BELFRY_TEST_MIGRATIONS: relative(root, out),
      ...(engine === "postgres" ? { DATABASE_URL: "postgres://127.0.0.1/generate" } : {}),
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
  const output = (await run.stdout.text()) + (await run.stderr.text())
  // It asks about renames on a terminal only; without one it stops, with an error or without a word.
  const answered = /Your SQL migration file|No schema changes/.test(output)
  if ((await run.exited) !== 0 || !answered) throw new Error(output.trim() || "drizzle-kit failed")
  return output.trim()
}

/** The text of `EMBEDDED` that belongs to the journals as they are now. Both engines have the same migrations. */
export function embeddedSource(): string {
  const entries = journal("sqlite")
  const imports = ENGINES.flatMap((engine) =>
    entries.map(({ idx, tag }) => {
      const path = `../../migrations/${engine}/${tag}.sql`
      return `import ${engine}${idx} from "${path}" with { type: "text" }`
    }),
  )
  return [
    "// Written by `bun run generate`; do not edit.",
    ...imports,
    "",
    "/** One step of the schema. */",
    "export interface Migration {",
    "  tag: string",
    "  sql: string",
    "}",
    "",
    "/** Its name, and its statements for each engine. */",
    "const STEPS: [tag: string, sqlite: string, postgres: string][] = [",
    ...entries.map(({ idx, tag }) => `  ["${tag}", sqlite${idx}, postgres${idx}],`),
    "]",
    "",
    "/** The migrations of both engines, oldest first. The binary carries them. */",
    'export const embedded: Record<"sqlite" | "postgres", Migration[]> = {',
    "  sqlite: STEPS.map(([tag, sql]) => ({ tag, sql })),",
    "  postgres: STEPS.map(([tag, , sql]) => ({ tag, sql })),",
    "}",
    "",
  ].join("\n")
}

export const TABLE_FILES = "src/operations/table-files.ts"

/**
 * Names the first table of every `tables.ts`. An import for its effect alone may be read later than its reader in a bundle,
 * and then a table has told no life yet.
 */
export function tableFilesSource(): string {
  const files = [...new Glob("src/**/tables.ts").scanSync(root)].sort().map((path) => {
    const text = readFileSync(join(root, path), "utf8")
    const [, name = ""] = /^export const (\w+) = table\(/m.exec(text) ?? []
    return { name, from: `../${path.slice("src/".length, -".ts".length)}` }
  })
  return [
    "// Written by `bun run generate`: the first table of every file of tables.",
    ...files.map(({ name, from }) => `import { ${name} } from "${from}"`),
    "",
    "export const firstTables = [",
    ...files.map(({ name }) => `  ${name},`),
    "]",
    "",
  ].join("\n")
}
