import { readFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { issuerEndpoint, namesCompleted, OF_ISSUER } from "./config-auth"
import {
  goneNames,
  guessKey,
  guessVariable,
  type KeyName,
  keyNames,
  keys,
  type Settings,
  variableOf,
} from "./config-keys"

export type { KeyName, Settings } from "./config-keys"
export { hostAndPort } from "./config-kinds"

/** What the operator wrote is wrong. The message lists every fault; nothing was started. */
export class ConfigError extends Error {
  override readonly name = "ConfigError"
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(["The configuration is not valid:", ...faults].join("\n- "))
    this.faults = faults
  }
}

export interface Explanation {
  key: KeyName
  /** As an operator writes it; secrets are masked. */
  value: unknown
  source: string
  default: unknown
  about: string
}

export interface Loaded {
  values: Settings
  /** What is set and was a setting of an earlier version, each with its source. Nothing reads it. */
  gone: readonly string[]
  /** Where a value comes from. Throws ConfigError for an unknown key, naming the nearest one. */
  explain(key: string): Explanation
  all(): Explanation[]
  /** Reads the same sources again, as they are now. Throws ConfigError as the first time. */
  again(): Loaded
}

export interface Sources {
  flags?: { [K in KeyName]?: string | number | boolean | string[] | undefined } | undefined
  /** Default: the environment of this process. */
  environment?: Variables | undefined
  /** A TOML file, as by `--config`; without it `BELFRY_CONFIG`. */
  file?: string | undefined
  /** Defaults of a command, in the units of Settings. */
  defaults?: Partial<Settings> | undefined
}

/**
 * Flags, then `BELFRY_*`, then `BELFRY_*_FILE` and credentials, then the TOML file, then defaults.
 * Throws one ConfigError with every fault in it.
 */
export function loadSettings(sources: Sources = {}): Loaded {
  const environment = sources.environment ?? process.env
  const faults: string[] = []
  const gone: string[] = []
  const given = collect(sources, environment, faults)
  const fallbacks: Settings = { ...factory(environment), ...sources.defaults }
  const values = { ...fallbacks }
  const origins: Partial<Record<KeyName, string>> = {}

  // The weakest source first, so that a stronger one overwrites it; each is checked all the same.
  for (const { name, raw, source } of given.toReversed()) {
    if (goneNames.includes(name)) {
      gone.push(`${name} (${source})`)
      continue
    }
    if (!isKeyName(name)) {
      faults.push(`${name} (${source}) is not a setting${guessKey(name)}`)
      continue
    }
    const value = keyOf(name).kind.parse(raw)
    if (value === undefined) faults.push(mistake(name, raw, source))
    else {
      Object.assign(values, { [name]: value })
      origins[name] = source
    }
  }
  faults.push(...contradictions(values))
  if (faults.length > 0) throw new ConfigError(faults)
  return { ...loaded(values, fallbacks, origins), gone, again: () => loadSettings(sources) }
}

let process_settings: Loaded | undefined

/** Decides for this process; call it before any tables module is imported. */
export function useSettings(chosen: Loaded): void {
  process_settings = chosen
}

/** The settings of this process. Without an earlier decision they come from the environment. */
export function settings(): Settings {
  process_settings ??= loadSettings()
  return process_settings.values
}

/** The settings if they are decided. Never throws, so that early code may ask. */
export const decidedSettings = (): Settings | undefined => process_settings?.values

function collect(sources: Sources, environment: Variables, faults: string[]): Input[] {
  for (const name of unknownVariables(environment)) {
    faults.push(`${name} (environment) is not a setting${guessVariable(name)}`)
  }
  const file = sources.file ?? (environment.BELFRY_CONFIG || undefined)
  return [
    ...fromFlags(sources.flags ?? {}),
    ...fromEnvironment(environment),
    ...fromFiles(environment, faults),
    ...(file === undefined ? [] : fromToml(file, faults)),
  ]
}

function factory(environment: Variables): Settings {
  const entries = keyNames.map((name) => [name, keys[name].fallback])
  return { ...(Object.fromEntries(entries) as Settings), data_dir: defaultDataDir(environment) }
}

const SES_NEEDS = [
  "providers.ses.region",
  "providers.ses.access_key_id",
  "providers.ses.secret_access_key",
] as const

function contradictions(values: Settings): string[] {
  if (values.data_dir === "") {
    return ["data_dir is missing, because HOME is not set. Give --data-dir or BELFRY_DATA_DIR"]
  }
  if (values.database_direct_url !== null && values.database_url === null) {
    return ["DATABASE_DIRECT_URL is set, but DATABASE_URL is missing. Set both, or neither"]
  }
  const provider = values["delivery.provider"]
  if (provider === "smtp" && values["providers.smtp.host"] === null) {
    return [
      "providers.smtp.host is missing, but delivery.provider is smtp. Set it to the host name of the relay",
    ]
  }
  if (provider === "ses") {
    const missing = SES_NEEDS.filter((name) => values[name] === null)
    return missing.map((name) => `${name} is missing, but delivery.provider is ses. Set it`)
  }
  if (provider === "mailbox" && !values["mailbox.enabled"]) {
    return [
      "mailbox.enabled is false, but delivery.provider is mailbox. Set mailbox.enabled to true",
    ]
  }
  return []
}

function mistake(name: KeyName, raw: unknown, source: string): string {
  const { kind, secret } = keyOf(name)
  const written = secret ? "a hidden value" : withoutPassword(JSON.stringify(raw) ?? String(raw))
  return `${name}: ${written} from ${source} is not valid: expected ${kind.expected}`
}

function loaded(
  values: Settings,
  fallbacks: Settings,
  origins: Partial<Record<KeyName, string>>,
): Omit<Loaded, "again" | "gone"> {
  const explain = (name: string): Explanation => {
    if (!isKeyName(name)) {
      throw new ConfigError([`${name} is not a setting${guessKey(name)}`])
    }
    return {
      key: name,
      value: shown(name, values[name]),
      source: origins[name] ?? "default",
      default: shown(name, fallbacks[name]),
      about: keyOf(name).about,
    }
  }
  return { values, explain, all: () => namesOf(values).map(explain) }
}

/** What an operator wrote, without any secret: of each setting that differs from its default. */
export function withoutSecrets(values: Settings): Record<string, unknown> {
  const told = namesOf(values).filter((name) => {
    const { secret, fallback } = keyOf(name)
    return !secret && values[name] !== fallback
  })
  return Object.fromEntries(told.map((name) => [name, shown(name, values[name])]))
}

const namesOf = (values: Settings) => Object.keys(values) as KeyName[]

function shown(name: KeyName, value: unknown = null): unknown {
  if (value === null) return null
  const { kind, secret } = keyOf(name)
  if (secret) return "********"
  const written = (kind.show as (value: unknown) => unknown)(value)
  return typeof written === "string" ? withoutPassword(written) : written
}

/** A password that should have been percent-encoded may have an "@" or a "/" in it. */
const withoutPassword = (text: string) =>
  text
    .replace(/(:\/\/[^:/@\s]*:)\S*@/, "$1********@")
    .replace(/([?&]password=)[^&\s"]*/gi, "$1********")

type Variables = Record<string, string | undefined>

/** One given value and its source. `source` completes "from …". */
interface Input {
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

const namesIn = (environment: Variables) => [
  ...new Set([...keyNames, ...goneNames, ...namesCompleted(environment)]),
]

function fromFlags(flags: Record<string, unknown>): Input[] {
  return Object.entries(flags).flatMap(([name, raw]) => {
    const source = `flag ${own_flags[name] ?? `--set ${name}`}`
    return raw === undefined ? [] : [{ name, raw, source }]
  })
}

/** An empty variable counts as not set: that is how shells and unit files switch one off. */
function fromEnvironment(environment: Variables): Input[] {
  return namesIn(environment).flatMap((name) => {
    const variable = variableOf(name)
    const raw = environment[variable]
    return raw ? [{ name, raw, source: `environment ${variable}` }] : []
  })
}

/** `BELFRY_…_FILE` first, then a file named like the key in the service manager's credentials. */
function fromFiles(environment: Variables, faults: string[]): Input[] {
  const folder = environment.CREDENTIALS_DIRECTORY
  return namesIn(environment).flatMap((name) => {
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
function fromToml(path: string, faults: string[]): Input[] {
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
function unknownVariables(environment: Variables): string[] {
  const known = new Set(
    namesIn(environment)
      .map(variableOf)
      .flatMap((name) => [name, `${name}_FILE`]),
  )
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
    const nested =
      typeof raw === "object" && raw !== null && !Array.isArray(raw) && !isKeyName(name)
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

const isKeyName = (name: string): name is KeyName =>
  Object.hasOwn(keys, name) || OF_ISSUER.test(name)

const keyOf = (name: KeyName) => keys[name] ?? issuerEndpoint
