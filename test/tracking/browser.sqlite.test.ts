import { afterAll, describe, expect, test } from "bun:test"
import { startBrowser, type TestBrowser } from "../harness/browser"
import { movableClock } from "../harness/clock"
import { missing } from "../harness/peers"
import { sharedService } from "../harness/shared-service"
import { receive } from "./letters"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const clock = movableClock()
const { url } = service.listen()
const browser: TestBrowser | undefined = without ? undefined : await startBrowser()
afterAll(() => browser?.[Symbol.asyncDispose]())

const TARGET = "https://shop.test/a?x=1&y=2#part"
/** At the address of the server, since Chromium lets no other place load from the loopback. */
const LETTER = `${url}/letter`
const page = (body: string) => ({ type: "text/html; charset=utf-8", body: Buffer.from(body) })

const LETTERS: [string, string][] = [
  ["a plain mail", '<body><p>Hi</p><a href="https://shop.test/a?x=1&amp;y=2#part">Shop</a></body>'],
  [
    "a large mail in tables with conditional comments",
    `<!DOCTYPE html><html><head><style>a{color:red}</style></head><body><!--[if mso]><a href="https://mso.test">x</a><![endif]-->${"<table><tr><td>Cell</td></tr></table>".repeat(2_000)}<table><tr><td><A HREF='https://shop.test/a?x=1&amp;y=2#part'>Shop</A></td></tr></table></body></html>`,
  ],
  [
    "a mail from right to left, with markup that never ends",
    '<div dir="rtl">שלום <b>עולם <a href=https://shop.test/a?x=1&y=2#part>קנייה</a><!-- the end',
  ],
]

describe.skipIf(without)("in Chromium", () => {
  test.each(LETTERS)("%s loads its pixel, and its link leads on", async (_, html) => {
    const project = await service.project()
    const { id, html: received } = await receive(service, project, { html })
    clock.advance({ seconds: 60 })
    const shown = received.replaceAll("http://belfry.test", url)
    const serve = (address: string) => {
      if (address === LETTER) return page(shown)
      return address.startsWith("https://shop.test/") ? page("<h1>The shop</h1>") : undefined
    }
    if (!browser) throw new Error("there is no browser")
    const tab = await browser.open(LETTER, { serve })
    expect(await tab.read("[...document.images].map((one) => one.naturalWidth)")).toEqual([1])
    expect(await tab.read("document.links.length")).toBe(1)
    await tab.press("Tab")
    await tab.pressAndLoad("Enter")
    expect(await tab.read("location.href")).toBe(TARGET)
    expect(await tab.read("document.referrer")).not.toContain("/t/c/")
    await service.parts.hits.flush()
    const { data } = (await project.get(`/v1/emails/${id}/tracking`)).body
    expect(data).toMatchObject({
      opens: { total: 1, human: 1, unique: 1 },
      clicks: { total: 1, human: 1, unique: 1 },
      links: [{ url: TARGET }],
    })
    expect(data.recent).toMatchObject([
      { type: "click", client: "Chrome", os: "Linux", device: "desktop" },
      { type: "open", client: "Chrome" },
    ])
  })
})
