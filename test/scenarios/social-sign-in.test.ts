import { describe, expect, test } from "bun:test"
import { startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { oidcProvider } from "../harness/oidc-provider"
import { missing } from "../harness/peers"
import { write } from "./page-mails"
import { lean } from "./serve"
import { consent, siteOf } from "./shop"

/** The page of an application: it signs in by its script or by a link, and greets who comes back. */
const pageOf = (server: string, key: string) => `<!doctype html><title>Shop</title>
<h1>Shop</h1><button onclick="begin()">Sign in here</button> <a>Sign in there</a>
<p role="status"></p>
<script>
const place = "${server}/v1/auth/oauth/oidc-local"
const headers = { "x-application-key": "${key}", "content-type": "application/json" }
const back = location.origin + "/back"
const link = new URLSearchParams({ redirect_url: back, mode: "redirect", application_key: "${key}" })
document.querySelector("a").href = place + "/authorize?" + link
const encoded = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")
async function begin() {
  const verifier = encoded(crypto.getRandomValues(new Uint8Array(32)))
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))
  const query = new URLSearchParams({ redirect_url: back, code_challenge: encoded(hash) })
  const { data } = await (await fetch(place + "/authorize?" + query, { headers })).json()
  sessionStorage.setItem(data.state, verifier)
  location.href = data.authorization_url
}
async function land({ code, state }) {
  const code_verifier = sessionStorage.getItem(state) ?? undefined
  const body = JSON.stringify({ code, state, code_verifier })
  const answer = await fetch(place + "/callback", { method: "POST", headers, body })
  const { data, error } = await answer.json()
  document.querySelector("p").textContent = data
    ? (data.is_new ? "Welcome, " : "Hello, ") + data.user.email + ", with " + data.provider_tokens.scope
    : error.code
}
if (location.pathname === "/back") land(Object.fromEntries(new URLSearchParams(location.search)))
</script>`

describe.skipIf(missing("chromium-headless-shell", "node"))("a provider of another maker", () => {
  test("signs somebody up by a script, and in by a link after its keys changed", async () => {
    const env = { ...lean, BELFRY_AUTH_OAUTH_ALLOW_PRIVATE: "127.0.0.1" }
    await using server = await startBelfry({ env })
    let page = ""
    using site = siteOf(() => page)
    const { origin } = site
    const words = ["--name", "Acme", "--redirect-url", `${origin}/back`, "--json"]
    const made = await server.cli("applications", "create", ...words)
    const { id, public_keys } = JSON.parse(made.stdout)
    page = pageOf(server.url, public_keys.test)
    const client = {
      ...{ client_id: "acme", client_secret: "planted-secret-of-acme" },
      redirect_uri: `${server.url}/v1/auth/oauth/oidc-local/callback`,
    }
    await using provider = await oidcProvider(client)
    const path = `/v1/auth/applications/${id}/oauth-providers/oidc-local`
    const setup = { environment: "test", enabled: true, issuer: provider.issuer, ...client }
    const { callback_url } = await write<{ callback_url: string }>(server, "PUT", path, setup)
    expect(callback_url).toBe(client.redirect_uri)

    await using browser = await startBrowser()
    await using tab = await browser.open(origin)
    await tab.click("Sign in here")
    await consent(tab)
    await tab.shows("Welcome, ann@oidc.test, with openid email profile")
    await provider.rotateKeys()
    await tab.goto(origin)
    await tab.click("Sign in there")
    await consent(tab)
    await tab.shows("Hello, ann@oidc.test, with openid email profile")
    const used = await tab.read<string>("location.href")
    await tab.goto(used)
    await tab.shows("unauthorized")
    expect(new URL(used).searchParams.get("code")).toStartWith("belfry_code_")
  }, 90_000)
})
