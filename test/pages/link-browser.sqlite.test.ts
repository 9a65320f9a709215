import { afterAll, describe, expect, test } from "bun:test"
import type { KeyInput } from "puppeteer-core"
import { LINKS } from "../../src/auth/mailed-links"
import { LANGUAGES } from "../../src/pages/unsubscribe-words"
import { newApplication } from "../harness/application"
import { type BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { anEndUser, mailedLink } from "../harness/mailed-links"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const { url } = service.listen()
const browser: TestBrowser | undefined = without ? undefined : await startBrowser()
afterAll(() => browser?.[Symbol.asyncDispose]())

const open: TestBrowser["open"] = (path, look) => {
  if (!browser) throw new Error("there is no browser")
  return browser.open(`${url}${path}`, look)
}

/** The page of the application, to which the button leads. */
const application_page = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => new Response("<!doctype html><title>Shop</title><h1>Back in the shop</h1>", HTML),
})
const HTML = { headers: { "content-type": "text/html" } }
afterAll(() => application_page.stop(true))
const BACK = `http://127.0.0.1:${application_page.port}/back`

const BRANDING = { name: "Acme <Ltd>", primary_color: "#ffcc00" }

async function linked(kind: keyof typeof LINKS, redirect_url: string | null = BACK) {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: { branding: BRANDING } })
  const application = await newApplication(service, project)
  const user = await anEndUser(service, application)
  const token = await mailedLink(service, application, kind, { redirect_url, user_id: user.id })
  return `/a/${token}`
}

const heading = (page: BrowserPage) => page.read<string>("document.querySelector('h1').textContent")

describe.skipIf(without)("in Chromium", () => {
  test("axe-core and a narrow window find nothing wrong with any page, in five languages", async () => {
    const page = await open("/a/nothing", { dark: true })
    await page.resize(320)
    const kinds = Object.keys(LINKS) as (keyof typeof LINKS)[]
    const paths = await Promise.all(kinds.map((kind) => linked(kind)))
    paths.push(await linked("password_reset", null), "/a/nothing")
    for (const language of LANGUAGES) {
      for (const path of paths) {
        await page.goto(`${url}${path}?lang=${language}`)
        const faults = [...(await page.accessibilityProblems()), ...(await page.layoutFaults())]
        expect([language, path, ...faults]).toEqual([language, path])
      }
    }
  })

  test("a person signs in by keyboard, without scripts, and lands in the application with a code", async () => {
    const page = await open(await linked("magic_link"), { scripts: false })
    expect(await heading(page)).toBe("Sign in")
    await page.press("Tab")
    expect(await page.read<string>("document.activeElement.textContent.trim()")).toBe("Sign in")
    await page.pressAndLoad("Enter")
    expect(await heading(page)).toBe("Back in the shop")
    const address = await page.read<string>("location.href")
    expect(address).toMatch(/\/back\?code=belfry_code_[\w-]{43}$/)
    expect(page.problems).toEqual([])
  })

  test("a person chooses a password by keyboard, without scripts, after a weak one", async () => {
    const page = await open(await linked("password_reset", null), { scripts: false })
    for (const password of ["short", "Quiet-River-42"]) {
      await page.press("Tab")
      await page.press(...([...password] as KeyInput[]))
      await page.pressAndLoad("Enter")
    }
    expect(await heading(page)).toBe("Your password is changed")
  })
})
