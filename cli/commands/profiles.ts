import type { Action } from "../lib/context"
import { environment } from "../lib/environment"
import { usage } from "../lib/errors"
import {
  LOCAL_PROFILE,
  profilesPath,
  readProfiles,
  saveProfile,
  unknownProfile,
  webAddress,
  writeProfiles,
} from "../lib/profiles"
import { own, type Resource } from "../lib/resource"
import { wide } from "../lib/table"

const path = () => profilesPath(environment)

const list: Action<object> = async ({ output }) => {
  const { current, profiles } = readProfiles(path())
  const chosen = current ?? LOCAL_PROFILE
  const rows = Object.entries(profiles).map(([name, { url, api_key, session }]) => ({
    name,
    url,
    user: session?.email ?? null,
    api_key: api_key ? `${api_key.slice(0, 17)}…` : null,
    current: name === chosen,
  }))
  await output.list(rows, {
    "": (row) => (row.current ? "*" : ""),
    NAME: "name",
    URL: wide(({ url }) => url),
    USER: "user",
    KEY: ({ api_key: key }) => key ?? "none",
  })
}

const use: Action<object> = async ({ output, paint }, _, name = "") => {
  const stored = readProfiles(path())
  const profile = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  if (!profile) throw unknownProfile(name, stored)
  writeProfiles(path(), { ...stored, current: name })
  const record = { name, url: profile.url, current: true }
  await output.record(record, () => `${paint.green("✓")} using ${name}  ${profile.url}`)
}

const set: Action<object> = async ({ flags, output, paint }, _, name = "") => {
  const given = flags.url ?? environment.BELFRY_URL
  if (!given) throw usage("name the server with --url")
  const url = webAddress(given)
  if (!/^[\w.-]{1,64}$/.test(name) || name === "__proto__") {
    throw usage(`"${name}" cannot be the name of a profile`, "use letters, digits, - and .")
  }
  const api_key = flags.apiKey ?? (environment.BELFRY_API_KEY || null)
  saveProfile(path(), name, { url, api_key })
  const record = { name, url, api_key: api_key ? `${api_key.slice(0, 17)}…` : null }
  await output.record(record, () => `${paint.green("✓")} stored ${name}  ${url}`)
  await output.next(`belfry profiles use ${name}`)
}

export const profileResource: Resource = {
  noun: "profiles",
  about: "manage the stored servers and keys",
  rows: [
    own("list", list, { about: "list the stored profiles" }),
    own("use <name>", use, {
      about: "choose the profile that later commands use",
      word: "local",
    }),
    own("set <name>", set, {
      about: "store --url and --api-key (or BELFRY_URL and BELFRY_API_KEY) in a profile",
      word: "prod",
      example: "--url https://mail.example.test",
    }),
  ],
}
