import { readFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { goneNames, type KeyName, keyNames, variableOf } from "./config-keys"

export type Variables = Record<string, string | undefined>

/** One given value and its source. `source` completes "from …". */
export interface Input {
  name: string
  raw: unknown
  source: string
}

/** Names that belong to the command line, the installer and the tests: never a fault. */
const foreign = /^BELFRY_((URL|API_KEY|PROFILE|CONFIG|NO_COLOR)(_FILE)?|(INSTALL|TEST)_.*)$/

/** The settings that have their own flag. `--set` gives every other one. */
const own_flags: Partial<Record<string, string>> = {
  data_dir: "--data-dir",
  "http.listen": "--listen",
}

const allNames = [...keyNames, ...goneNames]

export function fromFlags(flags: Record<string, unknown>): Input[] {
  return Object.entries(flags).flatMap(([name, raw]) => {
    const source = `flag ${own_flags[name] ?? `--set ${name}`}`
    return raw === undefined ? [] : [{ name, raw, source }]
  })
}

/** An empty variable counts as not set: that is how shells and unit files switch one off. */
export function fromEnvironment(environment: Variables): Input[] {
  return allNames.flatMap((name) => {
    const variable = variableOf(name)
    const raw = environment[variable]
    return raw ? [{ name, raw, source: `environment ${variable}` }] : []
  })
}

/** `BELFRY_…_FILE` first, then a file named like the key in the service manager's credentials. */
export function fromFiles(environment: Variables, faults: string[]): Input[] {
  const folder = environment.CREDENTIALS_DIRECTORY
  return allNames.flatMap((name) => {
    const variable = `${variableOf(name)}_FILE`
    const path = environment[variable]
    if (path) {
      const raw = readText(path)
      if (raw !== undefined) return [{ name, raw, source: `file ${path} (${variable})` }]
      faults.push(`${variable}: the file ${path} cannot be read`)
    }
    const raw = folder ? readText(join(folder, name)) : undefined
    return raw === undefined ? [] : [{ name, raw, source: `credential ${name}` }]
  })
}

/** The TOML file with nested tables written as dotted keys. Missing or broken: one fault. */
export function fromToml(path: string, faults: string[]): Input[] {
  const text = readText(path)
  if (text === undefined) {
    faults.push(`the configuration file ${path} cannot be read`)
    return []
  }
  try {
    return flatten(Bun.TOML.parse(text) as object, "", `file ${path}`)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    faults.push(`the configuration file ${path} is not valid TOML: ${reason}`)
    return []
  }
}

/** Variables that look like ours and are not, so that a typing error cannot pass unseen. */
export function unknownVariables(environment: Variables): string[] {
  const known = new Set(allNames.map(variableOf).flatMap((name) => [name, `${name}_FILE`]))
  return Object.keys(environment).filter(
    (name) => name.startsWith("BELFRY_") && !known.has(name) && !foreign.test(name),
  )
}

/**
 * The XDG base directory rule: `$XDG_DATA_HOME/<name>`, else `~/.local/share/<name>`. "" for a user
 * without a home, because data must not go into the current folder by accident.
 */
export function defaultDataDir(environment: Variables, name = "belfry"): string {
  if (environment.XDG_DATA_HOME) return join(environment.XDG_DATA_HOME, name)
  const home = environment.HOME || homeOfUser()
  return home === "" ? "" : join(home, ".local", "share", name)
}

function homeOfUser(): string {
  try {
    return userInfo().homedir
  } catch {
    return "" // a user that the machine has no name for
  }
}

function flatten(table: object, prefix: string, source: string): Input[] {
  return Object.entries(table).flatMap(([part, raw]: [string, unknown]) => {
    const name = prefix + part
    const nested = typeof raw === "object" && raw !== null && !Array.isArray(raw)
    return nested ? flatten(raw, `${name}.`, source) : [{ name, raw, source }]
  })
}

/** Editors end files with a line break that is no part of a secret. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").replace(/\r?\n$/, "")
  } catch {
    return undefined
  }
}

export const isKeyName = (name: string): name is KeyName => keyNames.some((known) => known === name)
