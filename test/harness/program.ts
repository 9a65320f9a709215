import { join, resolve } from "node:path"
import { root } from "./migrations"

const compiled = process.env.BELFRY_TEST_BINARY

/**
 * The words that start Belfry's command line: the compiled binary where a run has built one, which starts in half of
 * the time, else its sources.
 */
export const program: string[] = compiled
  ? [resolve(compiled)]
  : [process.execPath, join(root, "cli/main.ts")]
