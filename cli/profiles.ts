import type { Action } from "./context"
import { environment } from "./environment"
import { usage } from "./failure"
import {
  LOCAL_PROFILE,
  profilesPath,
  readProfiles,
  saveProfile,
  unknownProfile,
  webAddress,
  writeProfiles,
} from "./settings"

const path = () => profilesPath(environment)

export const list: Action<object> = async ({ output }) => {
  const { current, profiles } = readProfiles(path())
  const chosen = current ?? LOCAL_PROFILE
  const rows = Object.entries(profiles).map(([name, { url, api_key, session }]) => ({
    name,
    url,
    user: session?.email ?? null,
    api_key: api_key ? `${api_key.slice(0, 17)}…` : null,
    current: name === chosen,
  }))
  await output.list(rows, [
    { title: "", cell: (row) => (row.current ? "*" : "") },
    { title: "NAME", cell: (row) => row.name },
    { title: "URL", cell: (row) => row.url, flexible: true },
    { title: "USER", cell: (row) => row.user ?? "" },
    { title: "KEY", cell: (row) => row.api_key ?? "none" },
  ])
  return undefined
}

export const use: Action<object> = async ({ output, paint }, _, name = "") => {
  const stored = readProfiles(path())
  const profile = Object.hasOwn(stored.profiles, name) ? stored.profiles[name] : undefined
  if (!profile) throw unknownProfile(name, stored)
  writeProfiles(path(), { ...stored, current: name })
  const record = { name, url: profile.url, current: true }
  await output.record(record, () => `${paint.green("✓")} using ${name}  ${profile.url}`)
  return undefined
}

export const set: Action<object> = async ({ flags, output, paint }, _, name = "") => {
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
  return undefined
}
