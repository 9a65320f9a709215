import { expect, test } from "bun:test"
import { startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { mailWith, sendMail } from "./page-mails"
import { lean } from "./serve"

test.skipIf(!sizes.firefox || missing("firefox-esr"))(
  "in Firefox the link of `up` signs in, a mail is read live, and the reference is searched",
  async () => {
    await using server = await startBelfry({ env: lean })
    await using browser = await startBrowser("firefox-esr")
    const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
    await using page = await browser.open(open_url, { screen: 1280 })
    await page.shows("of 5")
    await page.until("location.hash === ''")
    await page.goto(`${server.url}/mailbox`)
    await page.shows("The mailbox is empty")
    await sendMail(server, { subject: "For the fox", html: "<h1>Hello</h1>" })
    await page.shows("For the fox")
    const { id } = await mailWith(server, "For the fox")
    await page.goto(`${server.url}/mailbox/${id}`)
    await page.until("document.querySelector('iframe')?.title === 'HTML of the mail'")
    expect(await page.read<string>("document.querySelector('h2').innerText")).toBe("For the fox")
    expect(await page.accessibilityProblems()).toEqual([])
    await page.goto(`${server.url}/docs`)
    await page.tab.click("input[type=search]")
    await page.tab.keyboard.type("send email")
    await page.until("document.querySelector('#found')?.children.length > 0")
    await page.goto(server.url)
    await page.shows("Sign out")
    page.requireNoProblem([/cookie|preload/i])
  },
)
