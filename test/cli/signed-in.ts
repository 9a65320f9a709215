import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshHome } from "./belfry"
import { ID, KEY } from "./fake-api"

export const ACCOUNT = "0199a1c2-0000-7000-8000-00000000000a"
export const ACCESS_TOKEN = "access.0.x"
export const REFRESH_TOKEN = "belfry_refresh_0"

/** What a sign-in answers. */
export const session = (more: object = {}) => ({
  access_token: "access.1.x",
  refresh_token: "belfry_refresh_1",
  token_type: "Bearer",
  expires_in: 900,
  user: { id: ID, email: "ann@mailbox.test", name: null },
  accounts: [{ id: ACCOUNT, name: "Main", role: "owner" }],
  ...more,
})

/** A home in which somebody is signed in; the access token ends in so many seconds. */
export function signedInHome(url: string, seconds: number, more: object = {}) {
  const HOME = freshHome()
  mkdirSync(join(HOME, ".config/belfry"), { recursive: true })
  const path = join(HOME, ".config/belfry/profiles.json")
  const own = {
    email: "ann@mailbox.test",
    access_token: ACCESS_TOKEN,
    refresh_token: REFRESH_TOKEN,
    expires_at: new Date(Date.now() + seconds * 1000).toISOString(),
  }
  const local = { url, api_key: KEY, session: own, account_id: ACCOUNT, ...more }
  writeFileSync(path, JSON.stringify({ current: "local", profiles: { local } }))
  return { env: { HOME }, stored: () => JSON.parse(readFileSync(path, "utf8")).profiles.local }
}
