import { describe, expect, test } from "bun:test"
import type { BrowserPage } from "../harness/browser"
import { missing } from "../harness/peers"
import { isVerified, startReceiver } from "../harness/receiver"
import { sharedPages } from "../harness/shared-pages"
import { until } from "./mails"
import { data, sendMail } from "./page-mails"
import {
  faultsAtWidths,
  holdRequests,
  linkInMail,
  OWNER,
  openLink,
  startOwned,
} from "./page-visits"
import { lean } from "./serve"

const DIALOG = "document.querySelector('dialog[open]')"

describe.skipIf(missing("chromium-headless-shell"))(
  "the first steps are taken in the page:",
  () => {
    const on = sharedPages(() => startOwned({ env: lean }))

    const visit = async (act: (page: BrowserPage) => Promise<void>, expected: RegExp[] = []) =>
      on.browser.visit(await openLink(on.server), { screen: "desktop", expected }, async (page) => {
        await page.shows("of 5")
        await page.settled() // a step that is done becomes shorter, and moves the buttons below it
        await act(page)
      })

    async function open(page: BrowserPage, button: string) {
      await page.click(button, "button")
      await page.until(DIALOG)
      expect([button, await faultsAtWidths(page, button)]).toEqual([button, []])
    }

    const submit = async (page: BrowserPage) => (await page.tab.$("dialog [type=submit]"))?.click()

    test("a webhook, whose secret is shown once and checks what comes", async () => {
      using receiver = startReceiver()
      await visit(
        async (page) => {
          await open(page, "Add a webhook")
          await page.fill("URL", "no address")
          await submit(page)
          await page.until(`${DIALOG}.querySelector('[role=alert]')`)
          await page.fill("URL", receiver.url)
          await page.fill("Event types", "email.delivered, email.bounced")
          const posts = await holdRequests(page, "POST")
          await submit(page)
          const [post] = await until("the request", () => posts.length > 0 && posts)
          // A dialog that waits for its secret cannot be left.
          await page.press("Escape")
          await page.click("Cancel", "button")
          await page.tab.mouse.click(5, 5)
          await post?.continue()
          await page.shows("Keep this secret now")
          const code = await page.read<string>(`${DIALOG}.querySelector('figure code').innerText`)
          const secret = code.trim()
          expect(secret).toStartWith("whsec_")
          expect(await faultsAtWidths(page, "secret")).toEqual([])
          await page.tab.mouse.click(5, 5) // beside the dialog, which must not lose the secret
          expect(
            await page.read<boolean>(`${DIALOG}.innerText.includes('Keep this secret now')`),
          ).toBe(true)
          await page.tab.click("dialog footer button")
          await page.until(`!${DIALOG}`)
          await page.shows("1 of 5")
          expect(await page.read<string>("document.body.innerText")).not.toContain(secret)
          const [made] = await data<{ url: string; events: string[] }[]>(on.server, "/v1/webhooks")
          expect(made).toMatchObject({
            url: receiver.url,
            events: ["email.delivered", "email.bounced"],
          })
          await sendMail(on.server, { subject: "Heard" })
          const [heard] = await until(
            "the event",
            () => receiver.received.length > 0 && receiver.received,
          )
          expect(heard && isVerified(secret, heard)).toBe(true)
        },
        [/status of 422.*\/v1\/webhooks/],
      )
    })

    test("a domain, whose records stand there to be copied", async () => {
      await visit(
        async (page) => {
          await open(page, "Add a domain")
          await page.fill("Domain", "no domain")
          await submit(page)
          await page.until(`${DIALOG}.querySelector('[role=alert]')`)
          await page.fill("Domain", "a-rather-long-name-for-a-shop.example.com")
          await submit(page)
          await page.shows("Add these records")
          const [domain] = await data<DomainRecords[]>(on.server, "/v1/domains")
          const shown = `[...${DIALOG}.querySelectorAll('.records pre')].map((one) => one.innerText.trimEnd())`
          const values = domain?.dns_records.map(({ value }) => value)
          expect(await page.read<string[]>(shown)).toEqual(values ?? [])
          const text = await page.read<string>(`${DIALOG}.innerText`)
          for (const { host } of domain?.dns_records ?? []) expect(text).toContain(host)
          expect(await faultsAtWidths(page, "records")).toEqual([])
          await page.tab.click("dialog footer button")
          await page.until(`!${DIALOG}`)
          await page.shows("waits for its records")
          await page.shows("belfry domains check a-rather-long-name-for-a-shop.example.com --watch")
          expect(await page.read<boolean>(DOMAIN_IS_DONE)).toBe(false)
          expect(await faultsAtWidths(page, "waiting domain")).toEqual([])
        },
        [/status of 422.*\/v1\/domains/],
      )
    })

    test("a domain is done when it is verified", async () => {
      const [domain] = await data<object[]>(on.server, "/v1/domains")
      const body = Buffer.from(JSON.stringify({ data: [domain], meta: {}, has_more: false }))
      const serve = (url: string) =>
        url.includes("/v1/domains?status=verified") ? { type: "application/json", body } : undefined
      await on.browser.visit(await openLink(on.server), { serve }, async (page) => {
        await page.until(DOMAIN_IS_DONE)
      })
    })

    test("an invitation, which a person sends, and for which a key has the command", async () => {
      await visit(async (page) => {
        await page.shows("belfry members invite ann@example.com")
        await page.click("Sign out", "button")
        await page.click("Sign in", "link")
        await page.fill("Email", OWNER.email)
        await page.fill("Password", OWNER.password)
        await page.click("Sign in", "button")
        await page.shows(OWNER.email)
        await open(page, "Invite somebody")
        await page.fill("Email", "colleague@mailbox.test")
        const [, role_in_project] = await page.tab.$$("dialog select")
        await role_in_project?.select("viewer")
        await submit(page)
        await page.until(`!${DIALOG}`)
        await page.until(
          "[...document.querySelectorAll('.steps .done')].some((one) => one.innerText.includes('Invite somebody'))",
        )
      })
      const listed = await on.server.cli("invitations", "list", "--json")
      expect(JSON.parse(listed.stdout)).toMatchObject([
        { email: "colleague@mailbox.test", role: "member", projects: [{ role: "viewer" }] },
      ])
      await linkInMail(on.server, "colleague@mailbox.test", /\/invitation\/[\w.-]+/)
    })
  },
)

const DOMAIN_IS_DONE =
  "[...document.querySelectorAll('.steps .done')].some((one) => one.innerText.includes('Add your domain'))"

interface DomainRecords {
  dns_records: { host: string; value: string }[]
}
