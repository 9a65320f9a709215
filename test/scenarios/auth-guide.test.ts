import { describe, expect, test } from "bun:test"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { verify } from "../../src/lib/signature"
import { codeBlocks } from "../docs/code-blocks"
import { type Belfry, startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { root } from "../harness/migrations"
import { DEBIAN_PYTHON, locate, missing, missingModules } from "../harness/peers"
import { freePort } from "../harness/ports"
import { until } from "./mails"
import { LARGE, openMonitor } from "./monitor"
import { write } from "./page-mails"
import { lean } from "./serve"
import { mailTo, siteOf } from "./shop"

interface Application {
  id: string
  public_keys: { live: string; test: string }
}

/** The blocks of the guide, by their language. */
const blocks = new Map(codeBlocks("docs/auth.md").map(({ language, code }) => [language, code]))

/** A server of the guide that verifies tokens: what it answers to a token. */
async function verifier(server: Belfry, name: string, command: string[], issuer: string) {
  const folder = join(server.home, name)
  mkdirSync(folder)
  const [file = ""] = command.slice(-1)
  writeFileSync(join(folder, file), blocks.get(name) ?? "")
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
  const port = await freePort()
  const env = { PATH: process.env.PATH ?? "", ISSUER: issuer, PORT: String(port) }
  const child = Bun.spawn(command, { cwd: folder, env, stdio: ["ignore", "inherit", "inherit"] })
  const url = `http://127.0.0.1:${port}`
  await until("the verifier", () => fetch(url).catch(() => undefined))
  return {
    async ask(token: string) {
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      return [answer.status, (await answer.text()).trim()]
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

const without =
  missing("chromium-headless-shell", "node", "tmux") || missingModules("jwt", "cryptography")

describe.skipIf(without)("the guide of end users", () => {
  test("a page signs somebody up, servers verify the token, and the monitor ends the session", async () => {
    await using server = await startBelfry({ env: lean })
    const deliveries: { headers: Record<string, string>; body: string }[] = []
    using receiver = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        deliveries.push({ headers: request.headers.toJSON(), body: await request.text() })
        return new Response("ok")
      },
    })
    const hook = { url: receiver.url.href, events: ["user.*"] }
    const { secret } = await write<{ secret: string }>(server, "POST", "/v1/webhooks", hook)
    const made = await server.cli("applications", "create", "--name", "Acme", "--json")
    const { id, public_keys } = JSON.parse(made.stdout) as Application

    const page = (blocks.get("html") ?? "")
      .replace("svca_test_pub_YOURS", public_keys.test)
      .replace("http://localhost:8080", server.url)
    using site = siteOf(() => page)
    await using browser = await startBrowser()
    await using tab = await browser.open(site.origin)
    await tab.fill("Email", "ann@acme.test")
    await tab.click("I am new here")
    await tab.click("Sign in")
    await tab.shows("We sent a code to")
    await tab.fill("Code", await mailTo(server, "ann@acme.test", /\b\d{6}\b/))
    await tab.click("Sign in")
    await tab.shows("Hello, ann@acme.test.")
    const first = await tab.read<string>("localStorage.refresh_token")

    const headers = { "x-application-key": public_keys.test, "content-type": "application/json" }
    const refreshed = await fetch(`${server.url}/v1/auth/sessions/refresh`, {
      method: "POST",
      headers,
      body: JSON.stringify({ refresh_token: first }),
    })
    const { access_token } = ((await refreshed.json()) as { data: { tokens: Tokens } }).data.tokens
    const bearer = { authorization: `Bearer ${access_token}` }
    const me = () => fetch(`${server.url}/v1/auth/users/me`, { headers: bearer })
    const own = (await (await me()).json()) as { data: { id: string } }

    const issuer = `${server.url}/v1/auth/applications/${id}`
    const right = [200, `user ${own.data.id} of test`]
    const wrong = [401, "sign in first"]
    const forged = `${access_token.slice(0, -8)}AAAAAAAA`
    for (const [name, command] of [
      ["js", [locate("node") ?? "", "server.mjs"]],
      ["python", [DEBIAN_PYTHON, "server.py"]],
    ] as const) {
      await using theirs = await verifier(server, name, [...command], issuer)
      expect([name, await theirs.ask(access_token)]).toEqual([name, right])
      expect([name, await theirs.ask(forged)]).toEqual([name, wrong])
    }

    await using screen = await openMonitor(server, LARGE)
    await screen.shows("● live")
    await screen.press("8", "/")
    await screen.press("environment:test", "Enter")
    await screen.shows("ann@acme.test")
    await screen.press("Enter")
    await screen.shows("LAST MAILS OF SIGN-INS")
    await screen.press("R")
    await screen.shows("End all sessions of ann@acme.test?")
    await screen.press("y")
    await until("the end of the session", async () => (await me()).status === 401)

    const typed = (type: string) => deliveries.some(({ body }) => JSON.parse(body).type === type)
    await until("its events", async () => typed("user.created") && typed("user.session_revoked"))
    for (const { headers: signed, body } of deliveries)
      expect(verify({ secret, headers: signed, body, now_seconds: Date.now() / 1000 })).toBe("ok")
  }, 60_000)

  test("a page of another origin may not use the key of live, and reads nothing", async () => {
    await using server = await startBelfry({ env: lean })
    const made = await server.cli("applications", "create", "--name", "Acme", "--json")
    const { public_keys } = JSON.parse(made.stdout) as Application
    const headers = { "x-application-key": public_keys.live, origin: "https://elsewhere.test" }
    const refused = await fetch(`${server.url}/v1/auth/config`, { headers })
    const allowed = refused.headers.get("access-control-allow-origin")
    expect([refused.status, allowed]).toEqual([403, null])
  })

  test("a scanner opens the mailed link, and the person still signs in by it", async () => {
    await using server = await startBelfry({ env: lean })
    using shop = siteOf(() => "<!doctype html><title>Shop</title><h1>Back in the shop</h1>")
    const back = `${shop.origin}/back`
    const words = ["applications", "create", "--name", "Acme", "--redirect-url", back, "--json"]
    const { public_keys } = JSON.parse((await server.cli(...words)).stdout) as Application
    const headers = { "x-application-key": public_keys.test, "content-type": "application/json" }
    const post = (path: string, body: object) =>
      fetch(`${server.url}/v1/auth/magic-link/${path}`, {
        ...{ method: "POST", headers, body: JSON.stringify(body) },
      })
    const wanted = { email: "bob@acme.test", purpose: "register", redirect_url: back }
    expect((await post("send", wanted)).status).toBe(200)
    const link = await mailTo(server, "bob@acme.test", /http\S+\/a\/\S+/)
    for (const method of ["GET", "HEAD", "GET"])
      expect((await fetch(link, { method })).status).toBe(200)
    await using browser = await startBrowser()
    await using tab = await browser.open(link, { scripts: false })
    await tab.press("Tab")
    await tab.pressAndLoad("Enter")
    const code = new URL(await tab.read<string>("location.href")).searchParams.get("code")
    const signed = await post("verify", { token: code })
    expect(signed.status).toBe(201)
    expect((await post("verify", { token: code })).status).toBe(422)
  }, 60_000)
})

interface Tokens {
  access_token: string
}
