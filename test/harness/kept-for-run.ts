import { existsSync, renameSync, rmSync } from "node:fs"
import { dirname, join } from "node:path"

/** The folder of the run of the test command; undefined in a plain `bun test`. */
const folder = process.env.BELFRY_TEST_NOTES && dirname(process.env.BELFRY_TEST_NOTES)

/**
 * The path of a file or a folder that all processes of one test run share: the first that needs it makes it
 * with `make`, which gets the path of a draft. Of two at once both make it, and one counts. Undefined in a
 * plain `bun test`.
 */
export async function keptForRun(
  name: string,
  make: (draft: string) => Promise<void>,
): Promise<string | undefined> {
  if (!folder) return undefined
  const path = join(folder, name)
  if (existsSync(path)) return path
  const draft = `${path}.${crypto.randomUUID()}`
  await make(draft)
  try {
    renameSync(draft, path)
  } catch (error) {
    if (!existsSync(path)) throw error // a folder does not take the place of another one
    rmSync(draft, { recursive: true })
  }
  return path
}
