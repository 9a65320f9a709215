import { existsSync, mkdirSync, renameSync, rmdirSync } from "node:fs"
import { dirname, join } from "node:path"

const LOOK_MS = 50

/** The folder of the run of the test command; undefined in a plain `bun test`. */
const folder = process.env.BELFRY_TEST_NOTES && dirname(process.env.BELFRY_TEST_NOTES)

/**
 * The path of a file or a folder that all processes of one test run share: the first that needs it makes it
 * with `make`, which gets the path of a draft, and the others wait for it. Undefined in a plain `bun test`.
 */
export async function keptForRun(
  name: string,
  make: (draft: string) => Promise<void>,
): Promise<string | undefined> {
  if (!folder) return undefined
  const path = join(folder, name)
  const turn = `${path}.turn`
  while (!existsSync(path)) {
    if (!taken(turn)) {
      await Bun.sleep(LOOK_MS)
      continue
    }
    try {
      if (existsSync(path)) break // made between the two looks
      const draft = `${path}.draft`
      await make(draft)
      renameSync(draft, path)
    } finally {
      rmdirSync(turn)
    }
  }
  return path
}

/** Whether it is the turn of this process. Another one has it until its folder is gone. */
function taken(turn: string): boolean {
  try {
    mkdirSync(turn)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
    return false
  }
}
