import type { Components } from "../../src/client/components"
import { openClient } from "./client"
import { exits, Failure } from "./errors"
import { optionWords, quoted } from "./flags"
import {
  type Connection,
  type Environment,
  type Profile,
  profilesPath,
  readProfiles,
  type StoredSession,
  saveProfile,
} from "./profiles"
import { millis } from "./time"

const MARGIN_MILLISECONDS = 30_000
const TIMEOUT_MILLISECONDS = 30_000

export type SessionAnswer = Components["Session"]

/** An access token that is good for the next call; refreshed, and stored, when it is about to end. */
export async function accessToken(
  connection: Connection,
  environment: Environment,
): Promise<string> {
  const path = profilesPath(environment)
  const name = connection.profile ?? ""
  // Read again: another command may have refreshed the session, and a refresh token works once.
  const profile = readProfiles(path).profiles[name]
  if (!profile?.session) throw signedOut(connection)
  const { session } = profile
  if (Date.parse(session.expires_at) - MARGIN_MILLISECONDS > millis()) return session.access_token

  const there = { ...connection, signed_in: false }
  const options = { timeout: TIMEOUT_MILLISECONDS, dry_run: false, anonymous: true }
  const body = { refresh_token: session.refresh_token }
  try {
    const client = openClient(there, options)
    const { data } = await client.call("POST /v1/session/refresh", { body })
    keepSession(path, name, profile, data)
    return data.access_token
  } catch (error) {
    if (error instanceof Failure && error.exit === exits.unauthorized) throw signedOut(connection)
    throw error
  }
}

/** Puts a sign-in into a profile; the account is chosen where there is no choice. */
export function keepSession(
  path: string,
  name: string,
  profile: Profile,
  { access_token, refresh_token, expires_in, user, accounts }: SessionAnswer,
): Profile {
  const expires_at = new Date(millis() + expires_in * 1000).toISOString()
  const session: StoredSession = { email: user.email, access_token, refresh_token, expires_at }
  const known = accounts.some(({ id }) => id === profile.account_id)
  const only = accounts.length === 1 ? (accounts[0]?.id ?? null) : null
  const place = known
    ? { account_id: profile.account_id ?? null, project_id: profile.project_id ?? null }
    : { account_id: only, project_id: null }
  const kept = { ...profile, ...place, session }
  saveProfile(path, name, kept)
  return kept
}

const signedOut = ({ url, profile }: Connection) =>
  new Failure(exits.unauthorized, "unauthorized", `Your session at ${url} has ended.`, {
    hint: `belfry login ${quoted(url)}${optionWords({ profile: profile ?? undefined })}`,
  })
