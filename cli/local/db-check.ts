import { join } from "node:path"
import type { Loaded, Settings } from "../../src/core/config"
import type { DatabaseFinding } from "../../src/operations/check-database"
import type { Action, Context } from "../lib/context"
import { exits, Failure, usage } from "../lib/errors"
import { type Columns, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { dataSettings, type LocalOptions, sameData } from "./settings"
import { startFailure } from "./start-errors"

/**
 * Checks the database and the files beside it, and changes nothing. A server may run meanwhile. Exit 0 when
 * everything is right, 8 when only files are left over, 1 when a rule is broken, and 74 when the file is
 * damaged.
 */
export const check: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const loaded = dataSettings(context.flags, options, "error")
  const { output } = context
  try {
    const findings = await checked(loaded, context)
    output.passing("")
    await output.list(findings, columnsOf(context.paint))
    await notifyExamples(context, findings)
    const exit = exitOf(findings)
    if (exit === exits.storage) await output.next(`belfry backup verify${sameData(options)}`)
    return exit
  } catch (error) {
    output.passing("")
    throw startFailure(error, loaded.values)
  }
}

type FindingRow = DatabaseFinding & Record<string, unknown>

const columnsOf = (paint: Paint): Columns<FindingRow> => ({
  "": ({ outcome }) => MARKS[outcome](paint),
  CHECK: "check",
  FOUND: ({ found }) => String(found),
  DETAIL: wide(({ detail }) => detail),
})

const MARKS: Record<DatabaseFinding["outcome"], (paint: Paint) => string> = {
  pass: (paint) => paint.green("✓"),
  warn: (paint) => paint.yellow("!"),
  fail: (paint) => paint.red("✗"),
  skip: (paint) => paint.dim("·"),
}

async function notifyExamples({ output, paint }: Context, findings: FindingRow[]) {
  if (output.form !== "human") return
  for (const { check: name, examples } of findings) {
    for (const text of examples) await output.raw(`${paint.dim(name)}  ${text}\n`)
  }
}

function exitOf(findings: DatabaseFinding[]): number {
  const failed = findings.filter(({ outcome }) => outcome === "fail")
  if (failed.some(({ check: name }) => name === "integrity")) return exits.storage
  if (failed.length > 0) return exits.failed
  return findings.some(({ outcome }) => outcome === "warn") ? exits.partly_failed : exits.done
}

async function checked({ values }: Loaded, context: Context): Promise<FindingRow[]> {
  const { output } = context
  const { readDatabase } = await import("../../src/store/open")
  const { checkDatabase, integrityOf } = await import("../../src/operations/check-database")
  const { blobsIn } = await import("../../src/core/blobs")
  const integrity = integrityOf(await faultsOf(values, context))
  const findings: FindingRow[] = [{ ...integrity }]
  if (integrity.outcome === "fail") return findings
  await requireSchema(values)
  const folder = values["storage.blobs.dir"] ?? join(values.data_dir, "blobs")
  await readDatabase(values, async (db) => {
    const parts = {
      db,
      blobs: blobsIn(folder),
      inbound_blobs: blobsIn(join(folder, "inbound")),
      onProgress: (text: string) => output.passing(`checking: ${text}`),
    }
    for await (const finding of checkDatabase(parts)) findings.push({ ...finding })
  })
  return findings
}

/** What SQLite finds wrong with its file; undefined on Postgres. A thread does it, so that Ctrl-C works. */
async function faultsOf(settings: Settings, { output }: Context): Promise<string[] | undefined> {
  if (settings.database_url) return undefined
  const { sqlitePath } = await import("../../src/store/open")
  const { inspectFile, nothingIn } = await import("../../src/store/database-file")
  const path = sqlitePath(settings)
  if (inspectFile(path) !== "there") throw nothingIn(settings.data_dir)
  const { openWorkers } = await import("../../src/core/workers")
  const { faultsIn } = await import("../../src/store/file-check")
  const workers = openWorkers({ size: 1 })
  output.passing("checking: every page and index of the file")
  try {
    return await faultsIn(workers, { path, how: "full", readonly: true })
  } finally {
    await workers.close()
  }
}

/** Throws Failure for an older schema, because its rows would be misread. */
export async function requireSchema(settings: Settings): Promise<void> {
  const { pendingMigrations } = await import("../../src/store/open")
  const [first] = await pendingMigrations(settings)
  if (first === undefined) return
  const message = `The database has an older schema: the migration "${first}" is missing.`
  throw new Failure(exits.conflict, "conflict", message, { hint: "run `belfry migrate` first" })
}
