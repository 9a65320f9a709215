import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { codes } from "../../src/core/errors"
import { guides } from "../../src/pages/docs/guides"
import { type Belfry, startBelfry } from "../harness/binary"
import { startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"

describe("the reference, on the binary", () => {
  let server: Belfry
  beforeAll(async () => {
    server = await startBelfry()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  test("carries every guide, the causes of every code and all that its pages load", async () => {
    for (const { name } of guides) {
      const text = await page(server, `/docs/guides/${name}`)
      expect([name, /<h1[^>]*>[^<]/.test(text)]).toEqual([name, true])
    }
    for (const code of Object.keys(codes)) {
      expect(await page(server, `/docs/errors/${code}`)).toMatch(/<h2 id="causes">[\s\S]*<li>/)
    }
    const loaded = (await page(server, "/docs")).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)
    const assets = [...loaded].map(([, path = ""]) => path)
    expect(assets).toHaveLength(3)
    for (const path of assets) expect((await page(server, path)).length).toBeGreaterThan(20)
  })

  test.skipIf(missing("chromium-headless-shell"))(
    "a newcomer opens the link of up, tries the first email in the reference, and sees it in the mailbox",
    async () => {
      await using browser: TestBrowser = await startBrowser()
      const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
      await browser.visit(open_url, { screen: "desktop" }, async (tab) => {
        await tab.shows("Belfry")
        await tab.until("location.hash === ''")
        await tab.goto(`${server.url}/docs`)
        await tab.click("Try it", "button")
        await tab.click("Send the request", "button")
        await tab.shows("201")
        await tab.goto(`${server.url}/mailbox`)
        await tab.shows("It works")
      })
    },
  )
})

async function page(server: Belfry, path: string): Promise<string> {
  const answer = await fetch(`${server.url}${path}`)
  expect([path, answer.status]).toEqual([path, 200])
  return await answer.text()
}
