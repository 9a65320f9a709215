import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { IdKindName } from "./id-kinds"
import { cacheFolder, type Environment, originOf } from "./settings"

const MOST_IDS = 1000

/** By server and kind: the ids of the last table. */
type Listed = Record<string, Partial<Record<IdKindName, string[]>>>

const pathIn = (environment: Environment) => join(cacheFolder(environment), "listed.json")

/** Remembers which ids a table showed by their endings. A folder that takes no file is no reason to fail. */
export function rememberListed(
  environment: Environment,
  url: string,
  kind: IdKindName,
  ids: readonly string[],
): void {
  try {
    const path = pathIn(environment)
    const all = readAll(path)
    const here = { ...all[originOf(url)], [kind]: ids.slice(0, MOST_IDS) }
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${process.pid}.new`
    writeFileSync(draft, JSON.stringify({ ...all, [originOf(url)]: here }), { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    // The newest of the server are looked through then.
  }
}

/** The ids of the last table of a kind; none where nothing is remembered. */
export function lastListed(environment: Environment, url: string, kind: IdKindName): string[] {
  try {
    return readAll(pathIn(environment))[originOf(url)]?.[kind] ?? []
  } catch {
    return []
  }
}

function readAll(path: string): Listed {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Listed
  } catch {
    return {}
  }
}
