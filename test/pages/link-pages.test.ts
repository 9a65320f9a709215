import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import * as endUsers from "../../src/auth/end-users"
import type { LINKS } from "../../src/auth/mailed-links"
import { userLinks } from "../../src/auth/tables"
import { events } from "../../src/events/tables"
import { hashOfToken } from "../../src/sign-in/tokens"
import { newApplication } from "../harness/application"
import type { Reply } from "../harness/client"
import { movableClock } from "../harness/clock"
import { anEndUser, mailedLink } from "../harness/mailed-links"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const APP = "https://app.example.test/back?tab=1"

async function linked(kind: keyof typeof LINKS, redirect_url: string | null = APP) {
  const project = await service.project()
  const application = await newApplication(service, project)
  const status = kind === "invitation" ? "invited" : "active"
  const user = await anEndUser(service, application, { email: "ann@example.test", status })
  const token = await mailedLink(service, application, kind, { redirect_url, user_id: user.id })
  return { project, application, user, token, path: `/a/${token}` }
}

const look = (path: string, method = "GET", headers = {}) =>
  service.anybody.call(method, path, { headers })

const press = (path: string, fields: Record<string, string> = {}) =>
  service.anybody.call("POST", path, {
    body: new URLSearchParams(fields).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  })

const titleOf = ({ text }: Reply) => /<h1>(.*)<\/h1>/.exec(text)?.[1]
const seen = (reply: Reply) => [reply.status, titleOf(reply)]

const rowOf = async (token: string) => {
  const mine = eq(userLinks.token_hash, hashOfToken(token))
  return (await store.read.select().from(userLinks).where(mine))[0]
}

const codeOf = ({ headers }: Reply) => {
  const url = new URL(headers.get("location") ?? "about:blank")
  return { url, code: url.searchParams.get("code") ?? "" }
}

const GONE = [422, "This link works no more"]

describe("a page behind a link", () => {
  test.each(["magic_link", "verify_email", "password_reset", "invitation"] as const)(
    "%s changes nothing when a scanner looks, and may not be kept or framed",
    async (kind) => {
      const { token, path, user } = await linked(kind)
      const before = await rowOf(token)
      for (const method of ["GET", "HEAD", "GET"]) {
        const answer = await look(path, method)
        expect(answer.status).toBe(200)
        expect(answer.headers.get("cache-control")).toBe("no-store")
        expect(answer.headers.get("referrer-policy")).toBe("no-referrer")
        expect(answer.headers.get("set-cookie")).toBeNull()
        const policy = answer.headers.get("content-security-policy")
        expect(policy).toContain("default-src 'none'")
        expect(policy).toContain("frame-ancestors 'none'")
        expect(policy).toContain("form-action 'self' https://app.example.test;")
      }
      expect(await rowOf(token)).toEqual(before)
      expect(await endUsers.find(store.read, user.project_id, user.id)).toEqual(user)
    },
  )

  test.each([
    ["magic_link", 60],
    ["password_reset", 900],
    ["invitation", 900],
  ] as const)("%s hands over a code for %i seconds, once", async (kind, seconds) => {
    const { token, path } = await linked(kind)
    clock.freeze()
    const answer = await press(path)
    expect(answer.status).toBe(302)
    expect(answer.headers.get("cache-control")).toBe("no-store")
    const { url, code } = codeOf(answer)
    expect(url.href).toBe(`${APP}&code=${code}`)
    const [link, handed] = [await rowOf(token), await rowOf(code)]
    expect(handed).toMatchObject({ kind: `${kind}_code`, email: "ann@example.test", used_at: null })
    expect(handed?.user_id).toBe(link?.user_id ?? "")
    expect(Date.parse(handed?.expires_at ?? "") - Date.parse(handed?.created_at ?? "")).toBe(
      seconds * 1000,
    )
    expect(seen(await press(path))).toEqual(GONE)
    expect(seen(await look(path))).toEqual([404, "This link works no more"])
    expect(seen(await look(`/a/${code}`))).toEqual([404, "This link is not valid"])
  })

  test("leads fifty who press at once to one code", async () => {
    const { path } = await linked("magic_link")
    const answers = await Promise.all(Array.from({ length: 50 }, () => press(path)))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([302, ...Array(49).fill(422)])
  })

  test("is over after its time, and never was one with another token", async () => {
    const { path } = await linked("magic_link")
    clock.advance({ seconds: 901 })
    expect(seen(await look(path))).toEqual([404, "This link works no more"])
    expect(seen(await press(path))).toEqual(GONE)
    for (const token of ["nothing", `${path.slice(3)}A`]) {
      expect(seen(await look(`/a/${token}`))).toEqual([404, "This link is not valid"])
      expect(seen(await press(`/a/${token}`))).toEqual([404, "This link is not valid"])
    }
  })

  test("has the project's branding, and where that says nothing, the application's name", async () => {
    const { project, path } = await linked("magic_link")
    expect((await look(path)).text).toContain("<header><p><bdi>Shop</bdi></p></header>")
    const branding = { name: "Acme <Ltd>", primary_color: "#ffcc00" }
    await project.call("PATCH", "/v1/settings", { body: { branding } })
    const { text } = await look(path)
    expect(text).toContain("Sign in to <bdi>Acme &lt;Ltd&gt;</bdi> as")
    expect(text).toContain("--accent:rgb(255 204 0)")
  })

  test("speaks the language of the browser, or the one that its address names", async () => {
    const { path } = await linked("magic_link")
    expect(titleOf(await look(path, "GET", { "accept-language": "de-AT" }))).toBe("Anmelden")
    const arabic = await look(`${path}?lang=ar`)
    expect(arabic.text).toContain('<html lang="ar" dir="rtl">')
    expect(arabic.text).toContain('action="?lang=ar"')
  })
})

describe("a verification", () => {
  const verified = async ({ user }: Awaited<ReturnType<typeof linked>>) => {
    const { email_verified } = await endUsers.find(store.read, user.project_id, user.id)
    const mine = eq(events.project_id, user.project_id)
    const told = await store.read.select().from(events).where(mine)
    return [email_verified, ...told.map(({ type }) => type).filter((type) => /^user/.test(type))]
  }

  test("leads to the application without a code", async () => {
    const link = await linked("verify_email")
    const answer = await press(link.path)
    expect([answer.status, answer.headers.get("location")]).toEqual([302, APP])
    expect(await verified(link)).toEqual([true, "user.email_verified"])
    expect(seen(await press(link.path))).toEqual(GONE)
  })

  test("without a redirect ends with a page, and is told once however many press", async () => {
    const link = await linked("verify_email", null)
    const answers = await Promise.all(Array.from({ length: 8 }, () => press(link.path)))
    const titles = answers.map(titleOf).sort()
    expect(titles[7]).toBe("Your email address is confirmed")
    expect(titles.slice(0, 7)).toEqual(Array(7).fill(GONE[1]))
    expect(await verified(link)).toEqual([true, "user.email_verified"])
  })
})

describe("a reset without a redirect", () => {
  test("takes the new password on the page, and a weak one leaves the link as it is", async () => {
    const { user, path } = await linked("password_reset", null)
    expect((await look(path)).text).toContain('autocomplete="new-password"')
    const weak = await press(path, { new_password: "short" })
    expect(seen(weak)).toEqual([422, "Choose a new password"])
    expect(weak.text).toContain('role="alert">Use at least 8 characters')
    expect(weak.text).not.toContain("short<")
    const right = await press(path, { new_password: "Quiet-River-42" })
    expect(seen(right)).toEqual([200, "Your password is changed"])
    const { password_hash } = await endUsers.find(store.read, user.project_id, user.id)
    expect(await Bun.password.verify("Quiet-River-42", password_hash ?? "")).toBe(true)
    expect(seen(await press(path, { new_password: "Quiet-River-43" }))).toEqual(GONE)
  })
})
