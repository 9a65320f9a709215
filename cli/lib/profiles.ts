import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs"
import { userInfo } from "node:os"
import { dirname, join } from "node:path"
import { exits, Failure, usage } from "./errors"
import { readOwnFile } from "./folder-files"
import { unreadable } from "./input"

export type Environment = Record<string, string | undefined>

/** A sign-in by `belfry login`. The refresh token changes with each use. */
export interface StoredSession {
  email: string
  access_token: string
  refresh_token: string
  expires_at: string
}

export interface Profile {
  url: string
  api_key: string | null
  session?: StoredSession | null
  /** Where the person works, once they have chosen. */
  account_id?: string | null
  project_id?: string | null
  /** Of a server by `belfry up`: its first project, which no other data folder has. */
  instance?: string
  /** Of a server by `belfry up`: its data folder. */
  data_dir?: string
  /** Of a server by `belfry up`: where it takes mail by SMTP. */
  submission_port?: number
}

export interface Profiles {
  /** The chosen one; null: `local`, if there is one. */
  current: string | null
  profiles: Record<string, Profile>
  /** What was `local` before the `up` that is now, oldest first. */
  hidden: Profile[]
}

/** The URL of the API and the credential of the caller. */
export interface Connection {
  url: string
  /** What names the address, for errors: a flag, a variable, a profile. Null for the usual one. */
  url_from: string | null
  api_key: string | null
  /** What gave the key or the sign-in, in the same way. */
  key_from: string | null
  profile: string | null
  /** Whether the profile holds a sign-in, which then comes before its key. */
  signed_in: boolean
  account_id: string | null
  project_id: string | null
}

/** A connection that no profile speaks for. */
export const NOBODY = {
  ...{ url_from: null, key_from: null, profile: null, signed_in: false },
  ...{ account_id: null, project_id: null },
}

interface Chosen {
  url?: string | undefined
  api_key?: string | undefined
  profile?: string | undefined
}

const DEFAULT_URL = "http://127.0.0.1:8080"
export const LOCAL_PROFILE = "local"

/**
 * `$XDG_CONFIG_HOME/belfry/profiles.json`, else under `~/.config`. Throws with exit 2 for a user
 * without a home: keys are never written to the working directory.
 */
export const profilesPath = (environment: Environment): string =>
  join(configFolder(environment), "profiles.json")

export const configFolder = (environment: Environment): string =>
  join(environment.XDG_CONFIG_HOME || join(homeOf(environment), ".config"), "belfry")

/** Files that may be lost without harm. */
export const cacheFolder = (environment: Environment): string =>
  join(environment.XDG_CACHE_HOME || join(homeOf(environment), ".cache"), "belfry")

function homeOf({ HOME }: Environment): string {
  if (HOME) return HOME
  try {
    return userInfo().homedir
  } catch {
    throw usage(
      "HOME is not set, so the profiles cannot be found",
      "set HOME, or give --url and --api-key",
    )
  }
}

/** Flags > BELFRY_URL, BELFRY_API_KEY (or its _FILE), BELFRY_PROFILE > profile > default. */
export function connection(flags: Chosen, environment: Environment): Connection {
  const given_url = flags.url ?? (environment.BELFRY_URL || undefined)
  const given_key = flags.api_key ?? (environment.BELFRY_API_KEY || keyFile(environment))
  const url_from = flags.url === undefined ? "BELFRY_URL" : "--url"
  const key_from = keySource(flags, environment)
  const wanted = flags.profile ?? (environment.BELFRY_PROFILE || undefined)
  if (given_url !== undefined && given_key !== undefined && wanted === undefined) {
    const given = { url: webAddress(given_url), url_from, api_key: given_key, key_from }
    return { ...NOBODY, ...given } // no file is needed
  }

  const stored = readProfiles(profilesPath(environment))
  const chosen = wanted ?? stored.current
  const name = chosen ?? LOCAL_PROFILE
  const profile = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  if (chosen !== null && !profile) throw unknownProfile(chosen, stored)

  const url = webAddress(given_url ?? (profile?.url || DEFAULT_URL))
  // A key of a profile goes to that profile's server only, also with --url.
  const own = profile && sameServer(profile.url, url) ? profile : undefined
  const stored_from = own && (own.session || own.api_key) ? sourceIn(name, own) : null
  return {
    url,
    url_from: given_url === undefined ? (profile ? `the profile ${name}` : null) : url_from,
    api_key: given_key ?? own?.api_key ?? null,
    key_from: given_key === undefined ? stored_from : key_from,
    profile: profile ? name : null,
    signed_in: given_key === undefined && Boolean(own?.session),
    account_id: own?.account_id ?? null,
    project_id: own?.project_id ?? null,
  }
}

function keySource({ api_key }: Chosen, { BELFRY_API_KEY, BELFRY_API_KEY_FILE }: Environment) {
  if (api_key !== undefined) return "--api-key"
  return BELFRY_API_KEY ? "BELFRY_API_KEY" : `BELFRY_API_KEY_FILE (${BELFRY_API_KEY_FILE})`
}

function sourceIn(name: string, { session, data_dir }: Profile): string {
  if (session) return `the sign-in of ${session.email} in the profile ${name}`
  return `the profile ${name}${data_dir === undefined ? "" : ` (data folder ${data_dir})`}`
}

/** The first profile with a key or a sign-in for the server at this address. */
export function profileWithKey(url: string, environment: Environment): string | undefined {
  const { current, profiles } = readProfiles(profilesPath(environment))
  const names = Object.entries(profiles)
    .filter(([, one]) => sameServer(one.url, url) && (one.session || one.api_key))
    .map(([name]) => name)
  return names.find((name) => name === current) ?? names[0]
}

/** `BELFRY_API_KEY_FILE`, as for every secret, keeps the key out of the environment. */
function keyFile({ BELFRY_API_KEY_FILE: path }: Environment): string | undefined {
  if (!path) return undefined
  try {
    return readFileSync(path, "utf8").trim()
  } catch (error) {
    throw unreadable(error, path, "BELFRY_API_KEY_FILE")
  }
}

export function unknownProfile(name: string, { profiles }: Profiles): Failure {
  const known = Object.keys(profiles)
  const hint =
    known.length > 0
      ? `the profiles are ${known.join(", ")}`
      : "`belfry up` creates the profile local"
  return usage(`there is no profile "${name}"`, hint)
}

/**
 * The address of a server as one types it, also with the `/v1` that other clients want. Without a
 * scheme it is http on this machine, and https everywhere else.
 */
export function webAddress(text: string): string {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : withScheme(text)
  const url = whole && URL.canParse(whole) ? new URL(whole) : undefined
  if (!whole || !url || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    const right = "write http://127.0.0.1:8080, localhost:8080 or mail.example.com"
    throw usage(`"${text}" is not the address of a server`, right)
  }
  return whole.replace(/\/+$/, "").replace(/\/v1$/, "")
}

/** `localhost:8080`, `example.com`, `[::1]:8080/v1`; undefined for a bare word. */
function withScheme(text: string): string | undefined {
  const [, host = "", port] = /^([\w.-]+|\[[\da-f:]+\])(:\d+)?(\/.*)?$/i.exec(text) ?? []
  const is_here = /^(localhost|127(\.\d+){3}|\[::1\])$|\.localhost$/i.test(host)
  if (is_here) return `http://${text}`
  return host.includes(".") || host.startsWith("[") || (host && port)
    ? `https://${text}`
    : undefined
}

/** Whether an address leads to this machine itself, which no proxy ever sees. */
export const isLoopback = (address: string | URL): boolean =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(address).hostname)

export const sameServer = (one: string, other: string): boolean =>
  URL.canParse(one) && originOf(one) === originOf(other)

/** Where the server at this address takes mail by SMTP, if it is one of `belfry up`. */
export function submissionPortOf(url: string, environment: Environment): number | undefined {
  const { profiles, hidden } = readProfiles(profilesPath(environment))
  const known = [...Object.values(profiles), ...hidden]
  return known.find((one) => one.submission_port !== undefined && sameServer(one.url, url))
    ?.submission_port
}

/** The server of an address, with one name for all ways to write this machine. */
export function originOf(address: string): string {
  const { protocol, hostname, port } = new URL(address)
  const host = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname) ? "loopback" : hostname
  return `${protocol}//${host}:${port}`
}

/** No file means no profiles. Throws with exit 74 when the file is there and unreadable. */
export function readProfiles(path: string): Profiles {
  const text = readOwnFile(path)
  if (text === undefined) return { current: null, profiles: {}, hidden: [] }
  closeToOthers(path)
  try {
    const { current, profiles, hidden } = JSON.parse(text) as Partial<Profiles>
    return { current: current ?? null, profiles: profiles ?? {}, hidden: hidden ?? [] }
  } catch {
    throw new Failure(exits.storage, "storage", `${path} is not JSON`, { hint: "remove the file" })
  }
}

/** Takes the permissions of other users away, because keys are in the file. */
function closeToOthers(path: string): void {
  try {
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  } catch {
    // The file belongs to another user.
  }
}

/** Readable by its owner only, and never half written: keys are in it. */
export function writeProfiles(path: string, { hidden, ...profiles }: Profiles): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.new`
  const file = openSync(draft, "w", 0o600)
  try {
    chmodSync(draft, 0o600)
    const shown = hidden.length > 0 ? { ...profiles, hidden } : profiles
    writeSync(file, `${JSON.stringify(shown, null, 2)}\n`)
    fsyncSync(file)
  } catch (error) {
    unlinkSync(draft)
    throw error
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}

/**
 * Adds or changes one profile; the others and the choice stay. What is not named stays too, unless
 * the profile is to mean another server: a sign-in is worth nothing there.
 */
export function saveProfile(path: string, name: string, profile: Profile): void {
  const stored = readProfiles(path)
  const before = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  const kept = before && sameServer(before.url, profile.url) ? before : {}
  const profiles = { ...stored.profiles, [name]: { ...kept, ...profile } }
  writeProfiles(path, { ...stored, profiles })
}
