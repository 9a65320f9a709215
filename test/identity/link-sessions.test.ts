import { describe, expect, test } from "bun:test"
import { LinkSessions } from "../../src/identity/page-sessions"
import { newToken } from "../../src/sign-in/tokens"
import { refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { dial, refusedUpgrade } from "../harness/socket"
import { BEHIND_PROXY } from "./entrance"
import { pageBrowser, SAME_ORIGIN } from "./page-browser"

quietLog()
const clock = movableClock()
const service = await sharedService({
  ...BEHIND_PROXY,
  socket_times: { look_ms: 50, ping_ms: 60_000, silence_ms: 60_000, stuck_ms: 60_000 },
})
const { links } = service.parts

const HERE = { host: "127.0.0.1:8080", origin: "http://127.0.0.1:8080" }

const linkOf = ({ key_id, project_id }: TestProject): string => {
  links.open({ key_id, project_id }, "http://127.0.0.1:8080")
  const { hash, origin, pathname } = new URL(links.newLink())
  expect([origin, pathname]).toEqual(["http://127.0.0.1:8080", "/"])
  return hash.replace("#link=", "")
}

/** As the page of the link does, on the machine of the server. */
function redeem(code: string, headers: Record<string, string> = {}) {
  const all = { ...SAME_ORIGIN, ...HERE, ...headers }
  return service.anybody.call("POST", "/session/link", { body: { code }, headers: all })
}

/** A page that is signed in with the rights of the project's key. */
async function linkedPage(project: TestProject) {
  const answer = await redeem(linkOf(project))
  expect(answer.status).toBe(200)
  const cookie = /^__Host-belfry=([^;]*);/.exec(answer.headers.get("set-cookie") ?? "")?.[1] ?? ""
  return { token: answer.body.data.access_token as string, browser: pageBrowser(service, cookie) }
}

describe("the link of up", () => {
  test("signs in once, with the rights of its key and no user", async () => {
    const project = await service.project()
    const code = linkOf(project)
    const first = await redeem(code)
    expect([first.status, first.body.data]).toEqual([
      200,
      {
        access_token: expect.any(String),
        expires_in: 900,
        user: null,
        accounts: [],
        project_id: project.project_id,
      },
    ])
    const again = await redeem(code)
    expect(refusal(again)).toEqual([401, "unauthorized"])
    expect(again.body.error.details.reason).toBe("link_not_valid")
    expect(again.body.error.message).toContain("belfry open")
    expect(again.headers.get("set-cookie")).toBeNull()
  })

  test("asked for twice at the same moment signs in once", async () => {
    const code = linkOf(await service.project())
    const answers = await Promise.all(Array.from({ length: 8 }, () => redeem(code)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test("works for ten minutes", async () => {
    const project = await service.project()
    const [one, other] = [linkOf(project), linkOf(project)]
    clock.advance({ seconds: 595 })
    expect((await redeem(one)).status).toBe(200)
    clock.advance({ seconds: 6 })
    expect(refusal(await redeem(other))).toEqual([401, "unauthorized"])
  })

  test.each([
    ["another address", { "x-forwarded-for": "192.0.2.9" }],
    ["behind a proxy on this machine", { "x-forwarded-for": "127.0.0.1" }],
    ["a tunnel that hides the address", { forwarded: "for=unknown" }],
    ["a proxy that tells its name", { via: "1.1 tunnel" }],
    ["a proxy that says nothing of itself", { origin: "https://mail.example.com" }],
    ["another name of this machine", { host: "belfry.test" }],
    ["a name that an attacker points here", { host: "127.0.0.1.evil.test:8080" }],
    ["no name at all", { host: "" }],
  ])("opens nothing from elsewhere: %s", async (_, headers) => {
    const code = linkOf(await service.project())
    const answer = await redeem(code, headers)
    expect(refusal(answer)).toEqual([401, "unauthorized"])
    expect(answer.body.error.details.reason).toBe("not_this_machine")
    expect(answer.headers.get("set-cookie")).toBeNull()
    expect((await redeem(code)).status).toBe(200) // its owner is not locked out
  })

  test("works under every name of the loopback", async () => {
    const project = await service.project()
    for (const host of ["localhost:8080", "127.0.0.1", "[::1]:8080", "127.3.2.1:80"]) {
      expect([host, (await redeem(linkOf(project), { host })).status]).toEqual([host, 200])
    }
  })

  test("cannot be guessed, and is not taken from another server", async () => {
    const project = await service.project()
    const own = linkOf(project)
    const elsewhere = new LinkSessions()
    elsewhere.open(project, "http://127.0.0.1:1")
    const foreign = elsewhere.newLink().split("#link=")[1] ?? ""
    for (const code of ["", "x", newToken("link"), own.slice(0, -1), `${own}x`, foreign]) {
      expect([code, refusal(await redeem(code))]).toEqual([code, [401, "unauthorized"]])
    }
  })

  test("is given out by no server without a key of its own, and only the newest twenty count", async () => {
    expect(() => new LinkSessions().newLink()).toThrow("belfry serve")
    const project = await service.project()
    const codes = Array.from({ length: 21 }, () => linkOf(project))
    expect((await redeem(codes[0] ?? "")).status).toBe(401)
    expect((await redeem(codes[1] ?? "")).status).toBe(200)
  })
})

describe("a page with the rights of a key", () => {
  test("is that key to the API: its project, its scopes, its limits", async () => {
    const project = await service.project({ scopes: ["email:read", "api_keys:read"] })
    const { token, browser } = await linkedPage(project)
    expect((await browser.api("/v1/emails", token)).status).toBe(200)
    const keys = await browser.api("/v1/api-keys", token)
    expect(keys.body.data.map(({ id }: { id: string }) => id)).toEqual([project.key_id])
    const refused = await browser.api("/v1/templates", token)
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details.required_scope).toBe("templates:read")
    expect((await browser.api("/v1/session", token)).body.error.details.required_role).toBe("any")
    const limited = await service.project({ ip_addresses: ["192.0.2.1"] })
    const elsewhere = await linkedPage(limited)
    expect(refusal(await browser.api("/v1/emails", elsewhere.token))).toEqual([
      403,
      "ip_not_allowed",
    ])
  })

  test("is nobody where people are meant, as its key is", async () => {
    const { token } = await linkedPage(await service.project())
    const headers = { authorization: `Bearer ${token}` }
    const asked = { headers, body: { name: "Kim", password: "Some-Horse-7" } }
    const answer = await service.anybody.call("POST", "/v1/invitations/x/accept", asked)
    expect(refusal(answer)).toEqual([404, "not_found"])
  })

  test("stays signed in by its cookie, which changes at each exchange", async () => {
    const { browser } = await linkedPage(await service.project())
    const seen = new Set([browser.jar.cookie])
    for (let month = 0; month < 3; month++) {
      clock.advance({ seconds: 29 * 86_400 })
      const next = await browser.exchange()
      expect([next.status, next.body.data.user]).toEqual([200, null])
      expect((await browser.api("/v1/emails", next.body.data.access_token)).status).toBe(200)
      seen.add(browser.jar.cookie)
    }
    expect(seen.size).toBe(4)
    clock.advance({ seconds: 30 * 86_400 + 1 })
    expect([(await browser.exchange()).status, browser.jar.cookie]).toEqual([401, ""])
  })

  test("may send its cookie twice within ten seconds, from two tabs", async () => {
    clock.freeze()
    const { browser } = await linkedPage(await service.project())
    const { cookie } = browser.jar
    const tabs = Array.from({ length: 4 }, () => pageBrowser(service, cookie))
    await Promise.all(tabs.map((tab) => tab.exchange()))
    expect(new Set(tabs.map(({ jar }) => jar.cookie)).size).toBe(1)
    const [one, other] = tabs
    await one?.exchange()
    clock.advance({ seconds: 9 })
    expect((await pageBrowser(service, cookie).exchange()).status).toBe(200) // two steps behind
    expect((await other?.exchange())?.status).toBe(200)
  })

  test("is signed out when a cookie of before is used, ten seconds later or long ago", async () => {
    for (const steps of [1, 3]) {
      const { browser } = await linkedPage(await service.project())
      const thief = pageBrowser(service, browser.jar.cookie)
      let token = ""
      for (let step = 0; step < steps; step++) {
        token = (await browser.exchange()).body.data.access_token
        clock.advance({ seconds: 11 })
      }
      expect(refusal(await thief.exchange())).toEqual([401, "unauthorized"])
      expect((await browser.api("/v1/emails", token)).status).toBe(401)
      expect((await browser.exchange()).status).toBe(401)
    }
  })

  test("is out at once when its key is revoked, and when it signs out", async () => {
    const project = await service.project()
    const [one, other] = [await linkedPage(project), await linkedPage(project)]
    const stolen = one.browser.jar.cookie
    await one.browser.signOut()
    expect((await one.browser.api("/v1/emails", one.token)).status).toBe(401)
    expect((await pageBrowser(service, stolen).exchange()).status).toBe(401)
    expect((await other.browser.api("/v1/emails", other.token)).status).toBe(200)
    await project.call("DELETE", `/v1/api-keys/${project.key_id}`)
    expect((await other.browser.api("/v1/emails", other.token)).status).toBe(401)
    const next = await other.browser.exchange()
    expect([refusal(next), other.browser.jar.cookie]).toEqual([[401, "unauthorized"], ""])
  })

  test("is out after a restart of the server, with its access token and its cookie", async () => {
    const project = await service.project()
    const { token, browser } = await linkedPage(project)
    const { access } = service.parts
    const bearer = await access.verify(token)
    expect(bearer).toMatchObject({ key_id: project.key_id })
    const started_anew = new LinkSessions()
    expect(() => started_anew.require(bearer as never)).toThrow("over")
    expect(() => started_anew.exchange(browser.jar.cookie)).toThrow("over")
  })

  test("cannot be had with a token that names another key, or with the session of another", async () => {
    const [mine, theirs] = [await service.project(), await service.project()]
    const { token } = await linkedPage(mine)
    const { access, store, verifyAccess } = service.parts
    const { session_id } = await access.verify(token)
    const forged = await store.tx((tx) => access.sign(tx, { key_id: theirs.key_id, session_id }))
    expect(verifyAccess(forged)).rejects.toMatchObject({ code: "unauthorized" })
    const as_person = await store.tx((tx) => access.sign(tx, { user_id: mine.key_id, session_id }))
    const { status } = await pageBrowser(service).api("/v1/emails", as_person)
    expect(status).toBe(401)
  })
})

describe("the stream of events", () => {
  const { url } = service.listen()
  const offering = (token: string) => ({ protocols: ["svc.events.v1", `bearer.${token}`] })

  test("takes the token of a page as a subprotocol, and answers with its own protocol alone", async () => {
    const project = await service.project()
    const { token } = await linkedPage(project)
    for (const one of [token, project.key]) {
      using socket = await dial(url, "", offering(one))
      expect(socket.protocol).toBe("svc.events.v1")
    }
    using socket = await dial(url, "", { protocols: [`bearer.${token}`, "svc.events.v1"] })
    expect(socket.protocol).toBe("svc.events.v1")
  })

  test("ends with the session of the page", async () => {
    const { token, browser } = await linkedPage(await service.project())
    const socket = await dial(url, "", offering(token))
    await browser.signOut()
    expect(await socket.closed).toMatchObject({ code: 4401 })
  })

  test("refuses a token that is none, and one beside another credential", async () => {
    const [mine, theirs] = [await service.project(), await service.project()]
    const { token } = await linkedPage(mine)
    const ask = (protocols: string, headers = {}) =>
      refusedUpgrade(url, "", { "sec-websocket-protocol": protocols, ...headers })
    for (const offered of ["x", "", "a.b.c", `${token}x`]) {
      expect(await ask(`svc.events.v1, bearer.${offered}`)).toMatchObject({ status: 401 })
    }
    const both = { "x-api-key": theirs.key }
    expect(await ask(`svc.events.v1, bearer.${token}`, both)).toMatchObject({ status: 401 })
    const two = { authorization: `Bearer ${theirs.key}` }
    expect(await ask(`svc.events.v1, bearer.${token}`, two)).toMatchObject({ status: 401 })
    const offers = `svc.events.v1, bearer.${token}, bearer.${theirs.key}`
    expect(await ask(offers)).toMatchObject({ status: 401 })
    expect(await ask(`bearer.${token}`)).toMatchObject({ reason: "subprotocol_required" })
  })

  test("is the only kind of route that does", async () => {
    const { token } = await linkedPage(await service.project())
    const headers = { "sec-websocket-protocol": `svc.events.v1, bearer.${token}` }
    const { status } = await service.anybody.call("GET", "/v1/emails", { headers })
    expect(status).toBe(401)
  })
})
