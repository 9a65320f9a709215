import { describe, expect, test } from "bun:test"
import { decodeJwt } from "jose"
import { appCode } from "../auth/factors/factor-shop"
import { codeBlocks } from "../docs/code-blocks"
import { identityProvider, SETUPS } from "../fakes/identity-provider"
import { startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { write } from "./page-mails"
import { lean } from "./serve"

const PASSWORD = "Quiet-River-42"

interface SignedIn {
  data: { user: { email: string }; tokens: { access_token: string }; is_new?: boolean }
}

/** Serves a page for each guide, with its script, at the path of its name. */
function siteOf(asTried: (code: string) => string) {
  const headers = { "content-type": "text/html" }
  const site = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    fetch: ({ url }) => {
      const name = new URL(url).pathname.replace("welcome", "social-sign-in")
      const blocks = codeBlocks(`docs${name}.md`).filter(({ language }) => language === "js")
      const script = blocks.map(({ code }) => code).join("\n")
      return new Response(`<!doctype html><script>${asTried(script)}</script>`, { headers })
    },
  })
  const origin = `http://localhost:${site.port}`
  return { origin, [Symbol.dispose]: () => void site.stop(true) }
}

describe.skipIf(missing("chromium-headless-shell"))("the scripts of the guides", () => {
  test("sign in with a second factor, move to an organization, and come back from a provider", async () => {
    const person = { id: "1", email: "kim@acme.test", is_verified: true, name: "Kim" }
    using google = identityProvider("google", person)
    const env = { ...lean, BELFRY_AUTH_OAUTH_GOOGLE_ENDPOINT: google.url }
    await using server = await startBelfry({ env })
    const keys = { live: "", test: "" }
    using site = siteOf((code) =>
      code
        .replace("http://localhost:8080", server.url)
        .replace(/svca_(live|test)_pub_YOURS/, (_, name: "live" | "test") => keys[name])
        .replace("https://app.acme.example", site.origin),
    )
    const welcome = `${site.origin}/welcome`
    const words = ["--name", "Acme", "--origin", site.origin, "--redirect-url", welcome, "--json"]
    const made = await server.cli("applications", "create", ...words)
    const { id: application_id, public_keys } = JSON.parse(made.stdout)
    Object.assign(keys, public_keys)
    await using browser = await startBrowser()
    await using tab = await browser.open(`${site.origin}/mfa`)

    const at = { application_id, environment: "test" }
    const ann = { ...at, email: "ann@acme.test", password: PASSWORD, email_verified: true }
    const user = await write<{ id: string }>(server, "POST", "/v1/auth/users", ann)
    const user_id = user.id
    const { secret } = await write<{ secret: string }>(server, "POST", "/v1/auth/mfa/enroll", {
      user_id,
    })
    const first = { user_id, code: await appCode(secret, -1) }
    await write(server, "POST", "/v1/auth/mfa/verify-enrollment", first)
    const asked = `(methods) => { if (methods.includes("totp")) return "${await appCode(secret)}" }`
    const { data } = await tab.read<SignedIn>(
      `signIn("ann@acme.test", ${JSON.stringify(PASSWORD)}, ${asked})`,
    )
    expect(data.user.email).toBe("ann@acme.test")

    const rose = { ...at, name: "Rose" }
    const { id } = await write<{ id: string }>(server, "POST", "/v1/auth/organizations", rose)
    await write(server, "POST", `/v1/auth/organizations/${id}/members`, { user_id, role: "owner" })
    await tab.goto(`${site.origin}/organizations`)
    const moved = await tab.read<{ access_token: string }>(
      `moveTo("${id}", "${data.tokens.access_token}")`,
    )
    expect(decodeJwt(moved.access_token)).toMatchObject({ org_id: id, org_role: "owner" })

    const path = `/v1/auth/applications/${application_id}/oauth-providers/google`
    await write(server, "PUT", path, { environment: "live", enabled: true, ...SETUPS.google })
    await tab.goto(welcome)
    await Promise.all([tab.tab.waitForNavigation(), tab.read("begin()")])
    await tab.until(`location.search.includes("code=")`)
    const came = await tab.read<SignedIn>("finish()")
    expect(came.data).toMatchObject({ user: { email: "kim@acme.test" }, is_new: true })
    tab.requireNoProblem()
  }, 60_000)
})
