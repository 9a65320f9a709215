import { afterAll, describe, expect, test } from "bun:test"
import { guides } from "../../../src/pages/docs/guides"
import { type BrowserPage, startBrowser, type TestBrowser } from "../../harness/browser"
import { missing } from "../../harness/peers"
import { sharedService } from "../../harness/shared-service"
import { sizes } from "../../harness/sizes"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const { url } = service.listen()
const chromium = without ? undefined : await startBrowser()
afterAll(() => chromium?.[Symbol.asyncDispose]())

const visit: TestBrowser["visit"] = (path, look, act) => {
  if (!chromium) throw new Error("there is no browser")
  return chromium.visit(`${url}${path}`, look, act)
}

/** The page of one operation, with the key of a project in the tab. */
async function withKey<Value>(path: string, act: (page: BrowserPage) => Promise<Value>) {
  const { key, call } = await service.project()
  const value = await visit("/docs", { screen: "desktop" }, async (page) => {
    await page.read(`sessionStorage.setItem("belfry-key", ${JSON.stringify(key)})`)
    await page.goto(`${url}${path}`)
    return await act(page)
  })
  return { value, call, key }
}

const PAGES = [
  "/docs",
  "/docs/emails",
  "/docs/postEmails",
  "/docs/getEmails",
  "/docs/guides/webhooks",
  "/docs/errors",
  "/docs/event-types#email.bounced",
  "/docs/errors/validation_error",
  "/docs/search?q=domain",
]

const SCREENS = (["phone", "desktop", "zoom", 320] as const).slice(0, sizes.looks)

describe.skipIf(without)("in Chromium", () => {
  /** What is wrong with how a page looks now. */
  async function faultsOf(page: BrowserPage) {
    const faults = [...(await page.layoutFaults()), ...(await page.accessibilityProblems())]
    const is_wide = await page.read<boolean>("document.documentElement.scrollWidth > innerWidth")
    return is_wide ? ["it scrolls sideways", ...faults] : faults
  }

  test.each(PAGES)(
    "%s overflows, hides and overlaps nothing, and breaks no rule of accessibility",
    async (path) => {
      await visit(path, {}, async (page) => {
        for (const screen of SCREENS) {
          await page.resize(screen)
          expect([screen, await faultsOf(page)]).toEqual([screen, []])
        }
      })
      await visit(path, { screen: "desktop", dark: true }, async (page) => {
        expect(["dark", await faultsOf(page)]).toEqual(["dark", []])
      })
    },
  )

  test("so it is with the guides on a phone", async () => {
    for (const { name } of guides.filter((_, at) => at % sizes.guide_steps === 0)) {
      await visit(`/docs/guides/${name}`, { screen: "phone" }, async (page) => {
        expect([name, await faultsOf(page)]).toEqual([name, []])
      })
    }
  })

  test("without script a page is whole, each language can be chosen, and the search leads somewhere", async () => {
    await visit("/docs/postEmails", { scripts: false }, async (page) => {
      await page.click("Python")
      await page.shows("urllib.request")
      expect(await page.read<number>("document.querySelectorAll('.copy, .try').length")).toBe(0)
      await page.fill("Search the reference", "suppressed_recipient")
      await page.pressAndLoad("Enter")
      await page.shows("suppressed_recipient")
      expect(await page.read<string>("location.pathname")).toBe("/docs/search")
    })
  })

  test("the search shows results while somebody types, and the keyboard alone opens one", async () => {
    await visit("/docs", {}, async (page) => {
      expect(page.requests.some((one) => one.endsWith("/docs/search-index"))).toBe(false)
      await page.press("/", "r", "o", "t", "a", "t", "e", "Space", "d", "k", "i", "m")
      await page.until("document.querySelectorAll('.found li').length > 0")
      await page.press("ArrowDown")
      expect(await page.accessibilityProblems()).toEqual([])
      await page.pressAndLoad("Enter")
      expect(await page.read<string>("location.pathname")).toMatch(/^\/docs\/\w+/)
      await page.press("/", "z", "z", "z", "z")
      await page.until(
        "document.querySelector('.found')?.innerText.includes('Nothing was found for')",
      )
      expect(await page.accessibilityProblems()).toEqual([])
      await page.press("ArrowDown", "Escape")
      expect(await page.read<boolean>("document.querySelector('.found').hidden")).toBe(true)
    })
  })

  test("the chosen language holds for other pages, and an example is copied as it stands", async () => {
    await visit("/docs/postEmails", {}, async (page) => {
      await page.read(
        "navigator.clipboard.writeText = async (text) => { window.copied = text }; undefined",
      )
      await page.click("Go")
      const button = "document.querySelector('.example.go figcaption button')"
      await page.until(`${button} !== null`)
      await page.read(`${button}.click()`)
      const copied = await page.until<string>("window.copied")
      expect(copied).toStartWith("package main\n\nimport (\n\t")
      await page.goto(`${url}/docs/getEmails`)
      await page.shows("package main")
    })
  })

  test("the lines of the environment name this server, and are copied with the key of the tab", async () => {
    const { value, key } = await withKey("/docs", async (page) => {
      await page.read(
        "navigator.clipboard.writeText = async (text) => { window.copied = text }; undefined",
      )
      await page.shows(`export BELFRY_URL=${url}`)
      await page.read("document.querySelector('main figure figcaption button').click()")
      const shown = await page.read<string>("document.body.innerText")
      return { shown, copied: await page.until<string>("window.copied") }
    })
    expect(value.shown).not.toContain(key)
    expect(value.copied).toBe(`export BELFRY_URL=${url}\nexport BELFRY_API_KEY=${key}`)
  })

  test("a request is tried with the key of the tab, and its answer is shown", async () => {
    const { call } = await withKey("/docs/postEmails", async (page) => {
      await page.click("Try it", "button")
      const body = {
        from: "me@mailbox.test",
        to: "you@mailbox.test",
        subject: "<b>Tried</b>",
        text: "Hi",
      }
      await page.fill("Body", JSON.stringify(body))
      await page.click("Send the request", "button")
      await page.shows("201")
      await page.shows("queued")
      expect(await page.accessibilityProblems()).toEqual([])
      expect(await page.layoutFaults()).toEqual([])
    })
    const { body } = await call("GET", "/v1/emails")
    expect(body.data).toMatchObject([{ subject: "<b>Tried</b>" }])
  })

  test("where the tab has no key, the form asks for one and keeps it for the tab", async () => {
    const { key } = await service.project()
    const expected = [/401/]
    await visit("/docs/getEmailsByEmailId", { expected: [...expected, /404/] }, async (page) => {
      await page.click("Try it", "button")
      await page.fill("API key", key)
      await page.fill("email_id", "../../healthz")
      await page.click("Send the request", "button")
      await page.shows("404")
      await page.shows("not_found")
      expect(await page.read<string>("sessionStorage.getItem('belfry-key')")).toBe(key)
    })
  })

  test("an old address opens the page of its operation", async () => {
    await visit("/docs#postEmails", {}, async (page) => {
      await page.until("location.pathname === '/docs/postEmails'")
    })
    await visit("/docs#credentials", {}, async (page) => {
      expect(await page.read<string>("location.pathname")).toBe("/docs")
    })
  })
})
