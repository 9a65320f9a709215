import { describe, expect, test } from "bun:test"
import { startBelfry } from "../harness/binary"
import type { BrowserPage } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { until } from "./mails"
import { sendMail, write } from "./page-mails"
import { lean } from "./serve"

/** Keeps the sockets of a page, and calls `globalThis.leave` as soon as one is there: before it is open. */
const SOCKETS = `
globalThis.sockets = []
globalThis.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given)
    sockets.push(this)
    queueMicrotask(() => globalThis.leave?.())
  }
}`

describe.skipIf(missing("chromium-headless-shell"))("the live list of the mailbox", () => {
  const on = sharedPages(() => startBelfry({ env: lean }))

  /** Rejects when the console of the page has an error at the end. */
  const visit = (act: (page: BrowserPage) => Promise<void>) =>
    on.browser.visit(`${on.server.url}/docs`, { screen: "desktop" }, async (page) => {
      await page.keepKey(on.server.api_key)
      await page.tab.evaluateOnNewDocument(SOCKETS)
      await act(page)
    })

  const isLive = (page: BrowserPage) => page.until(`sockets.some((one) => one.readyState === 1)`)

  test("shows two mails of which the second comes right after the first", async () => {
    await visit(async (page) => {
      await page.goto(`${on.server.url}/mailbox`)
      await isLive(page)
      await sendMail(on.server, { subject: "First of two" })
      await page.shows("First of two")
      await sendMail(on.server, { subject: "Second of two" })
      await page.shows("Second of two")
    })
  })

  test("follows many mails at once to the last one, and stays live", async () => {
    await visit(async (page) => {
      await page.goto(`${on.server.url}/mailbox`)
      await isLive(page)
      const rest = { to: "ann@mailbox.test", from: "me@mailbox.test", text: "Thank you." }
      for (let from = 0; from < 300; from += 100) {
        const messages = Array.from({ length: 100 }, (_, at) => ({
          ...rest,
          subject: `Many ${from + at}x`,
        }))
        await write(on.server, "POST", "/v1/emails/batch", { messages })
      }
      await until("all of them in the mailbox", async () => {
        const answer = await on.server.request("/v1/mailbox?per_page=1")
        return ((await answer.json()) as { meta: { total: number } }).meta.total === 302
      })
      await page.shows("302 mails")
      await sendMail(on.server, { subject: "After the many" })
      await page.shows("After the many")
      await page.shows("Live")
      expect(await page.read<number>("sockets.length")).toBe(1)
    })
  })

  test("is left before its stream is open, without an error, and closes it then", async () => {
    await visit(async (page) => {
      await page.goto(`${on.server.url}/mailbox`)
      await isLive(page)
      await page.click("Start", "link")
      await page.until("sockets.every((one) => one.readyState === 3)")
      await page.read(`void (globalThis.leave = () => {
        globalThis.left_at = sockets.at(-1).readyState
        globalThis.leave = undefined
        document.querySelector('a[href="/"]').click()
      })`)
      await page.click("Mailbox", "link")
      expect(await page.until<string>("sockets.length === 2 && String(globalThis.left_at)")).toBe(
        "0",
      )
      await page.until("sockets.every((one) => one.readyState === 3)")
      expect(await page.read<string>("location.pathname")).toBe("/")
    })
  })

  test("is left for another document before its stream is open, without an error", async () => {
    await visit(async (page) => {
      await page.tab.evaluateOnNewDocument(
        `if (location.pathname === "/mailbox") globalThis.leave = () => { location.href = "/docs" }`,
      )
      await page.goto(`${on.server.url}/mailbox`)
      await page.until("location.pathname === '/docs' && document.readyState === 'complete'")
    })
  })
})
