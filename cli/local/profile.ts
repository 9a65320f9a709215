import { openClient } from "../client"
import { environment } from "../environment"
import {
  LOCAL_PROFILE,
  NOBODY,
  type Profile,
  type Profiles,
  profilesPath,
  readProfiles,
  writeProfiles,
} from "../settings"

const ANSWER_MILLISECONDS = 500
const MOST_HIDDEN = 8

/**
 * Makes this server the profile `local`, so that other terminals need no settings. Returns what to
 * call at the end: it brings back the entry before, if somebody still answers there, and leaves
 * alone what another `up` has put in its place meanwhile. Throws when the file cannot be written.
 */
export function takeLocalProfile(own: Profile): () => Promise<void> {
  const path = profilesPath(environment)
  const stored = readProfiles(path)
  const before = stored.profiles[LOCAL_PROFILE]
  const hidden = [...stored.hidden, ...(before ? [before] : [])].filter(
    ({ url }) => url !== own.url,
  )
  writeProfiles(path, withLocal(stored, own, hidden.slice(-MOST_HIDDEN)))
  return () => leaveLocalProfile(path, own)
}

async function leaveLocalProfile(path: string, own: Profile): Promise<void> {
  const stored = readProfiles(path)
  if (stored.profiles[LOCAL_PROFILE]?.url !== own.url) {
    const hidden = stored.hidden.filter(({ url }) => url !== own.url)
    return writeProfiles(path, { ...stored, hidden })
  }
  const hidden = [...stored.hidden]
  let next = hidden.pop()
  while (next && !(await answers(next))) next = hidden.pop()
  writeProfiles(path, withLocal(stored, next, hidden))
}

function withLocal(stored: Profiles, local: Profile | undefined, hidden: Profile[]): Profiles {
  const { [LOCAL_PROFILE]: _, ...others } = stored.profiles
  const profiles = local ? { ...others, [LOCAL_PROFILE]: local } : others
  return { ...stored, profiles, hidden }
}

/** A server elsewhere may only be out of reach for a moment: its entry is somebody's own. */
async function answers({ url }: Profile): Promise<boolean> {
  const is_here = URL.canParse(url) && new URL(url).hostname === "127.0.0.1"
  if (!is_here) return true
  const client = openClient(
    { ...NOBODY, url, api_key: null },
    { timeout: ANSWER_MILLISECONDS, dry_run: false },
  )
  return await client.plain("/healthz").then(
    ({ status }) => status === 200,
    () => false,
  )
}
