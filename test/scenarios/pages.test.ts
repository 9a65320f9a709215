import { describe, expect, test } from "bun:test"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { linkInMail, OWNER, requireGoodLooks, startOwned } from "./page-visits"
import { lean } from "./serve"

const GUEST = "guest-with-a-rather-long-name@mailbox.test"

describe.skipIf(missing("chromium-headless-shell"))(
  "pages that need no script, on the binary",
  () => {
    const on = sharedPages(() => startOwned({ env: lean }))

    const looks = (name: string, path: string, expected: RegExp[] = []) =>
      requireGoodLooks(on, { name, url: new URL(path, on.server.url).href, expected })

    test("the form for a device looks well: phone and desktop, light and dark, at 200 %", async () => {
      await looks("device", "/device")
    })

    const lost = [
      ["invitation-lost", "/invitation/x", /404/],
      ["reset-lost", "/password-reset/x", /422/],
      ["unsubscribe-lost", "/u/x", /404/],
    ] as const
    test.each(lost)(
      "%s tells in good looks that the link is no good",
      async (name, path, status) => {
        await looks(name, path, [status])
      },
    )

    test("an invitation is accepted from its mail, without script", async () => {
      expect((await on.server.cli("members", "invite", GUEST)).code).toBe(0)
      const link = await linkInMail(on.server, GUEST, /\/invitation\/[\w.-]+/)
      await looks("invitation", link)
      await on.browser.visit(`${on.server.url}${link}`, { scripts: false }, async (page) => {
        await page.fill("Your name", "Guest")
        await page.fill("Choose a password", "Other-Horse-77")
        await page.press("Enter")
        await page.shows("You are in")
      })
    })

    test("a forgotten password is replaced from its mail, without script", async () => {
      expect((await on.server.cli("password", "forgot", OWNER.email)).code).toBe(0)
      const link = await linkInMail(on.server, OWNER.email, /\/password-reset\/[\w.-]+/)
      await looks("reset", link)
      await on.browser.visit(`${on.server.url}${link}`, { scripts: false }, async (page) => {
        await page.fill("New password", "New-Horse-88")
        await page.press("Enter")
        await page.shows("Your password was changed")
      })
    })
  },
)
