import { afterAll, beforeAll, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { multipart, part } from "../fixtures/reports/mime"
import { startBelfry } from "../harness/binary"
import { startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { until } from "./mails"
import { data, drop, type MailboxMail, mailWith, sendMail } from "./page-mails"
import { faultsAtWidths } from "./page-visits"
import { lean } from "./serve"

let browser: TestBrowser
beforeAll(async () => {
  if (!missing("chromium-headless-shell")) browser = await startBrowser()
})
afterAll(() => browser?.[Symbol.asyncDispose]())

test.skipIf(missing("chromium-headless-shell"))(
  "a person sends a mail again, lets the next one bounce, and empties the mailbox",
  async () => {
    await using server = await startBelfry({ env: lean })
    const { id } = await sendMail(server, { subject: "Again" })
    const all = () => data<MailboxMail[]>(server, "/v1/mailbox?per_page=100")
    const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
    await browser.visit(open_url, { screen: "desktop" }, async (page) => {
      await page.shows("of 5")
      await page.goto(`${server.url}/mailbox/${id}`)
      await page.click("Resend", "button")
      await page.shows("Send this mail again?")
      expect(await faultsAtWidths(page, "dialog")).toEqual([])
      await page.click("Send again", "button")
      await until("the second mail", async () => (await all()).length === 2)
      await page.until("document.querySelectorAll('[role=option]').length === 2")

      await page.click("Chaos", "button")
      await page.fill("Share of recipients that bounce", "1")
      expect(await faultsAtWidths(page, "dialog")).toEqual([])
      await page.click("Set", "button")
      await page.until("!document.querySelector('dialog[open]')")
      expect(await data<object>(server, "/v1/mailbox/chaos")).toMatchObject({ bounce_rate: 1 })
      const body = { from: "me@mailbox.test", to: "ann@mailbox.test", subject: "Bad", text: "x" }
      const sent = { method: "POST", body: JSON.stringify(body) }
      const email = await data<{ id: string }>(server, "/v1/emails", sent)
      await until("the bounce", async () => {
        const { status } = await data<{ status: string }>(server, `/v1/emails/${email.id}`)
        return status === "bounced"
      })

      await page.click("Delete all", "button")
      await page.shows("Delete all mail of the mailbox?")
      await page.read(
        "[...document.querySelectorAll('dialog button')].find((one) => one.innerText === 'Delete all').click()",
      )
      await page.shows("The mailbox is empty")
      expect(await all()).toEqual([])
    })
  },
)

/** No text of UTF-8: the octets of a mail are saved, not what a page reads in them. */
const OCTETS = Buffer.from(
  multipart(
    "From: Ann <ann@elsewhere.test>\nTo: you@mailbox.test\nSubject: To keep\nMessage-ID: <keep@elsewhere.test>",
    "multipart/mixed",
    [
      part(
        "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit",
        "Gr\u00fc\u00dfe",
      ),
      part(
        'Content-Type: application/octet-stream; name="bytes.bin"\nContent-Disposition: attachment; filename="bytes.bin"\nContent-Transfer-Encoding: base64',
        "AP/+gA==",
      ),
    ],
  ),
  "latin1",
)

test.skipIf(missing("chromium-headless-shell"))(
  "a person saves a mail and its file as they came, octet by octet",
  async () => {
    await using server = await startBelfry({ env: lean })
    await drop(server, OCTETS, "you@mailbox.test")
    const { id } = await mailWith(server, "To keep")
    const raw = await server.request(`/v1/mailbox/${id}/raw`)
    const octets = Buffer.from(await raw.arrayBuffer())
    expect(octets.includes(Buffer.from("Gr\u00fc\u00dfe", "latin1"))).toBe(true)
    const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
    await browser.visit(open_url, { screen: "desktop" }, async (page) => {
      await page.shows("of 5")
      await page.goto(`${server.url}/mailbox/${id}`)
      const session = await page.tab.createCDPSession()
      const downloadPath = join(server.home, "tmp")
      const browserContextId = page.tab.browserContext().id
      await session.send("Browser.setDownloadBehavior", {
        behavior: "allow",
        downloadPath,
        ...(browserContextId && { browserContextId }),
      })
      const saved = (name: string) =>
        until(`the file ${name}`, () => {
          const path = join(downloadPath, name)
          return existsSync(path) && readFileSync(path)
        })
      await page.click("Download .eml", "button")
      expect((await saved(`${id}.eml`)).equals(octets)).toBe(true)
      await page.click("Files 1", "tab")
      await page.click("Download bytes.bin", "button")
      expect([...(await saved("bytes.bin"))]).toEqual([0, 255, 254, 128])
    })
  },
)

test.skipIf(missing("chromium-headless-shell", "curl"))(
  "each command of a mail is copied as it is shown, and the copies work",
  async () => {
    await using server = await startBelfry({ env: lean })
    const { id } = await sendMail(server, { subject: "It's to copy", html: "<p>Hello</p>" })
    const { open_url } = JSON.parse(server.stdout.all[0] ?? "{}") as { open_url: string }
    await browser.visit(open_url, { screen: "desktop" }, async (page) => {
      await page.shows("of 5")
      const context = page.tab.browserContext()
      await context.overridePermissions(server.url, ["clipboard-read", "clipboard-sanitized-write"])
      await page.tab.bringToFront()
      await page.goto(`${server.url}/mailbox/${id}`)
      /** What the buttons beside the commands copy, one after another. */
      const copies = async (where: string) => {
        const all: string[] = []
        const each = `[...document.querySelectorAll('${where} figure.code')]`
        const shown = `${each}.map((one) => one.querySelector('pre').innerText.trimEnd())`
        const texts = await page.until<string[]>(`${each}.length > 0 && ${shown}`)
        for (const [at, button] of (await page.tab.$$(`${where} figure.code button`)).entries()) {
          await page.showsAfter("Copied", () => button.click())
          await page.until(
            `navigator.clipboard.readText().then((text) => text === ${each}[${at}].querySelector('pre').innerText.trimEnd())`,
          )
          all.push(await page.read<string>("navigator.clipboard.readText()"))
        }
        expect(all).toEqual(texts)
        return all
      }
      await page.click("From a terminal or a program")
      const [belfry = "", curl = ""] = await copies("[role=tabpanel]")
      expect(belfry).toBe(`belfry mailbox get ${id} --json=html`)
      expect(curl).toContain(`${server.url}/v1/mailbox/${id}`)
      await page.click("Commands", "button")
      const all = await copies("dialog[open]")
      expect(all.length).toBe(14)
      const [show = "", ask = ""] = all
      const [, ...words] = show.split(" ")
      expect((await server.cli(...words)).stdout).toContain("It's to copy")
      const env = { PATH: process.env.PATH ?? "", BELFRY_API_KEY: server.api_key }
      const asked = Bun.spawnSync(["sh", "-c", ask], { env })
      expect(JSON.parse(asked.stdout.toString()).data.subject).toBe("It's to copy")
    })
  },
)
