import { describe, expect, test } from "bun:test"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { write } from "./page-mails"
import { faultsOf, openLink, SIGNED_OUT, startOwned } from "./page-visits"
import { lean } from "./serve"

const INBOX = "document.querySelector('belfry-inbox').shadowRoot.textContent"

describe.skipIf(missing("chromium-headless-shell"))("the page that shows an inbox", () => {
  const on = sharedPages(() => startOwned({ env: lean }))

  test("sends a message to a subscriber, and shows it in their inbox", async () => {
    const { server, browser } = on
    await browser.visit(
      await openLink(server),
      { screen: "desktop", still: true },
      async (page) => {
        await page.shows("First steps")
        await page.settled() // what is still loading moves the link
        await page.click("Inbox", "link")
        await page.shows("There are no subscribers yet")
        for (const name of ["Ann", "Ben"]) {
          const person = { external_id: name, name: `${name} <b>Lee</b>` }
          await write(server, "POST", "/v1/subscribers", person)
        }
        await page.fill("Find a subscriber", "an")
        await page.until("document.querySelectorAll('select option').length === 1")
        await page.click("Send a message", "button")
        await page.fill("Title", "Hello Ann")
        await page.click("Send", "button")
        await page.until(`${INBOX}.includes("Hello Ann")`)
        expect(await faultsOf(page, "inbox-page")).toEqual([])
      },
    )
  })

  test("is for the reader of this computer, and for nobody who only knows the address", async () => {
    const { server, browser } = on
    await browser.visit(`${server.url}/inbox`, { expected: SIGNED_OUT }, async (page) => {
      await page.until("location.pathname === '/sign-in'")
      expect(page.requests.filter((url) => url.includes("/v1/"))).toEqual([])
    })
  })
})
