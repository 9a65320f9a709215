import { afterAll, describe, expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { accept } from "../../src/messages/pipeline"
import { LANGUAGES } from "../../src/pages/unsubscribe-words"
import { addCategory, addSubscriber } from "../harness/audience"
import { type BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"
import { linkTo, unsubscribedIn } from "../harness/unsubscribed"
import { letter } from "../messages/letters"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const { url } = service.listen()
const browser: TestBrowser | undefined = without ? undefined : await startBrowser()
afterAll(() => browser?.[Symbol.asyncDispose]())

const open: TestBrowser["open"] = (path, look) => {
  if (!browser) throw new Error("there is no browser")
  return browser.open(path.startsWith("/") ? `${url}${path}` : path, look)
}

const LOGO = {
  type: "image/svg+xml",
  body: Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40" fill="#c2410c"/></svg>',
  ),
}

const serve = (address: string) =>
  address === "https://cdn.example.test/logo.svg" ? LOGO : undefined

/** A color on which white text would be hard to read, and a logo. */
const BRANDING = {
  name: "Acme <Ltd>",
  logo_url: "https://cdn.example.test/logo.svg",
  primary_color: "#ffcc00",
  support_url: "https://example.test/help",
}

async function linked(branding: object | null = null) {
  const project = await service.project()
  await project.call("PATCH", "/v1/settings", { body: { branding } })
  const token = await linkTo(service, project, "product-news")
  await linkTo(service, project, "offers")
  await linkTo(service, project, "all", { type: "broadcast" })
  return { project, token, state: () => unsubscribedIn(service, project) }
}

/** The link of a subscriber with choices in every channel. */
async function linkedEverywhere(branding: object | null) {
  const { project, token } = await linked(branding)
  const { account_id, project_id } = project
  await addSubscriber(project, { email: "ann@example.test" })
  await addCategory(service, project, "News and offers of all our shops")
  const messages = (["push", "sms", "in_app"] as const).map((channel) =>
    letter({ account_id, project_id, channel, address: "ann" }),
  )
  await service.store.tx((tx) => accept(tx, messages))
  return token
}

/** Where BELFRY_TEST_SHOTS names a folder, each page is kept there as a picture. */
async function shoot(path: string, page: BrowserPage) {
  const folder = process.env.BELFRY_TEST_SHOTS
  const name = path.replaceAll(/\W+/g, "-")
  if (folder) writeFileSync(`${folder}/${name}.png`, await page.screenshot())
}

const unsubscribed = (token: string) =>
  fetch(`${url}/u/${token}`, {
    method: "POST",
    body: new URLSearchParams({ "List-Unsubscribe": "One-Click" }),
  })

describe.skipIf(without)("in Chromium", () => {
  /** What is wrong with a page: rules of accessibility that it breaks, and what is out of place. */
  async function faultsOf(page: BrowserPage, path: string) {
    await page.goto(`${url}${path}`)
    const faults = [...(await page.accessibilityProblems()), ...(await page.layoutFaults())]
    await shoot(path, page)
    return faults
  }

  test("axe-core and a narrow window find nothing wrong with any page: five languages, light and dark", async () => {
    const [light, dark] = [await open("/", { serve }), await open("/", { serve, dark: true })]
    for (const language of LANGUAGES) {
      for (const [page, branding] of [
        [light, BRANDING],
        [dark, null],
      ] as const) {
        const { token } = await linked(branding)
        const query = `?lang=${language}`
        const faults = async (path: string) => [path, await faultsOf(page, `${path}${query}`)]
        for (const path of [`/u/${token}`, `/p/${token}`, "/u/nothing"]) {
          expect(await faults(path)).toEqual([path, []])
        }
        await unsubscribed(token)
        const everywhere = await linkedEverywhere(branding)
        await page.resize(320)
        for (const path of [`/u/${token}`, `/p/${token}`, `/p/${everywhere}`]) {
          expect(await faults(path)).toEqual([path, []])
        }
        await page.resize(900)
      }
    }
  })

  test("axe-core does find what is wrong", async () => {
    const page = await open(
      "data:text/html,<p style='color:rgb(200,200,200)'>pale</p><input><img src='data:,'>",
    )
    const found = (await page.accessibilityProblems()).map((one) => one.split(" ", 1)[0])
    for (const rule of ["color-contrast", "html-has-lang", "label", "image-alt"]) {
      expect(found).toContain(rule)
    }
  })

  test("a person unsubscribes and comes back by keyboard, without scripts", async () => {
    const { token, state } = await linked(BRANDING)
    const page = await open(`/u/${token}?lang=en`, { scripts: false, serve })
    const heading = () => page.read<string>("document.querySelector('h1').textContent")
    const focused = () => page.read<string>("document.activeElement.textContent.trim()")
    expect(await heading()).toBe("Unsubscribe")
    await page.press("Tab")
    expect(await focused()).toBe("Unsubscribe")
    const ring = "getComputedStyle(document.activeElement).outlineStyle"
    expect(await page.read<string>(ring)).toBe("solid")
    await page.pressAndLoad("Enter")
    expect(await heading()).toBe("You are unsubscribed")
    expect((await state()).ended).toEqual([
      "ann@example.test unsubscribe page category product-news",
    ])

    await page.press("Tab")
    expect(await focused()).toBe("Change which emails you get")
    await page.pressAndLoad("Enter")
    expect(await heading()).toBe("Email settings")
    const checked = () =>
      page.read<string[]>("[...document.querySelectorAll('input:checked')].map((one) => one.name)")
    expect(await checked()).toEqual(["get broadcast:", "get category:offers"])
    await page.press("Tab", "Tab", "Space", "Tab", "Space", "Tab")
    expect(await focused()).toBe("Save")
    await page.pressAndLoad("Enter")
    expect(await checked()).toEqual(["get broadcast:", "get category:product-news"])
    expect(await page.read<string>("document.querySelector('[role=status]').textContent")).toBe(
      "Your choice is saved.",
    )
    expect((await state()).ended).toEqual(["ann@example.test unsubscribe page category offers"])
    expect(page.problems).toEqual([])
  })

  test("the page is read from right to left in Arabic, and an address inside stays as it is", async () => {
    const { token } = await linked(BRANDING)
    const page = await open(`/p/${token}?lang=ar`, { serve })
    const box = "document.querySelector('.choice input').getBoundingClientRect().left"
    const label = "document.querySelector('.choice bdi').getBoundingClientRect().left"
    expect(await page.read<boolean>(`${box} > ${label}`)).toBe(true)
    expect(await page.read<string>("document.querySelector('bdi[dir=ltr]').textContent")).toBe(
      "a•••@example.test",
    )
  })

  test("the switch of languages leads to the same page, whatever the browser prefers", async () => {
    const { token } = await linked()
    const headers = { "accept-language": "fr" }
    const page = await open(`/u/${token}`, { headers })
    expect(await page.read<string>("document.documentElement.lang")).toBe("fr")
    await page.press("Tab", "Tab", "Tab") // past the button and English
    await page.pressAndLoad("Enter")
    expect(await page.read<string>("document.documentElement.lang")).toBe("de")
    expect(await page.read<string>("document.querySelector('form button').textContent")).toBe(
      "Abmelden",
    )
    await page.press("Tab")
    await page.pressAndLoad("Enter")
    expect(await page.read<string>("document.querySelector('h1').textContent")).toBe(
      "Sie sind abgemeldet",
    )
  })

  test("nothing is loaded but the logo, and the button has a text that can be read", async () => {
    const { token } = await linked(BRANDING)
    const page = await open(`/u/${token}?lang=en`, { serve })
    expect(page.requests).toEqual([`${url}/u/${token}?lang=en`, BRANDING.logo_url])
    const loaded = "document.images[0].complete && document.images[0].naturalWidth === 120"
    expect(await page.read<boolean>(loaded)).toBe(true)
    expect(page.problems).toEqual([])
    const color = "getComputedStyle(document.querySelector('button.go')).color"
    expect(await page.read<string>(color)).toBe("rgb(0, 0, 0)")
  })
})
