import { describe, expect, test } from "bun:test"
import { generate } from "otplib"
import { newId } from "../../src/core/ids"
import type { Reply } from "../harness/client"
import { movableClock } from "../harness/clock"
import { person, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { BEHIND_PROXY, PASSWORD, signIn, stranger, visitor } from "../identity/entrance"
import { runForgotten } from "../identity/forgotten"

const clock = movableClock()
const service = await sharedService(BEHIND_PROXY)

/** As a browser would send a form. */
function browser() {
  const door = stranger(service)
  const form = { "content-type": "application/x-www-form-urlencoded" }
  return {
    look: (path: string) => door.get(path),
    send: (path: string, fields: Record<string, string>) =>
      door.call("POST", path, { body: new URLSearchParams(fields).toString(), headers: form }),
  }
}

const hidden = ({ text }: Reply, name: string) =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ""

const titleOf = ({ text }: Reply) => /<h1>(.*)<\/h1>/.exec(text)?.[1]
const complaintOf = ({ text }: Reply) => /role="alert">([^<]*)</.exec(text)?.[1]

async function invited(email: string, role = "member") {
  const { owner, account_id } = await team(service)
  await owner.post("/v1/accounts/me/members/invite", { email, role })
  const mail = service.mails.findLast(({ to }) => to === email)
  return { path: /\/invitation\/\S+/.exec(mail?.text ?? "")?.[0] ?? "", account_id, owner }
}

test("pages run no script, load nothing, are framed by nobody and tell nobody their address", async () => {
  const { path } = await invited(`${newId()}@people.test`)
  for (const one of ["/device", path, "/invitation/x", "/password-reset/x"]) {
    const { headers, text, status } = await browser().look(one)
    expect([one, status]).toEqual([
      one,
      one.endsWith("/x") ? (one.startsWith("/i") ? 404 : 422) : 200,
    ])
    const policy = headers.get("content-security-policy") ?? ""
    expect(policy).toStartWith("default-src 'none'; style-src 'sha256-")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(headers.get("content-type")).toBe("text/html;charset=utf-8")
    expect(headers.get("cache-control")).toBe("no-store")
    expect(headers.get("referrer-policy")).toBe("no-referrer")
    expect(headers.get("x-request-id")).toMatch(/^req_/)
    expect(text).not.toMatch(/<script|src=|href="(?!data:)|\son\w+=|style="/i)
    const style = /<style>([^<]*)<\/style>/.exec(text)?.[1] ?? ""
    const digest = new Bun.CryptoHasher("sha256").update(style).digest("base64")
    expect(policy).toContain(digest)
  }
})

test("the start page says what this is and where to go, and every way leads somewhere", async () => {
  const start = await browser().look("/")
  expect([start.status, titleOf(start)]).toEqual([200, "Belfry"])
  expect(start.text).toContain("<title>Belfry</title>")
  const ways = [...start.text.matchAll(/<a href="([^"]+)"/g)].map(([, way = ""]) => way)
  expect(ways).toEqual(["/docs", "/v1/openapi.json", "/device", "/readyz"])
  for (const way of ways) expect([way, (await browser().look(way)).status]).toEqual([way, 200])
})

test("the reference answers with a slash behind it, too", async () => {
  const [plain, slash] = [await browser().look("/docs"), await browser().look("/docs/")]
  expect(slash.status).toBe(200)
  expect(slash.text).toBe(plain.text)
})

test("a page that the reference does not have leads back to it", async () => {
  for (const path of ["/docs/nothing", "/docs/guides/nothing", "/docs/errors/nothing"]) {
    const lost = await browser().look(path)
    expect([path, lost.status]).toEqual([path, 404])
    expect(lost.text).toContain('<a href="/docs">Open the reference</a>')
  }
})

test("every error names the page of its code", async () => {
  for (const path of ["/v1/emails", "/v1/nowhere", "/nowhere"]) {
    const { body } = await browser().look(path)
    expect(body.meta.docs).toBe(`/docs/errors/${body.error.code}`)
    const page = await browser().look(body.meta.docs)
    expect([page.status, titleOf(page)]).toEqual([200, `<code>${body.error.code}</code>`])
  }
})

test("pages say what went wrong as pages", async () => {
  clock.freeze() // the requests of one minute are counted
  const door = stranger(service)
  const json = await door.post("/device", { user_code: "x" })
  expect([json.status, titleOf(json)]).toEqual([400, "That did not work"])
  const large = await door.call("POST", "/device", { body: "x".repeat(70_000) })
  expect([large.status, titleOf(large)]).toEqual([413, "That did not work"])
  let last = json
  for (let tries = 0; tries < 61; tries++) last = await door.get("/device")
  expect([last.status, titleOf(last)]).toEqual([429, "That did not work"])
  expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(0)
})

describe("/device", () => {
  async function begun(client_name = "belfry on box") {
    const door = stranger(service)
    const { body } = await door.post("/v1/session/device", { client_name })
    const { device_code, user_code } = body.data as Record<string, string>
    const ask = async () => {
      clock.advance({ seconds: 6 })
      return door.post("/v1/session/device/token", { device_code })
    }
    return { user_code: user_code ?? "", ask }
  }

  test("shows who asks, and lets in whom the person approves", async () => {
    const { user } = await visitor(service)
    const { user_code, ask } = await begun("<b>evil</b>")
    const { look, send } = browser()
    const first = await look(`/device?user_code=${user_code}`)
    expect(first.text).toContain(`value="${user_code}"`)
    const asked = await send("/device", { user_code, email: user.email, password: PASSWORD })
    expect(asked.status).toBe(200)
    expect(asked.text).toContain("&lt;b&gt;evil&lt;/b&gt;")
    expect(asked.text).not.toContain(PASSWORD)
    expect((await ask()).status).toBe(422) // nothing is approved yet
    const fields = { user_code, ticket: hidden(asked, "ticket"), decision: "approve" }
    expect(titleOf(await send("/device", fields))).toBe("Approved")
    const got = await ask()
    expect([got.status, got.body.data.user.id]).toEqual([200, user.id])
    expect((await send("/device", fields)).status).toBe(404)
  })

  test("turns away what is denied, and whatever is no clear yes", async () => {
    const { user } = await visitor(service)
    for (const decision of ["deny", "", "approved"]) {
      const { user_code, ask } = await begun()
      const { send } = browser()
      const asked = await send("/device", { user_code, email: user.email, password: PASSWORD })
      await send("/device", { user_code, ticket: hidden(asked, "ticket"), decision })
      expect((await ask()).body.error.details.reason).toBe("denied")
    }
  })

  test("asks for the second factor where one is on", async () => {
    const me = await visitor(service)
    const { body } = await me.post("/v1/users/me/mfa/enroll")
    const { secret, backup_codes } = body.data
    await me.post("/v1/users/me/mfa/verify", { code: await generate({ secret }) })
    const { user_code } = await begun()
    const { send } = browser()
    const credentials = { user_code, email: me.user.email, password: PASSWORD }
    const without = await send("/device", { ...credentials, code: "" })
    expect([without.status, complaintOf(without)]).toEqual([
      401,
      "A second factor is on. Enter the code of your authenticator app, too.",
    ])
    const wrong = await send("/device", { ...credentials, code: "aaaaa-bbbbb" })
    expect(wrong.status).toBe(401)
    const right = await send("/device", { ...credentials, code: backup_codes[0] })
    expect(hidden(right, "ticket")).not.toBe("")
    const again = await send("/device", { ...credentials, code: backup_codes[0] })
    expect(again.status).toBe(401)
  })

  test("does not take a ticket that is old, of another code, or made up", async () => {
    const { user } = await visitor(service)
    const [one, other] = [await begun(), await begun()]
    const { send } = browser()
    const { user_code } = one
    const asked = await send("/device", { user_code, email: user.email, password: PASSWORD })
    const ticket = hidden(asked, "ticket")
    const decision = "approve"
    const swapped = await send("/device", { user_code: other.user_code, ticket, decision })
    expect(swapped.status).toBe(401)
    const [, until = "", mac = ""] = ticket.split(".")
    const stranger_id = (await person(service)).id
    const forgeries = [`${stranger_id}.${until}.${mac}`, `${newId()}.${until}.${mac}`]
    for (const forged of [...forgeries, "x", "", "..", `${ticket}x`]) {
      expect((await send("/device", { user_code, ticket: forged, decision })).status).toBe(401)
    }
    clock.advance({ seconds: 301 })
    expect((await send("/device", { user_code, ticket, decision })).status).toBe(401)
    expect((await one.ask()).body.error.details.reason).toBe("authorization_pending")
    expect((await other.ask()).body.error.details.reason).toBe("authorization_pending")
  })

  test("does not take a ticket of before a new password", async () => {
    const me = await visitor(service)
    const { user_code, ask } = await begun()
    const { send } = browser()
    const asked = await send("/device", { user_code, email: me.user.email, password: PASSWORD })
    const change = { current_password: PASSWORD, new_password: "New-Horse-88" }
    expect((await me.post("/v1/users/me/password", change)).status).toBe(200)
    const fields = { user_code, ticket: hidden(asked, "ticket"), decision: "approve" }
    expect((await send("/device", fields)).status).toBe(401)
    expect((await ask()).body.error.details.reason).toBe("authorization_pending")
  })

  test("says the same of an unknown address and a wrong password, and is throttled", async () => {
    const { user } = await visitor(service)
    const { user_code } = await begun()
    const answer = async (email: string, password: string) => {
      const page = await browser().send("/device", { user_code, email, password })
      return [page.status, complaintOf(page)]
    }
    const wrong = await answer(user.email, "Wrong-Horse-7")
    expect(wrong[0]).toBe(401)
    expect(await answer(`${newId()}@people.test`, PASSWORD)).toEqual(wrong)
    for (let tries = 0; tries < 9; tries++) await answer(user.email, "Wrong-Horse-7")
    expect((await answer(user.email, PASSWORD))[0]).toBe(429)
  })
})

describe("/invitation", () => {
  test("makes a new person a user and a member, once", async () => {
    const email = `${newId()}@people.test`
    const { path, account_id } = await invited(email, "admin")
    const { look, send } = browser()
    const page = await look(path)
    expect(page.text).toContain("invited as an admin")
    expect((await look(path)).status).toBe(200) // looking changes nothing
    const weak = await send(path, { name: "Kim", password: "weak" })
    expect([weak.status, weak.text.includes('value="Kim"')]).toEqual([422, true])
    const nameless = await send(path, { name: " ", password: PASSWORD })
    expect(nameless.status).toBe(422)
    const joined = await send(path, { name: "Kim", password: PASSWORD })
    expect([joined.status, titleOf(joined)]).toEqual([200, "You are in Team"])
    expect(joined.text).toContain("belfry login http://belfry.test")
    const me = await signIn(service, email)
    expect(me.session.accounts).toEqual([{ id: account_id, name: "Team", role: "admin" }])
    expect((await look(path)).status).toBe(404)
    expect((await send(path, { name: "Kim", password: PASSWORD })).status).toBe(404)
  })

  test("lets in a known person with his own password only", async () => {
    const me = await visitor(service)
    const { path, account_id } = await invited(me.user.email)
    const { look, send } = browser()
    expect((await look(path)).text).toContain("Sign in and join")
    expect((await send(path, { name: "Eve", password: "Other-Horse-7" })).status).toBe(401)
    expect((await send(path, { password: PASSWORD })).status).toBe(200)
    const { body } = await me.get("/v1/session")
    expect(body.data.accounts).toMatchObject([{ id: account_id, role: "member" }])
  })
})

test("/password-reset sets a new password with the link of the mail, once", async () => {
  const { user, ...me } = await visitor(service)
  await stranger(service).post("/v1/password/forgot", { email: user.email })
  await runForgotten(service)
  const mail = service.mails.findLast(({ to }) => to === user.email)
  const path = /\/password-reset\/\S+/.exec(mail?.text ?? "")?.[0] ?? ""
  const { look, send } = browser()
  const page = await look(path)
  expect(page.text).not.toContain(user.email)
  expect((await look(path)).status).toBe(200)
  expect(complaintOf(await send(path, { new_password: PASSWORD }))).toContain("last 5")
  expect(titleOf(await send(path, { new_password: "Page-Horse-9" }))).toBe(
    "Your password was changed",
  )
  expect((await look(path)).status).toBe(422)
  expect((await me.get("/v1/session")).status).toBe(401)
  await signIn(service, user.email, "Page-Horse-9")
})
