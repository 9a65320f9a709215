import { describe, expect, test } from "bun:test"
import { codes } from "../../src/core/errors"
import { startBelfry } from "../harness/binary"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { requireGoodLooks, SIGNED_OUT } from "./page-visits"
import { lean } from "./serve"

describe.skipIf(missing("chromium-headless-shell"))("the reference of the binary", () => {
  const on = sharedPages(() => startBelfry({ env: lean }))

  const pages = [
    ["docs", "/docs"],
    ["docs-area", "/docs/emails"],
    ["docs-operation", "/docs/postEmails"],
    ["docs-guide", "/docs/guides/webhooks"],
    ["docs-error", "/docs/errors/validation_error"],
    ["docs-search", "/docs/search?q=webhook"],
  ] as const
  test.each(pages)("%s looks well", async (name, path) => {
    await requireGoodLooks(on, { name, url: `${on.server.url}${path}` })
  })

  test("a person finds an operation by keyboard alone, and the examples keep the language", async () => {
    await on.browser.visit(`${on.server.url}/docs`, {}, async (page) => {
      await page.press("/")
      await page.tab.keyboard.type("send email")
      await page.until("document.querySelector('#found li')")
      expect(await page.accessibilityProblems()).toEqual([])
      await page.press("ArrowDown")
      await page.pressAndLoad("Enter")
      expect(page.tab.url()).toStartWith(`${on.server.url}/docs/`)
      await page.goto(`${on.server.url}/docs/postEmails`)
      const shown = (language: string) => page.read<boolean>(isShown(language))
      expect(await shown("python")).toBe(false)
      await page.click("Python", "radio")
      await page.until(isShown("python"))
      await page.tab.reload()
      await page.until(isShown("python"))
    })
  })

  test("an example is copied as it stands", async () => {
    await on.browser.visit(`${on.server.url}/docs/postEmails`, {}, async (page) => {
      const context = page.tab.browserContext()
      await context.overridePermissions(on.server.url, [
        "clipboard-read",
        "clipboard-sanitized-write",
      ])
      await page.tab.bringToFront()
      await page.showsAfter("Copied", () => page.click("Copy", "button"))
      const copied = await page.read<string>("navigator.clipboard.readText()")
      expect(copied).toContain("/v1/emails")
    })
  })

  test("an operation is tried with the key of the tab", async () => {
    const refused = [...SIGNED_OUT, /status of 40/]
    await on.browser.visit(
      `${on.server.url}/docs/getEmails`,
      { expected: refused },
      async (page) => {
        await page.click("Try it", "button")
        await page.until("document.querySelector('form.try input')")
        expect(await page.layoutFaults()).toEqual([])
        await page.read(
          "document.querySelector('form.try input[type=password], form.try input').focus()",
        )
        await page.tab.keyboard.type(on.server.api_key)
        await page.click("Send the request", "button")
        const result = "document.querySelector('form.try .result').innerText"
        await page.until(`${result}.includes('"request_id"')`)
        expect(await page.read<string>(result)).toContain("200")
      },
    )
  })

  test("all of it is readable without script, and every code of an error has its causes", async () => {
    for (const [, path] of pages) {
      await on.browser.visit(`${on.server.url}${path}`, { scripts: false }, async (page) => {
        expect(
          (await page.read<string>("document.querySelector('main').innerText")).length,
        ).toBeGreaterThan(300)
        expect([path, await page.layoutFaults()]).toEqual([path, []])
      })
    }
    for (const code of Object.keys(codes)) {
      const answer = await fetch(`${on.server.url}/docs/errors/${code}`)
      expect([code, answer.status]).toEqual([code, 200])
    }
  })

  test("the pages stand in one row on the narrowest phone, and the search has room", async () => {
    await on.browser.visit(`${on.server.url}/docs`, { screen: 320 }, async (page) => {
      const tops =
        "[...document.querySelectorAll('.bar nav a')].map((one) => one.getBoundingClientRect().top)"
      expect(new Set(await page.read<number[]>(tops)).size).toBe(1)
      const search = "document.querySelector('.bar form').getBoundingClientRect().width"
      expect(await page.read<number>(search)).toBeGreaterThan(150)
      expect(await page.layoutFaults()).toEqual([])
    })
  })

  test("each page is below 100 KB, as it is sent", async () => {
    for (const [name, path] of pages) {
      const page = await (await fetch(`${on.server.url}${path}`)).arrayBuffer()
      expect([name, Bun.gzipSync(page).length < 100_000]).toEqual([name, true])
    }
  })
})

const isShown = (language: string) =>
  `[...document.querySelectorAll('.example.${language}')].some((one) => one.checkVisibility())`
