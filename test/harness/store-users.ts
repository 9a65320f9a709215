import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/** Who comes to one of these may open a store, on the engine of its process. */
const OPENERS = /^(test\/harness\/(store|postgres)|src\/store\/(open|postgres))\.ts$/

/** What is imported, and programs that are started by their name. */
const NAMES = /"(\.{1,2}\/[\w./-]+|[\w./-]+\.ts)"/g

/**
 * Whether a test file comes to a store, through whatever it imports or starts below `test/`. `src` is not
 * looked through: a test that opens no store gives none to what it tests.
 */
export function opensStore(root: string) {
  const known = new Map<string, string[]>()
  const namedIn = (path: string): string[] => {
    const found = known.get(path) ?? namesOf(root, path)
    known.set(path, found)
    return found
  }
  return (file: string): boolean => {
    const seen = new Set<string>()
    const open = [file]
    for (let path = open.pop(); path !== undefined; path = open.pop()) {
      if (OPENERS.test(path)) return true
      if (seen.has(path) || !path.startsWith("test/")) continue
      seen.add(path)
      open.push(...namedIn(path))
    }
    return false
  }
}

/** The files of ours that a text names, beside itself or from the root. */
function namesOf(root: string, path: string): string[] {
  const folder = dirname(join(root, path))
  const texts = readFileSync(join(root, path), "utf8").matchAll(NAMES)
  return [...texts].flatMap(([, name = ""]) => {
    const targets = [join(folder, name), join(root, name)]
    const files = targets.flatMap((target) => ["", ".ts", ".tsx"].map((end) => `${target}${end}`))
    const found = files.find(isSource)
    return found === undefined ? [] : relative(root, found)
  })
}

const isSource = (path: string) => /\.tsx?$/.test(path) && existsSync(path)
