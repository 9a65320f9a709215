import { openClient } from "../lib/client"
import { environment } from "../lib/environment"
import {
  LOCAL_PROFILE,
  NOBODY,
  type Profile,
  type Profiles,
  profilesPath,
  readProfiles,
  writeProfiles,
} from "../lib/profiles"

const ANSWER_MILLISECONDS = 500
const MOST_HIDDEN = 8

/** The entry of a running `up`. The instance tells one data folder from another. */
export type LocalProfile = Profile & { instance: string }

/**
 * Makes this server the profile `local`, so that other terminals need no settings. A sign-in to the
 * same data folder goes on. Returns what to call at the end: it brings back the entry before, if
 * that server still answers. It leaves alone what another `up` has put in its place meanwhile, and
 * it never forgets a sign-in. Throws when the file cannot be written.
 */
export function takeLocalProfile(own: LocalProfile): () => Promise<void> {
  const path = profilesPath(environment)
  const stored = readProfiles(path)
  const before = stored.profiles[LOCAL_PROFILE]
  const known = [...stored.hidden, ...(before ? [before] : [])]
  const same = known.findLast(({ instance }) => instance === own.instance)
  const others = known.filter(
    (one) => one.instance !== own.instance && (one.url !== own.url || one.session),
  )
  const local = { ...signInOf(same, own.url), ...own }
  writeProfiles(path, withLocal(stored, local, others.slice(-MOST_HIDDEN)))
  return () => leaveLocalProfile(path, own)
}

/** What a person chose and proved in this data folder, also when it had another port. */
function signInOf(profile: Profile | undefined, url: string): Partial<Profile> {
  const { session, account_id = null, project_id = null } = profile ?? {}
  if (!session) return {}
  // An access token counts at one address only; the next call gets another one.
  const expires_at = profile?.url === url ? session.expires_at : new Date(0).toISOString()
  return { session: { ...session, expires_at }, account_id, project_id }
}

async function leaveLocalProfile(path: string, own: LocalProfile): Promise<void> {
  const stored = readProfiles(path)
  const mine = stored.profiles[LOCAL_PROFILE]
  if (mine?.url !== own.url) {
    const hidden = stored.hidden.filter((one) => one.url !== own.url || one.session)
    return writeProfiles(path, { ...stored, hidden })
  }
  const hidden = [...stored.hidden]
  const stopped: Profile[] = []
  let next = hidden.pop()
  while (next && !(await answers(next))) {
    if (next.session) stopped.unshift(next)
    next = hidden.pop()
  }
  const kept = mine.session ? mine : undefined
  const resting = next && kept ? [kept] : []
  writeProfiles(path, withLocal(stored, next ?? kept, [...hidden, ...stopped, ...resting]))
}

function withLocal(stored: Profiles, local: Profile | undefined, hidden: Profile[]): Profiles {
  const { [LOCAL_PROFILE]: _, ...others } = stored.profiles
  const profiles = local ? { ...others, [LOCAL_PROFILE]: local } : others
  return { ...stored, profiles, hidden }
}

/** A server on another machine may be unreachable for a moment only, so its entry stays. */
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
