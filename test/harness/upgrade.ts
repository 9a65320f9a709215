import { join } from "node:path"
import { Glob } from "bun"
import { type Engine, root } from "./migrations"

/** What seals the secrets in the databases of earlier versions. It is the key of nothing else. */
export const FIXTURE_KEY = Buffer.alloc(32, "belfry upgrade fixture").toString("base64")

export const FIXTURES = join(root, "test/fixtures/upgrade")

/** The databases of earlier versions that are kept as SQL, by the last migration that each had. */
export const fixturesOf = (engine: Engine): { tag: string; path: string }[] =>
  [...new Glob(`*.${engine}.sql`).scanSync(FIXTURES)]
    .sort()
    .map((name) => ({ tag: name.split(".", 1)[0] ?? "", path: join(FIXTURES, name) }))

/** The statements of such a file. */
export const statementsOf = async (path: string): Promise<string[]> =>
  (await Bun.file(path).text()).split("--> statement-breakpoint\n").filter((one) => one.trim())

/** What a command said beside the warning that files are gone: those of the fixtures are not kept. */
export const besidesGoneFiles = (stderr: string): string[] =>
  stderr.split("\n").filter((line) => line && !/lacks files that are (?:gone|missing)/.test(line))

/**
 * The numbers of rows that an upgrade keeps. Migrations may add counters; the heads of consents went, and with them
 * the value of the instance that told where they ended.
 */
export function keptRows(rows: Record<string, number>): Record<string, number> {
  const { counters: _, consent_heads: heads, instance_values: values = 0, ...others } = rows
  return { ...others, instance_values: heads === undefined ? values : values - 1 }
}
