import { describe, expect, test } from "bun:test"
import type { BrowserPage } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import { FOCUS, tabTo, typeOver } from "./page-keys"
import { data, type MailboxMail, sendMail } from "./page-mails"
import { OWNER, openLink, SIGNED_OUT, startOwned } from "./page-visits"
import { lean } from "./serve"

const DIALOG = "document.querySelector('dialog[open]')"
const ROWS = "document.querySelectorAll('[role=option]').length"

describe.skipIf(!sizes.keyboard || missing("chromium-headless-shell"))(
  "by keyboard alone a person",
  () => {
    const on = sharedPages(() => startOwned({ env: lean }))

    /** A page that is signed in. Nothing in it is pressed with a mouse. */
    const visit = (
      path: string,
      act: (page: BrowserPage) => Promise<void>,
      expected: RegExp[] = [],
    ) =>
      on.browser.visit(
        on.server.url,
        { screen: "desktop", expected: [...SIGNED_OUT, ...expected] },
        async (page) => {
          await page.keepKey(on.server.api_key)
          await page.goto(`${on.server.url}${path}`)
          await page.until("document.querySelector('h1')")
          await act(page)
        },
      )

    const closed = (page: BrowserPage) => page.until(`!${DIALOG}`)

    /** The field that a dialog begins with. */
    const began = async (page: BrowserPage, label: string) => {
      await page.until(`${DIALOG}?.contains(${FOCUS})`)
      expect(await page.read<string>(`${FOCUS}.labels?.[0]?.innerText`)).toBe(label)
    }

    test("signs in, and signs out", async () => {
      const look = { screen: "desktop", expected: SIGNED_OUT } as const
      await on.browser.visit(`${on.server.url}/sign-in`, look, async (page) => {
        await page.named("Sign in", "button")
        await tabTo(page, "Email and password")
        await page.press("ArrowRight")
        await page.until(`${FOCUS}.innerText === 'API key'`)
        await page.press("ArrowLeft")
        await tabTo(page, "Email")
        await page.tab.keyboard.type(OWNER.email)
        await tabTo(page, "Password")
        await page.tab.keyboard.type(OWNER.password)
        await page.press("Enter")
        await page.shows(OWNER.email)
        await tabTo(page, "Sign out")
        await page.press("Enter")
        await page.named("Sign in", "link")
      })
    })

    test("writes a mail", async () => {
      await visit("/mailbox", async (page) => {
        await page.shows("The mailbox is empty")
        await page.press("c")
        await began(page, "From")
        await tabTo(page, "Subject")
        await typeOver(page, "Written with keys")
        await tabTo(page, "Send")
        await page.press("Enter")
        await closed(page)
        await page.shows("Written with keys")
      })
    })

    test("sends a mail again, and to another address", async () => {
      const { id } = await sendMail(on.server, { subject: "To send again" })
      await visit(`/mailbox/${id}`, async (page) => {
        await page.named("Delete", "button")
        await page.press("r")
        await began(page, "To")
        await typeOver(page, "kim@mailbox.test")
        await page.press("Enter")
        await closed(page)
        const all = () => data<MailboxMail[]>(on.server, "/v1/mailbox?to=kim@mailbox.test")
        const [mail] = await until("the second mail", async () => (await all()).length > 0 && all())
        expect(mail?.subject).toBe("To send again")
      })
    })

    test("learns what a release needs, and comes back to where the dialog was opened", async () => {
      const { id } = await sendMail(on.server, { subject: "To release" })
      const release = async (page: BrowserPage) => {
        await page.named("Delete", "button")
        await tabTo(page, "Release")
        await page.press("Enter")
        await began(page, "To")
        await page.press("Enter")
        await page.shows("This server delivers to its mailbox alone")
        await page.press("Escape")
        await closed(page)
        await page.until(`${FOCUS}.innerText === 'Release'`)
      }
      await visit(`/mailbox/${id}`, release, [/status of 503.*\/release/])
    })

    test("lets mail go wrong, and ends that", async () => {
      const rate = async () => data<{ bounce_rate: number }>(on.server, "/v1/mailbox/chaos")
      await visit("/mailbox", async (page) => {
        for (const [button, bounce_rate] of [
          ["Chaos", 0.5],
          ["Chaos on", 0],
        ] as const) {
          await page.named(button, "button")
          await tabTo(page, button)
          await page.press("Enter")
          await page.until(`${DIALOG}?.querySelector('input')`)
          await tabTo(page, "Share of recipients that bounce")
          await typeOver(page, String(bounce_rate))
          await page.press("Enter")
          await closed(page)
          expect(await rate()).toMatchObject({ bounce_rate })
        }
      })
    })

    test("deletes a mail, goes on with the next one, and the list has the focus", async () => {
      await sendMail(on.server, { subject: "Stays" })
      await sendMail(on.server, { subject: "Goes" })
      await visit("/mailbox", async (page) => {
        await page.shows("Goes")
        const before = await page.read<number>(ROWS)
        await page.press("j", "Enter")
        await page.until("document.querySelector('h2')?.innerText === 'Goes'")
        await page.press("D")
        await page.until(`${DIALOG}?.contains(${FOCUS})`)
        expect(await page.read<string>(`${FOCUS}.innerText`)).toBe("Cancel")
        await tabTo(page, "Delete")
        await page.press("Enter")
        await closed(page)
        await page.until("document.querySelector('h2')?.innerText === 'Stays'")
        await page.until(`${FOCUS}.role === 'listbox'`)
        await page.until(`${ROWS} === ${before - 1}`)
        expect(
          await page.read<string>(
            "document.querySelector('[role=option][aria-selected=true]').innerText",
          ),
        ).toContain("Stays")
      })
    })

    test("adds a webhook as a first step, and keeps its secret", async () => {
      await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
        await page.shows("of 5")
        await tabTo(page, "Add a webhook")
        await page.press("Enter")
        await began(page, "URL")
        await typeOver(page, "http://localhost:3000/hooks")
        await page.press("Enter")
        await page.shows("Keep this secret now")
        await page.press("Enter") // a key that was down too long closes nothing
        expect(await page.read<boolean>(`${DIALOG} !== null`)).toBe(true)
        await tabTo(page, "Copy: Signing secret")
        await tabTo(page, "Close")
        await page.press("Enter")
        await closed(page)
        await page.until(isDone("Hear what happened to it"))
      })
    })

    test("adds a domain as a first step, and comes to its records", async () => {
      await on.browser.visit(await openLink(on.server), { screen: "desktop" }, async (page) => {
        await page.shows("of 5")
        await tabTo(page, "Add a domain")
        await page.press("Enter")
        await began(page, "Domain")
        await typeOver(page, "shop.example.com")
        await page.press("Enter")
        await page.shows("Add these records")
        await tabTo(page, "Close")
        await page.press("Enter")
        await closed(page)
        await page.shows("waits for its records")
        expect(await page.read<boolean>(isDone("Add your domain"))).toBe(false)
      })
    })

    test("invites somebody as a first step", async () => {
      await on.browser.visit(
        `${on.server.url}/sign-in`,
        { screen: "desktop", expected: SIGNED_OUT },
        async (page) => {
          await page.named("Sign in", "button")
          await tabTo(page, "Email")
          await page.tab.keyboard.type(OWNER.email)
          await tabTo(page, "Password")
          await page.tab.keyboard.type(OWNER.password)
          await page.press("Enter")
          await page.shows("of 5")
          await page.named("Invite somebody", "button")
          await tabTo(page, "Invite somebody")
          await page.press("Enter")
          await began(page, "Email")
          await typeOver(page, "colleague@mailbox.test")
          await tabTo(page, "Role")
          await page.press("ArrowDown")
          await page.until(`${FOCUS}.value === 'admin'`)
          await tabTo(page, "Invite")
          await page.press("Enter")
          await closed(page)
          await page.until(isDone("Invite somebody"))
        },
      )
      const listed = await on.server.cli("invitations", "list", "--json")
      expect(JSON.parse(listed.stdout)).toMatchObject([
        { email: "colleague@mailbox.test", role: "admin" },
      ])
    })

    test("tries a request in the reference", async () => {
      await on.browser.visit(
        `${on.server.url}/docs/getEmails`,
        { expected: SIGNED_OUT },
        async (page) => {
          await tabTo(page, "Try it")
          await page.press("Enter")
          await page.until(`${FOCUS}.matches('form.try input')`)
          await page.tab.keyboard.type(on.server.api_key)
          await page.press("Enter")
          await page.until(
            "document.querySelector('form.try .result').innerText.includes('\"request_id\"')",
          )
        },
      )
    })
  },
)

const isDone = (title: string) =>
  `[...document.querySelectorAll('.steps .done')].some((one) => one.innerText.includes('${title}'))`
