import { describe, expect, test } from "bun:test"
import { generate } from "otplib"
import { newToken } from "../../src/sign-in/tokens"
import { type Reply, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, registered, visitor } from "./entrance"
import { cookieIn, pageBrowser } from "./page-browser"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)
const DAY = 86_400

/** Somebody with a page that is signed in. */
async function signedInPage() {
  const user = await registered(service)
  const browser = pageBrowser(service)
  const { status, body } = await browser.signIn(user.email, PASSWORD)
  expect(status).toBe(200)
  return { user, browser, token: body.data.access_token as string }
}

const statusOf = async ({ me }: ReturnType<typeof pageBrowser>, token: string) =>
  (await me(token)).status

const tokenIn = ({ body }: Reply) => body.data.access_token as string

describe("signing in with a password", () => {
  test("gives the page an access token, and keeps the refresh token in a cookie alone", async () => {
    const user = await registered(service)
    const browser = pageBrowser(service)
    const answer = await browser.signIn(user.email, PASSWORD)
    expect([answer.status, Object.keys(answer.body.data).toSorted()]).toEqual([
      200,
      ["access_token", "accounts", "expires_in", "project_id", "user"],
    ])
    expect(answer.body.data).toMatchObject({
      expires_in: 900,
      project_id: null,
      user: { id: user.id },
    })
    const cookie = answer.headers.get("set-cookie") ?? ""
    expect(cookie).toMatch(
      /^__Host-belfry=belfry_refresh_[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict$/,
    )
    expect(answer.text).not.toContain(browser.jar.cookie)
    expect(answer.headers.get("cache-control")).toBe("no-store")
    expect(answer.headers.get("access-control-allow-origin")).toBeNull()
    expect(await statusOf(browser, tokenIn(answer))).toBe(200)
  })

  test("asks for the second factor first, and sets no cookie before", async () => {
    const me = await visitor(service)
    const { body } = await me.post("/v1/users/me/mfa/enroll")
    const { secret, backup_codes } = body.data
    await me.post("/v1/users/me/mfa/verify", { code: await generate({ secret }) })
    const browser = pageBrowser(service)
    const asked = await browser.signIn(me.user.email, PASSWORD)
    expect([asked.status, asked.body.data.mfa_required]).toEqual([200, true])
    expect([browser.jar.cookie, asked.body.data.access_token]).toEqual(["", undefined])
    const { token } = asked.body.data.mfa_challenge
    const answer = (code: string) => browser.call("POST", "/session/mfa", { body: { token, code } })
    expect(refusal(await answer("aaaaa-bbbbb"))).toEqual([401, "invalid_backup_code"])
    expect(browser.jar.cookie).toBe("")
    const right = await answer(backup_codes[0])
    expect([right.status, right.body.data.user.id]).toEqual([200, me.user.id])
    expect((await browser.exchange()).status).toBe(200)
  })

  test("is refused as at the API, with no cookie", async () => {
    const { email } = await registered(service)
    const browser = pageBrowser(service)
    expect(refusal(await browser.signIn(email, "Wrong-Horse-7"))).toEqual([401, "unauthorized"])
    const nothing = await browser.call("POST", "/session", { body: { email } })
    expect(refusal(nothing)).toEqual([422, "missing_required_field"])
    expect(nothing.headers.get("set-cookie")).toBeNull()
    let last = nothing
    for (let tries = 0; tries < 12; tries++) last = await browser.signIn(email, "Wrong-Horse-7")
    expect(refusal(last)).toEqual([429, "login_rate_limit_exceeded"])
  })

  test("never goes on with the cookie that the browser brought: that session ends", async () => {
    const attacker = await signedInPage()
    const planted = attacker.browser.jar.cookie
    const victim = await registered(service)
    const browser = pageBrowser(service, planted)
    const answer = await browser.signIn(victim.email, PASSWORD)
    expect(answer.body.data.user.id).toBe(victim.id)
    expect(browser.jar.cookie).not.toBe(planted)
    expect((await pageBrowser(service, planted).exchange()).status).toBe(401)
    expect(await statusOf(attacker.browser, attacker.token)).toBe(401)
    const made_up = pageBrowser(service, newToken("refresh"))
    const chosen = made_up.jar.cookie
    await made_up.signIn(victim.email, PASSWORD)
    expect(made_up.jar.cookie).not.toBe(chosen)
  })
})

describe("the cookie", () => {
  test("is exchanged for an access token and the next cookie, for 30 days from its last use", async () => {
    const { user, browser } = await signedInPage()
    const seen = new Set([browser.jar.cookie])
    for (let month = 0; month < 3; month++) {
      clock.advance({ seconds: 29 * DAY })
      const next = await browser.exchange()
      expect([next.status, next.body.data.user.id]).toEqual([200, user.id])
      expect(await statusOf(browser, tokenIn(next))).toBe(200)
      seen.add(browser.jar.cookie)
    }
    expect(seen.size).toBe(4)
    clock.advance({ seconds: 30 * DAY + 1 })
    const late = await browser.exchange()
    expect([refusal(late), browser.jar.cookie]).toEqual([[401, "unauthorized"], ""])
  })

  test("that is forged, empty or of another purpose opens nothing, and goes", async () => {
    const { session } = await visitor(service)
    const { browser } = await signedInPage()
    const forged = [
      ...["x", "belfry_refresh_", newToken("refresh"), newToken("page"), newToken("setup")],
      ...[session.access_token, `${browser.jar.cookie}x`, browser.jar.cookie.slice(0, -1)],
      browser.jar.cookie.replace("refresh", "page"),
    ]
    for (const cookie of ["", ...forged]) {
      const answer = await pageBrowser(service, cookie).exchange()
      expect([cookie, refusal(answer)]).toEqual([cookie, [401, "unauthorized"]])
      expect(answer.headers.get("set-cookie")).toStartWith("__Host-belfry=; Path=/; Max-Age=0;")
    }
    expect((await browser.exchange()).status).toBe(200)
  })

  test("is no credential of the API, with or without the page's headers", async () => {
    const { browser } = await signedInPage()
    for (const path of ["/v1/session", "/v1/emails", "/v1/users/me"]) {
      expect([path, (await browser.call("GET", path)).status]).toEqual([path, 401])
    }
    const refresh = await browser.call("POST", "/v1/session/refresh", { body: {} })
    expect(refusal(refresh)).toEqual([422, "missing_required_field"])
  })

  test("brings two tabs that ask at once the same next one", async () => {
    clock.freeze()
    const { browser } = await signedInPage()
    const { cookie } = browser.jar
    const [one, other] = [pageBrowser(service, cookie), pageBrowser(service, cookie)]
    const both = await Promise.all([one.exchange(), other.exchange()])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    expect(one.jar.cookie).toBe(other.jar.cookie)
    clock.advance({ seconds: 9 })
    const third = pageBrowser(service, cookie)
    expect((await third.exchange()).status).toBe(200)
    expect(third.jar.cookie).toBe(one.jar.cookie)
    expect((await one.exchange()).status).toBe(200)
  })

  test("that was used ten seconds ago ends the session of thief and owner", async () => {
    clock.freeze()
    const { browser, token } = await signedInPage()
    const thief = pageBrowser(service, browser.jar.cookie)
    const next = await browser.exchange()
    clock.advance({ seconds: 11 })
    expect(refusal(await thief.exchange())).toEqual([401, "unauthorized"])
    expect([await statusOf(browser, token), await statusOf(browser, tokenIn(next))]).toEqual([
      401, 401,
    ])
    expect(refusal(await browser.exchange())).toEqual([401, "unauthorized"])
  })

  test("that was stolen opens nothing after the sign-out, and neither do the access tokens", async () => {
    const { browser, token } = await signedInPage()
    const before = browser.jar.cookie
    const stolen = tokenIn(await browser.exchange())
    const { cookie } = browser.jar
    const out = await browser.signOut()
    expect([out.status, out.body.data, browser.jar.cookie]).toEqual([200, { success: true }, ""])
    expect(out.headers.get("set-cookie")).toContain("Max-Age=0")
    for (const old of [before, cookie]) {
      expect((await pageBrowser(service, old).exchange()).status).toBe(401)
    }
    expect([await statusOf(browser, token), await statusOf(browser, stolen)]).toEqual([401, 401])
    const again = await pageBrowser(service, cookie).signOut()
    expect([again.status, again.body.data]).toEqual([200, { success: true }])
  })

  test("ends with its session wherever that is ended, and with the user's right to sign in", async () => {
    const { browser, token } = await signedInPage()
    const other = pageBrowser(service)
    const { user } = await signedInPage()
    const mine = await other.signIn(user.email, PASSWORD)
    expect(mine.status).toBe(200)
    const headers = { authorization: `Bearer ${token}` }
    await service.anybody.call("DELETE", "/v1/session", { headers })
    expect((await browser.exchange()).status).toBe(401)
    expect((await other.exchange()).status).toBe(200)
  })

  test("signing out twice, or with nothing, is no error", async () => {
    for (const cookie of ["", "x", newToken("refresh"), `${newToken("page")}${"0".repeat(32)}`]) {
      expect([cookie, (await pageBrowser(service, cookie).signOut()).status]).toEqual([cookie, 200])
    }
  })
})

describe("a request that no page of this server made", () => {
  const without = (name: string) => ({ [name]: undefined as never })

  test.each([
    ["of another site", { "sec-fetch-site": "cross-site", origin: "https://evil.test" }],
    ["of a sister of this host", { "sec-fetch-site": "same-site" }],
    ["of nobody's page", { "sec-fetch-site": "none" }],
    [
      "of an older browser elsewhere",
      { ...without("sec-fetch-site"), origin: "https://evil.test" },
    ],
    ["of a sandboxed frame", { ...without("sec-fetch-site"), origin: "null" }],
    ["of another port", { ...without("sec-fetch-site"), origin: "http://belfry.test:81" }],
    ["of another scheme", { ...without("sec-fetch-site"), origin: "https://belfry.test" }],
    ["of nobody known", { ...without("sec-fetch-site"), ...without("origin") }],
    ["without the header", without("x-belfry-csrf")],
    ["with another value of it", { "x-belfry-csrf": "true" }],
  ])("%s is refused, and changes nothing", async (_, changed) => {
    const { user, browser } = await signedInPage()
    const { cookie } = browser.jar
    const asked: [string, string, unknown?][] = [
      ["POST", "/session", { email: user.email, password: PASSWORD }],
      ["POST", "/session/mfa", { token: "x", code: "123456" }],
      ["POST", "/session/link", { code: "x" }],
      ["POST", "/session/token"],
      ["DELETE", "/session"],
    ]
    for (const [method, path, body] of asked) {
      const headers = Object.fromEntries(
        Object.entries({ ...changed }).map(([name, value]) => [name, value ?? ""]),
      )
      const answer = await hostile(cookie, method, path, headers, body)
      expect([path, refusal(answer)]).toEqual([path, [403, "forbidden"]])
      expect(answer.headers.get("set-cookie")).toBeNull()
      expect(answer.headers.get("access-control-allow-origin")).toBeNull()
    }
    expect((await browser.exchange()).status).toBe(200)
  })

  /** A header with an empty value is left out. */
  function hostile(
    cookie: string,
    method: string,
    path: string,
    changed: Record<string, string>,
    body: unknown,
  ) {
    const own = {
      origin: "http://belfry.test",
      "sec-fetch-site": "same-origin",
      "x-belfry-csrf": "1",
      cookie: `__Host-belfry=${cookie}`,
      ...changed,
    }
    const headers = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""))
    return service.anybody.call(method, path, { headers, ...(body !== undefined && { body }) })
  }

  test("is told why before its body is read, and no preflight lets it through", async () => {
    const told = await hostile("", "POST", "/session", { "x-belfry-csrf": "" }, "no JSON")
    expect(told.body.error.details).toEqual({ reason: "csrf_header_missing" })
    const from = await hostile(
      "",
      "POST",
      "/session",
      { "sec-fetch-site": "cross-site" },
      "no JSON",
    )
    expect(from.body.error.details).toEqual({ reason: "cross_origin" })
    const preflight = await service.anybody.call("OPTIONS", "/session/token", {
      headers: {
        origin: "https://evil.test",
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-belfry-csrf",
      },
    })
    expect(preflight.status).toBe(404)
    expect(preflight.headers.get("access-control-allow-origin")).toBeNull()
  })

  test("of a form is refused, whatever its content type", async () => {
    const { browser, user } = await signedInPage()
    for (const type of ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"]) {
      const body = `email=${user.email}&password=${PASSWORD}`
      const headers = { "content-type": type }
      const answer = await browser.call("POST", "/session", { body, headers })
      expect([type, refusal(answer)]).toEqual([type, [400, "invalid_json"]])
    }
  })
})

test("a page under another name of this server, as a proxy shows it, is its own page", async () => {
  const { browser } = await signedInPage()
  const older = { "sec-fetch-site": "", origin: "http://mail.test:8080", host: "mail.test:8080" }
  const cookie = `__Host-belfry=${browser.jar.cookie}`
  const headers = { "x-belfry-csrf": "1", cookie, origin: older.origin, host: older.host }
  const answer = await service.anybody.call("POST", "/session/token", { headers })
  expect([answer.status, cookieIn(answer.headers) === undefined]).toEqual([200, false])
})

test("the routes of pages are no part of the API's description", async () => {
  const { text } = await service.anybody.get("/v1/openapi.json")
  const paths = Object.keys(JSON.parse(text).paths)
  expect(paths.filter((path) => path.startsWith("/session"))).toEqual([])
  expect(paths).toContain("/v1/session")
})
