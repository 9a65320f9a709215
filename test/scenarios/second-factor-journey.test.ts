import { describe, expect, test } from "bun:test"
import { execFileSync } from "node:child_process"
import { decodeJwt } from "jose"
import { newId } from "../../src/core/ids"
import { BUNDLE, gameCenter } from "../fakes/game-center"
import { type Belfry, startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { oidcProvider } from "../harness/oidc-provider"
import { locate, missing } from "../harness/peers"
import { data, write } from "./page-mails"
import { lean } from "./serve"
import { consent, mailTo, siteOf, tabWithAuthenticator, WEBAUTHN } from "./shop"

/** The page of an application. It says what it was answered, and keeps the session. */
const pageOf = (server: string, key: string) => `<!doctype html><meta charset="utf-8">
<title>Shop</title><h1>Shop</h1>
<a>Sign in with Acme</a> <button onclick="enterByPasskey()">Sign in with a passkey</button>
<form onsubmit="prove(event)"><label>Code <input name="code"></label><button>Prove</button></form>
<button onclick="enroll()">Add an app</button> <button onclick="addPasskey()">Add a passkey</button>
<button onclick="accept()">Join</button> <button onclick="leave()">Sign out</button>
<form onsubmit="change(event)"><label>Team <input name="team"></label><button>Change</button></form>
<p role="status"></p>
<script>${WEBAUTHN}
const say = (text) => { document.querySelector("p").textContent = text }
const call = async (path, body, method = "POST") => {
  const own = sessionStorage.access_token
  const headers = { "content-type": "application/json",
    ...(own ? { authorization: "Bearer " + own } : { "x-application-key": "${key}" }) }
  const answer = await fetch("${server}/v1/auth/" + path, { method, headers, body: JSON.stringify(body) })
  const { data, error } = await answer.json()
  if (error) { say(answer.status + " " + error.code); throw error }
  return data
}
const query = new URLSearchParams(location.search)
const link = new URLSearchParams({ redirect_url: location.origin + "/back", mode: "redirect",
  application_key: "${key}" })
document.querySelector("a").href = "${server}/v1/auth/oauth/oidc-acme/authorize?" + link
const keep = ({ access_token, refresh_token }) =>
  Object.assign(sessionStorage, { access_token, refresh_token })
function enter(answer) {
  if (answer.mfa_required) {
    sessionStorage.challenge = answer.mfa_challenge.token
    return say("Prove it with " + answer.mfa_challenge.methods.join(", "))
  }
  keep(answer.tokens)
  say((answer.is_new ? "Welcome, " : "Hello, ") + answer.user.email + ", of " + answer.organization.name)
}
const land = async () => enter(await call("oauth/oidc-acme/callback",
  { code: query.get("code"), state: query.get("state") }))
async function enroll() {
  sessionStorage.secret = (await call("mfa/enroll", {})).secret
  say("Prove the app")
}
async function prove(event) {
  event.preventDefault()
  const code = event.target.code.value
  if (!sessionStorage.challenge)
    return say("The app is on: " + (await call("mfa/verify-enrollment", { code })).enabled)
  const challenge_token = sessionStorage.challenge
  sessionStorage.removeItem("challenge")
  enter(await call("mfa/verify", { challenge_token, totp_code: code }))
}
async function addPasskey() {
  const { challenge_id, public_key } = await call("passkeys/register/options", { name: "Laptop" })
  const credential = await create(public_key)
  say("Added " + (await call("passkeys/register/verify", { challenge_id, credential })).name)
}
async function enterByPasskey() {
  const { challenge_id, public_key } = await call("passkeys/login/options", {})
  const credential = await get(public_key)
  enter(await call("passkeys/login/verify", { challenge_id, credential }))
}
const accept = async () => say("Joined as " +
  (await call("organizations/invitations/accept", { token: query.get("code") })).role)
async function change(event) {
  event.preventDefault()
  const organization_id = event.target.team.value
  const { tokens, organization } = await call("sessions/switch-organization", { organization_id })
  keep(tokens)
  say("Now of " + organization.name)
}
async function leave() {
  await call("users/logout", {})
  sessionStorage.clear()
  say("Bye")
}
if (location.pathname === "/back") land()
</script>`

/** The code of an authenticator app, by a program of another maker. A code that was used is not taken again. */
function oathtool(secret: string, at: "now" | "now + 30 seconds"): string {
  const words = ["--totp", "--base32", `--now=${at}`, secret]
  return execFileSync(locate("oathtool") ?? "", words, { encoding: "utf8" }).trim()
}

const settingsOf = ({ settings }: ReturnType<typeof gameCenter>) => ({
  ...lean,
  BELFRY_AUTH_OAUTH_ALLOW_PRIVATE: "127.0.0.1",
  BELFRY_AUTH_GAME_CENTER_HOSTS: settings["auth.game_center.hosts"].join(","),
  BELFRY_AUTH_GAME_CENTER_ROOT: settings["auth.game_center.root"],
})

/** The application of a page, whose people may also sign in at a provider. */
async function shopAt(server: Belfry, origin: string) {
  const wanted = {
    name: "Shop",
    allowed_origins: [origin],
    redirect_urls: [`${origin}/back`, `${origin}/joined`],
  }
  const made = await write<{ id: string; public_keys: { live: string } }>(
    ...([server, "POST", "/v1/auth/applications", wanted] as const),
  )
  const redirect_uri = `${server.url}/v1/auth/oauth/oidc-acme/callback`
  const client = { client_id: "acme", client_secret: "planted-secret-of-acme", redirect_uri }
  const provider = await oidcProvider(client)
  const path = `/v1/auth/applications/${made.id}/oauth-providers/oidc-acme`
  const setup = { ...client, environment: "live", enabled: true, issuer: provider.issuer }
  const { callback_url } = await write<{ callback_url: string }>(server, "PUT", path, setup)
  expect(callback_url).toBe(redirect_uri)
  return { ...made, key: made.public_keys.live, provider }
}

const NEEDED = ["chromium-headless-shell", "node", "oathtool", "openssl"] as const

describe.skipIf(missing(...NEEDED))("a person with two factors", () => {
  test("signs in elsewhere, proves an app, has a passkey alone, and works in a team that demands it", async () => {
    const platform = gameCenter()
    await using server = await startBelfry({ env: settingsOf(platform) })
    await using _platform = { [Symbol.asyncDispose]: platform.stop }
    let page = ""
    using site = siteOf(() => page)
    const { id: application_id, key, provider } = await shopAt(server, site.origin)
    await using _ = provider
    page = pageOf(server.url, key)
    await using browser = await startBrowser()
    const { page: tab } = await tabWithAuthenticator(browser, site.origin)
    await using _tab = tab
    const kept = (name: string) => tab.read<string>(`sessionStorage.${name}`)
    const prove = async (at: "now" | "now + 30 seconds", secret: string) => {
      await tab.fill("Code", oathtool(secret, at))
      await tab.click("Prove")
    }

    await tab.click("Sign in with Acme")
    await consent(tab)
    await tab.shows("Welcome, ann@oidc.test, of Default")
    const before = await kept("access_token")
    await tab.read("sessionStorage.clear()")
    await tab.click("Sign in with Acme")
    await tab.shows("Hello, ann@oidc.test, of Default")
    await tab.click("Add an app")
    await tab.shows("Prove the app")
    const secret = await kept("secret")
    await prove("now", secret)
    await tab.shows("The app is on: true")
    await tab.click("Sign out")
    await tab.shows("Bye")

    await tab.click("Sign in with Acme")
    await tab.shows("Prove it with totp, backup_code")
    await prove("now + 30 seconds", secret)
    await tab.shows("Hello, ann@oidc.test, of Default")
    await tab.click("Add a passkey")
    await tab.shows("Added Laptop")
    await tab.click("Sign out")
    await tab.shows("Bye")
    await tab.click("Sign in with a passkey")
    await tab.shows("Hello, ann@oidc.test, of Default")

    const team = { name: "Red team" }
    const all = "/v1/auth/organizations"
    const { id } = await write<{ id: string }>(server, "POST", all, team)
    await write(server, "PATCH", `${all}/${id}`, { mfa_required: true })
    const invitation = { email: "ann@oidc.test", redirect_url: `${site.origin}/joined` }
    await write(server, "POST", `${all}/${id}/invitations`, invitation)
    await tab.goto(await mailTo(server, "ann@oidc.test", /http\S+\/a\/\S+/))
    await tab.shows("Red team")
    await tab.press("Tab")
    await tab.pressAndLoad("Enter")
    await tab.click("Join")
    await tab.shows("Joined as member")

    const change = async (result: string) => {
      await tab.fill("Team", id)
      await tab.click("Change")
      await tab.shows(result)
    }
    const proven = await kept("access_token")
    await tab.read(`sessionStorage.access_token = ${JSON.stringify(before)}`)
    await change("403 mfa_required")
    await tab.read(`sessionStorage.access_token = ${JSON.stringify(proven)}`)
    await change("Now of Red team")
    const { amr, org_id } = decodeJwt(await kept("access_token"))
    expect([amr, org_id]).toEqual([["pop", "mfa"], id])

    const told = await data<{ type: string; data: { metadata: object } }[]>(
      ...([server, "/v1/events?types=user.mfa_enabled"] as const),
    )
    expect(told.map((one) => one.data.metadata)).toMatchObject([{ mfa_method: "totp" }])

    const game = { enabled: true, bundle_ids: [BUNDLE], team_id: "DEF123GHIJ" }
    const place = `/v1/auth/applications/${application_id}/gaming-providers/game-center`
    await write(server, "PUT", place, game)
    const assertion = platform.assertion(`T:_${newId().replaceAll("-", "")}`)
    const play = async () => {
      const headers = { "x-application-key": key, "content-type": "application/json" }
      const sent = { method: "POST", headers, body: JSON.stringify(assertion) }
      return (await fetch(`${server.url}/v1/auth/game-center`, sent)).status
    }
    expect([await play(), await play()]).toEqual([201, 401])
    const people = await data<{ email: string | null }[]>(server, "/v1/auth/users")
    expect(people.map(({ email }) => email)).toEqual([null, "ann@oidc.test"])
  }, 90_000)
})
