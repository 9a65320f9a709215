import { closeSync, openSync, statSync } from "node:fs"
import { dirname, resolve } from "node:path"
import {
  type Loaded,
  loadSettings,
  type Settings,
  type Sources,
  useSettings,
} from "../../src/core/config"
import type { BeginMode } from "../../src/store/database-file"
import { exits, Failure, usage } from "../lib/errors"
import type { GlobalFlags } from "../lib/flags"
import { optionWords } from "../lib/flags"
import { unreadable } from "../lib/input"

/** What local commands take of their settings from the command line. */
export interface LocalOptions {
  dataDir?: string
  listen?: string
  set?: string[]
}

/** Of commands that begin a database where there is none. */
export interface BeginOptions extends LocalOptions {
  new?: boolean
}

export const begins = (options: Pick<BeginOptions, "new">): BeginMode =>
  options.new ? "anew" : "if_new"

/** The same options for another command, as they would be typed: it then finds the same data. */
export const sameData = ({ dataDir, set }: LocalOptions): string =>
  optionWords({ "data-dir": dataDir, set })

/**
 * Settings of a server on this machine, with the environment of this process or a given one. Throws one
 * failure with all faults, exit 2.
 */
export function localSettings(
  flags: Pick<GlobalFlags, "config">,
  options: LocalOptions,
  defaults: Partial<Settings> = {},
  environment?: Sources["environment"],
): Loaded {
  const given: Record<string, string | undefined> = {
    ...Object.fromEntries((options.set ?? []).map(pair)),
    ...(options.listen === undefined ? {} : { "http.listen": options.listen }),
    ...(options.dataDir === undefined ? {} : { data_dir: resolve(options.dataDir) }),
  }
  requireFile(flags.config)
  try {
    // An unknown name in --set is found there, together with every other fault.
    const named = given as NonNullable<Sources["flags"]>
    return loadSettings({ flags: named, file: flags.config, defaults, environment })
  } catch (error) {
    throw explained(error)
  }
}

/** Settings of a command that opens the data itself: what it prints is its result, so the log has only trouble. */
export function dataSettings(
  flags: Pick<GlobalFlags, "config">,
  options: LocalOptions,
  level: Settings["log.level"] = "warn",
): Loaded {
  const loaded = localSettings(flags, options, { "log.level": level })
  requireFolders(loaded)
  useSettings(loaded) // before any module with tables is loaded
  return loaded
}

const FOLDERS = ["data_dir", "storage.blobs.dir", "backup.dir"] as const

/** Throws exit 74 where a setting names a file, or a path below a file, instead of a folder. */
export function requireFolders({ values, explain }: Loaded): void {
  for (const key of FOLDERS) {
    const path = values[key]
    const file = path ? fileOnTheWay(resolve(path)) : undefined
    if (file === undefined) continue
    const message = `${key}: ${file} is a file, not a folder.`
    const hint = `name a folder in its place (the path comes from ${explain(key).source})`
    throw new Failure(exits.storage, "storage", message, { details: { path }, hint })
  }
}

function fileOnTheWay(path: string): string | undefined {
  try {
    return statSync(path).isDirectory() ? undefined : path
  } catch {
    const above = dirname(path)
    return above === path ? undefined : fileOnTheWay(above)
  }
}

/** A file that is named and missing is told as such, before anything else. */
function requireFile(path: string | undefined): void {
  if (path === undefined) return
  try {
    closeSync(openSync(path, "r"))
  } catch (error) {
    throw unreadable(error, path, "--config")
  }
}

function pair(text: string): [string, string] {
  const at = text.indexOf("=")
  if (at < 1)
    throw usage(`--set: "${text}" is not key=value`, "`belfry config show` lists the keys")
  return [text.slice(0, at), text.slice(at + 1)]
}

/** A ConfigError as a failure of the command line; anything else as it is. */
export function explained(error: unknown): unknown {
  if (!(error instanceof Error) || error.name !== "ConfigError") return error
  const faults = "faults" in error && Array.isArray(error.faults) ? error.faults : []
  return new Failure(exits.usage, "invalid_configuration", error.message, {
    details: { faults },
    hint: "`belfry config show` lists every setting",
  })
}
