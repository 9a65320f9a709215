import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { base64, multipart, part } from "../fixtures/reports/mime"
import type { BrowserPage, PageLookOptions } from "../harness/browser"
import { missing } from "../harness/peers"
import { startReceiver } from "../harness/receiver"
import { sharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import { drop, mailWith, write } from "./page-mails"
import { faultsOf, looksOf, SIGNED_OUT, startOwned } from "./page-visits"
import { lean } from "./serve"

const DIALOG = "document.querySelector('dialog[open]')"
const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"

/** As another server sends it: the same bytes in every run. */
const KEPT_MAIL = multipart(
  [
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=elsewhere.test; s=s1; h=from:to:subject; bh=MHIgMSMgMiI=; b=AAECAwQFBgcICQoLDA0ODw==",
    "From: Ann from Accounting <ann@elsewhere.test>",
    "To: you@mailbox.test",
    `Subject: A kept mail of the ${LONG}`,
    "Date: Sun, 22 Nov 2026 10:00:00 +0000",
    "Message-ID: <kept@elsewhere.test>",
    "In-Reply-To: <first@elsewhere.test>",
    "References: <first@elsewhere.test>",
    "List-Unsubscribe: <https://elsewhere.test/stop>",
  ].join("\n"),
  "multipart/mixed",
  [
    part(
      "Content-Type: text/plain; charset=utf-8",
      `Hello, see https://elsewhere.test/start.\n\n${LONG}`,
    ),
    part(
      'Content-Type: text/csv; name="rows.csv"\nContent-Disposition: attachment; filename="rows.csv"\nContent-Transfer-Encoding: base64',
      base64("a,b\n1,2\n"),
    ),
    part(
      `Content-Type: application/pdf; name="${LONG}.pdf"\nContent-Disposition: attachment; filename="${LONG.replaceAll("ä", "a")}.pdf"\nContent-Transfer-Encoding: base64`,
      base64("%PDF-1.7"),
    ),
  ],
)

interface View {
  name: string
  /** Which mail is open; undefined for the list alone. */
  mail?: "kept" | "sent"
  /** Comes to the view in the page of that mail. */
  act: (page: BrowserPage) => Promise<unknown>
}

const tab = (name: string, text: string) => async (page: BrowserPage) => {
  await page.click(name, "tab")
  await page.until(
    `document.querySelector('[role=tabpanel]').innerText.toLowerCase().includes('${text}')`,
  )
}

const dialog = (open: (page: BrowserPage) => Promise<unknown>) => async (page: BrowserPage) => {
  await open(page)
  await page.until(DIALOG)
}

const VIEWS: View[] = [
  { name: "source", mail: "kept", act: tab("Source", "message-id") },
  { name: "headers", mail: "kept", act: tab("Headers", "message-id") },
  { name: "files", mail: "kept", act: tab("Files 2", "rows.csv") },
  { name: "text", mail: "kept", act: tab("Text", "hello") },
  { name: "check", mail: "sent", act: tab("Check", "nobody asked") },
  {
    name: "check-links",
    mail: "sent",
    act: async (page) => {
      await page.click("Check", "tab")
      await page.click("Check the links", "button")
      await page.shows("1 dead link")
      await page.read("document.querySelector('section.scroll').scrollIntoView()")
    },
  },
  { name: "timeline", mail: "sent", act: tab("Timeline", "answered 200") },
  { name: "release", mail: "sent", act: dialog((page) => page.click("Release", "button")) },
  { name: "resend", mail: "sent", act: dialog((page) => page.press("r")) },
  { name: "commands", mail: "sent", act: dialog(openCommands) },
  { name: "chaos", act: dialog((page) => page.click("Chaos", "button")) },
  { name: "write", act: dialog((page) => page.press("c")) },
  { name: "keys", act: dialog((page) => page.press("?")) },
]

async function openCommands(page: BrowserPage) {
  if (await page.read<boolean>("matchMedia('(max-width: 40rem)').matches")) await page.click("More")
  await page.click("Commands", "button")
}

describe.skipIf(missing("chromium-headless-shell"))(
  "the views of a mail and the dialogs of the mailbox",
  () => {
    const on = sharedPages(() => startOwned({ env: lean }))
    const receiver = startReceiver()
    const site = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) => new Response("", { status: url.endsWith("/alive") ? 200 : 404 }),
    })
    const ids = { kept: "", sent: "" }

    beforeAll(async () => {
      const endpoint = { url: receiver.url, events: ["email.delivered"] }
      await write(on.server, "POST", "/v1/webhooks", endpoint)
      const subject = "Your receipt"
      const links = `<a href="${site.url}alive">alive</a> <a href="${site.url}a-rather-long-path-to-a-page-that-is-gone/and-its-end">dead</a>`
      const style = "<style>p{gap:1rem}@media(min-width:9px){p{color:red}}</style>"
      const html = `${style}<h1>Thank you</h1><p>Act now! Free money! ${links}</p><video></video>`
      const cc = ["kim@mailbox.test"]
      const body = { from: "Acme <me@mailbox.test>", to: "ann@mailbox.test", cc, subject, html }
      await write(on.server, "POST", "/v1/emails", body)
      ids.sent = (await mailWith(on.server, subject)).id
      await until("both deliveries", () => receiver.received.length === 2)
      await drop(on.server, KEPT_MAIL, "you@mailbox.test")
      ids.kept = (await mailWith(on.server, `A kept mail of the ${LONG}`)).id
      for (const id of Object.values(ids))
        await write(on.server, "PATCH", `/v1/mailbox/${id}`, { read: true })
    })

    afterAll(async () => {
      receiver[Symbol.dispose]()
      await site.stop(true)
    })

    /** Each view in a page of its own, since the comparison of pictures changes the page. */
    const looksWell = async ({ name, mail, act }: View, look: string, options: PageLookOptions) =>
      on.browser.visit(on.server.url, { ...options, expected: SIGNED_OUT }, async (page) => {
        await page.keepKey(on.server.api_key)
        await page.goto(`${on.server.url}/mailbox${mail ? `/${ids[mail]}` : ""}`)
        await page.named(mail ? "Delete" : "Chaos", "button")
        await page.settled()
        await act(page)
        await page.tab.mouse.move(0, 0)
        const is_page_long = "document.documentElement.scrollHeight > innerHeight"
        if (options.screen === "desktop") expect(await page.read<boolean>(is_page_long)).toBe(false)
        const pictures = options.screen === "zoom" ? undefined : on.pictures
        const faults = await faultsOf(page, `view-${name}-${look}`, pictures)
        expect([name, look, faults]).toEqual([name, look, []])
      })

    test.each(VIEWS.filter((_, at) => at % sizes.view_steps === 0))(
      "$name looks well in every look",
      async (view) => {
        for (const [look, options] of looksOf(view.name)) await looksWell(view, look, options)
      },
    )
  },
)
