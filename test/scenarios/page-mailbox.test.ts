import { beforeAll, describe, expect, test } from "bun:test"
import { base64, multipart, part } from "../fixtures/reports/mime"
import type { BrowserPage } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import { drop, mailWith, sendMail } from "./page-mails"
import { faultsAtWidths, faultsOf, openLink, requireGoodLooks, startOwned } from "./page-visits"
import { lean } from "./serve"

const LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
const ARABIC = "مرحبا بك في بلفري، هذا نص من اليمين إلى اليسار"

/** One red pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

const RED = Buffer.from(PIXEL, "base64")

const FILED = multipart(
  "From: Ann <ann@elsewhere.test>\nTo: you@mailbox.test\nSubject: With files\nDate: Sun, 22 Nov 2026 10:00:00 +0000\nMessage-ID: <files@elsewhere.test>",
  "multipart/mixed",
  [
    part(
      "Content-Type: text/html; charset=utf-8",
      '<style>@media (prefers-color-scheme: dark) { h1 { color: rgb(1, 2, 3) } }</style><h1>See the picture</h1><img src="cid:dot" width="40" height="40" alt="dot">',
    ),
    part(
      'Content-Type: image/png; name="dot.png"\nContent-ID: <dot>\nContent-Disposition: inline; filename="dot.png"\nContent-Transfer-Encoding: base64',
      base64(RED),
    ),
    part(
      'Content-Type: text/csv; name="rows.csv"\nContent-Disposition: attachment; filename="rows.csv"\nContent-Transfer-Encoding: base64',
      base64("a,b\n1,2\n"),
    ),
  ],
)

describe.skipIf(missing("chromium-headless-shell"))("the mailbox in Chromium", () => {
  const on = sharedPages(() => startOwned({ env: lean }))
  let page: BrowserPage

  beforeAll(async () => {
    page = await on.browser.open(await openLink(on.server), { screen: "desktop" })
    await page.shows("of 5")
  })

  /** A signed-in visit to a page of the mailbox, in every look. */
  const looks = (name: string, path: string, text: string) =>
    requireGoodLooks(on, {
      name,
      url: on.server.url,
      expected: [/status of 401.*session\/token/],
      act: async (visitor) => {
        await visitor.keepKey(on.server.api_key)
        await visitor.goto(`${on.server.url}${path}`)
        await visitor.shows(text)
        await visitor.settled()
      },
    })

  async function open(subject: string) {
    const { id } = await mailWith(on.server, subject)
    await page.goto(`${on.server.url}/mailbox/${id}`)
    await page.named("Delete", "button")
    return id
  }

  const chosen = () => page.read<string>("document.querySelector('[role=tabpanel]').innerText")

  test("is empty at first, and says what to do", async () => {
    await looks("mailbox-empty", "/mailbox", "The mailbox is empty")
  })

  test("shows a mail that comes while the page is open, unread, without a reload", async () => {
    await page.goto(`${on.server.url}/mailbox`)
    await page.shows("The mailbox is empty")
    await sendMail(on.server, { subject: "Live one" })
    await page.shows("Live one")
    expect(await page.read<string>("document.querySelector('[role=option]').innerText")).toContain(
      "Unread",
    )
  })

  test("marks a mail as read when it is opened, and as unread when a person wants it", async () => {
    await open("Live one")
    await page.shows("1 mail")
    const state = async () => (await mailWith(on.server, "Live one")).read
    const row = "document.querySelector('[role=option]')?.innerText"
    await page.until(`${row} && !${row}.includes('Unread')`)
    await until("the mail is read", state)
    await page.click("Mark unread", "button")
    await page.until(`${row}?.includes('Unread')`)
    await until("the mail is unread", async () => !(await state()))
  })

  test("has each view of a mail in order: text, source, headers, check, timeline", async () => {
    await sendMail(on.server, {
      subject: "Every view",
      html: `<h1>Hello</h1><p>See <a href="${on.server.url}/docs">the docs</a>.</p>`,
    })
    await open("Every view")
    const views: [string, string][] = [
      ["Text", "HELLO"],
      ["Source", "Message-ID"],
      ["Headers", "message-id"],
      ["Check", "Links"],
      ["Timeline", "email.delivered"],
    ]
    const looks = [true, false]
      .slice(0, sizes.variants)
      .flatMap((dark) => views.map((view) => ({ dark, view })))
    for (const { dark, view } of looks) {
      const [tab, text] = view
      await page.prefer(dark, true)
      await page.click(tab, "tab")
      const has = `document.querySelector('[role=tabpanel]').innerText.toLowerCase().includes(${JSON.stringify(text.toLowerCase())})`
      await page.until(has)
      expect([tab, dark, await faultsAtWidths(page, tab)]).toEqual([tab, dark, []])
    }
    await page.prefer(false, false)
  })

  test("looks well with a mail open, with its inline picture and its files", async () => {
    await drop(on.server, FILED, "you@mailbox.test")
    const id = await open("With files")
    await looks("mailbox-mail", `/mailbox/${id}`, "With files")
    await until("the picture in the mail", async () => {
      const [, frame] = page.tab.frames()
      const width = frame?.evaluate("document.images[0].naturalWidth")
      return (await width?.catch(() => undefined)) === 1 // undefined while it loads
    })
    await page.click("Files 2", "tab")
    await page.shows("rows.csv")
    expect(await faultsOf(page, "files")).toEqual([])
  })

  test("shows a mail at the widths of devices, and in the dark", async () => {
    await open("With files")
    for (const [name, pixels] of [
      ["Phone", 390],
      ["Tablet", 768],
      ["Desktop", 1200],
    ] as const) {
      await page.click(name, "button")
      await page.until(`Math.abs(document.querySelector('iframe').clientWidth - ${pixels}) <= 2`)
      expect(await page.layoutFaults()).toEqual([])
    }
    await page.click("Dark", "button")
    const color = "getComputedStyle(document.querySelector('h1')).color"
    await until("the mail in its dark colors", async () => {
      const frame = page.tab.frames().find((one) => one.url().endsWith("scheme=dark"))
      return (await frame?.evaluate(color).catch(() => "")) === "rgb(1, 2, 3)"
    })
  })

  test("shows the next mail in the same way, and a wide one whole", async () => {
    const html = "<style>@media (prefers-color-scheme: dark) { h1 { color: rgb(1, 2, 3) } }</style>"
    await sendMail(on.server, { subject: "Series two", html: `${html}<h1>Two</h1>` })
    await sendMail(on.server, { subject: "Series one", html: `${html}<h1>One</h1>` })
    await open("Series one")
    await page.click("Desktop", "button")
    await page.click("Dark", "button")
    await page.click("Next mail", "button")
    await page.until("document.querySelector('h2')?.innerText === 'Series two'")
    await page.until("document.querySelector('iframe')?.src.endsWith('scheme=dark')")
    const fits = `(() => {
      const [frame, place] = ["iframe", ".preview"].map((one) => document.querySelector(one))
      return Math.abs(frame.clientWidth - 1200) <= 2 && place.scrollWidth <= place.clientWidth
    })()`
    await page.until(fits)
    await until("1,200 pixels", async () => {
      const frame = page.tab.frames().find((one) => one.url().endsWith("scheme=dark"))
      const inside = "document.body.innerText === 'Two' && Math.abs(innerWidth - 1200) <= 4"
      return (await frame?.evaluate(inside).catch(() => false)) === true // false while it loads
    })
    expect(
      await page.read<string>("document.querySelector('[role=tabpanel]').innerText"),
    ).not.toContain("not loaded here")
    await page.click("Source", "tab")
    await page.click("Previous mail", "button")
    await page.until("document.querySelector('h2')?.innerText === 'Series one'")
    await page.until(
      "document.querySelector('[role=tab][aria-selected=true]')?.innerText === 'Source'",
    )
  })

  test("finds the dead link of a mail when a person asks for it", async () => {
    const respond = ({ url }: Request) =>
      new Response("", { status: url.endsWith("/alive") ? 200 : 404 })
    await using site = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond })
    const html = `<p><a href="${site.url}alive">alive</a> <a href="${site.url}nowhere">dead</a></p>`
    await sendMail(on.server, { subject: "A dead link", html })
    await open("A dead link")
    await page.click("Check", "tab")
    await page.click("Check the links", "button")
    await page.shows("1 dead link")
    expect(await chosen()).toContain("/nowhere")
    expect(await faultsOf(page, "links")).toEqual([])
  })

  test("searches, filters by unread, and says when nothing fits", async () => {
    await page.goto(`${on.server.url}/mailbox`)
    await page.fill("Search", "dead link")
    await page.until("document.querySelectorAll('[role=option]').length === 1")
    await page.fill("Search", "to:you@mailbox.test")
    await page.shows("With files")
    await page.fill("Search", "to:you")
    await page.until("document.querySelectorAll('[role=option]').length === 1")
    await page.fill("Search", "from:ann@elsewhere.tes")
    await page.shows("With files")
    await page.fill("Search", "picture to:you")
    await page.shows("to:you needs a whole address beside other words.")
    await page.fill("Search", "nothing like it")
    await page.shows("No mail fits the search")
    await page.press("Escape")
    await page.fill("Search", " ")
    await page.click("Unread", "checkbox")
    const rows = "[...document.querySelectorAll('[role=option]')]"
    await page.until(
      `${rows}.length > 0 && ${rows}.every((one) => one.innerText.includes('Unread'))`,
    )
    await page.click("Unread", "checkbox")
  })

  test("bears long words and text from right to left", async () => {
    await sendMail(on.server, {
      subject: LONG,
      to: `${LONG.slice(0, 50).replaceAll("ä", "a")}@mailbox.test`,
      text: `${LONG} `.repeat(20),
    })
    await sendMail(on.server, { subject: ARABIC, html: `<p dir="rtl">${ARABIC}</p>` })
    const { id } = await mailWith(on.server, LONG)
    await looks("mailbox-long", `/mailbox/${id}`, LONG)
    const arabic = await mailWith(on.server, ARABIC)
    await looks("mailbox-rtl", `/mailbox/${arabic.id}`, ARABIC)
  })

  test("loads remote images by the server, when somebody presses the button, and for this look alone", async () => {
    const asked: string[] = []
    const respond = ({ url }: Request) => {
      asked.push(new URL(url).pathname)
      const headers = { "content-type": "image/png" }
      return url.endsWith("/gone")
        ? new Response("", { status: 404 })
        : new Response(RED, { headers })
    }
    await using site = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: respond })
    const html = `<p>Hello</p><img src="${site.url}red"><img src="${site.url}gone">`
    await sendMail(on.server, { subject: "Remote images", html })
    await open("Remote images")
    const inFrame = (expression: string) =>
      until(expression, async () => {
        const frame = page.tab.frames().find((one) => one.url().includes("/mailbox/html/"))
        return frame?.evaluate(expression).catch(() => undefined) // undefined while it loads
      })
    await page.shows("2 remote images are not loaded here")
    await inFrame("document.images.length === 2 && document.images[0].naturalWidth === 0")
    expect(asked).toEqual([])
    await page.click("Load images", "button")
    await inFrame("document.images[0].naturalWidth === 1")
    await inFrame("document.body.innerText.includes('1 of 2 remote images are loaded.')")
    expect(asked.toSorted()).toEqual(["/gone", "/red"])
    expect(page.requests.filter((one) => one.startsWith(String(site.url)))).toEqual([])
    expect(await faultsAtWidths(page, "remote images")).toEqual([])
    await page.click("Dark", "button")
    await page.shows("2 remote images are not loaded here")
    await page.click("Dark", "button")
    await page.settled()
    expect(asked).toHaveLength(2)
  })

  test("is worked by keyboard alone: move, open, tabs, search, help, delete", async () => {
    await sendMail(on.server, { subject: "Key two" })
    await sendMail(on.server, { subject: "Key one" })
    await page.goto(`${on.server.url}/mailbox`)
    await page.shows("Key one")
    await page.shows("Key two")
    await page.press("?")
    await page.shows("show the keys")
    expect(await faultsOf(page, "keys")).toEqual([])
    await page.press("Escape")
    await page.until("!document.querySelector('dialog[open]')")
    await page.press("/")
    await page.until("document.activeElement.type === 'search'")
    await page.tab.keyboard.type("Key")
    await page.until("document.querySelectorAll('[role=option]').length === 2")
    await page.press("Enter", "j", "k", "Enter")
    await page.until("location.pathname !== '/mailbox'")
    await page.named("Delete", "button")
    const subject = () => page.read<string>("document.querySelector('h2').innerText")
    const first = await subject()
    await page.press("n")
    await page.until(`document.querySelector('h2')?.innerText !== ${JSON.stringify(first)}`)
    await page.named("Delete", "button")
    await page.press("ArrowRight")
    await page.until(
      "document.querySelector('[role=tab][aria-selected=true]').innerText !== 'Text'",
    )
    await page.press("D")
    await page.shows("Delete this mail?")
    expect(
      await page.read<boolean>("document.querySelector('dialog').contains(document.activeElement)"),
    ).toBe(true)
    for (let tabs = 0; tabs < 9; tabs++) {
      if (await page.read<boolean>("document.activeElement.innerText === 'Delete'")) break
      await page.press("Tab")
    }
    await page.press("Enter")
    await page.until("document.querySelectorAll('[role=option]').length === 1")
  })

  test("has met no error on the way", () => {
    page.requireNoProblem()
  })
})
