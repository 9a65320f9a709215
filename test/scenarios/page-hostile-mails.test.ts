import { afterAll, describe, expect, test } from "bun:test"
import { HOSTILE_MAILS, hostileMail } from "../fixtures/hostile/mails"
import { base64, multipart, part } from "../fixtures/reports/mime"
import { startBelfry } from "../harness/binary"
import type { BrowserPage } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import { drop, mailWith } from "./page-mails"
import { SIGNED_OUT } from "./page-visits"
import { lean } from "./serve"

/** One red pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"

/** Time for whatever a page does by itself: a refresh after 0 seconds, a script, a picture. */
const IDLE_MS = 700

/** What the policy of the mail's own page held back; the page around it has nothing to tell. */
const OF_THE_FRAME = /\/mailbox\/html\//

/** These reach their end in a page that does not hold them back, so that the others are known to be watched. */
const LOUD = [
  "scripts",
  "event handlers",
  "a form that sends itself",
  "meta refresh",
  "remote pictures",
  "SVG in the text",
  "CSS that leaks",
  "links that load by themselves",
  "frames and objects",
  "sound and film",
  "a base for its links",
]

describe.skipIf(missing("chromium-headless-shell"))("a hostile mail in Chromium", () => {
  const on = sharedPages(() => startBelfry({ env: lean }))
  const asked: string[] = []
  const canary = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url, method }) => {
      asked.push(`${method} ${new URL(url).pathname}`)
      return new Response("", { headers: { "access-control-allow-origin": "*" } })
    },
  })

  afterAll(async () => {
    await canary.stop(true)
  })

  /** What the page of the mailbox asks for by itself, whatever the mail is. */
  const isOwn = (url: string) =>
    new URL(url).host === new URL(on.server.url).host &&
    /^\/($|assets\/|mailbox\/(html\/|[\da-f-]{36}$)|session\/token$|v1\/(mailbox|events))/.test(
      new URL(url).pathname,
    )

  /** In a short run every second mail has one place, and the others have the other one. */
  const mailsIn = (place: number) =>
    HOSTILE_MAILS.filter((_, at) => sizes.hostile_places > 1 || at % 2 === place).map(
      (one) => [one.name, one] as const,
    )

  test.each(mailsIn(0))("with %s does nothing and loads nothing", async (name, mail) => {
    await drop(on.server, hostileMail(mail, `http://127.0.0.1:${canary.port}`))
    const { html_url } = await mailWith(on.server, `Hostile: ${name}`)
    const url = `${on.server.url}${html_url}`
    for (const scripts of [true, false]) {
      await on.browser.visit(url, { scripts, expected: [/./] }, async (page) => {
        const dialogs: string[] = []
        page.tab.on("dialog", (dialog) => void dialogs.push(dialog.message()))
        await page.press("Tab", "Enter")
        await page.tab.mouse.click(20, 20)
        await Bun.sleep(IDLE_MS)
        expect(page.tab.url()).toBe(url)
        expect(page.requests.filter((one) => !one.startsWith(on.server.url))).toEqual([])
        expect([dialogs, await page.tab.browserContext().pages()]).toMatchObject([[], [{}]])
      })
    }
    expect(asked).toEqual([])
  })

  test.each(mailsIn(1))(
    "with %s does nothing and loads nothing in the frame of the mailbox, and leaves the page as it is",
    async (name, mail) => {
      await drop(on.server, hostileMail(mail, `http://127.0.0.1:${canary.port}`))
      const { id } = await mailWith(on.server, `Hostile: ${name}`)
      const expected = [...SIGNED_OUT, OF_THE_FRAME]
      await on.browser.visit(on.server.url, { screen: "desktop", expected }, async (page) => {
        const dialogs: string[] = []
        page.tab.on("dialog", (dialog) => void dialogs.push(dialog.message()))
        await page.keepKey(on.server.api_key)
        const url = `${on.server.url}/mailbox/${id}`
        await page.goto(url)
        await page.until("document.querySelector('.preview iframe')")
        const shown = () => page.tab.frames().filter((one) => one.parentFrame() !== null)
        const [frame] = await until("the mail in the frame", async () => {
          const found = shown().filter((one) => one.url().includes("/mailbox/html/"))
          const is_there = await found[0]
            ?.evaluate("document.readyState === 'complete'")
            .catch(() => false)
          return is_there === true && found
        })
        const address = frame?.url() ?? ""
        expect(address).toStartWith(`${on.server.url}/mailbox/html/`)
        expect(await page.read<string>("document.querySelector('iframe').sandbox.value")).toBe(
          "allow-popups allow-popups-to-escape-sandbox",
        )
        for (const part of (await frame?.$$("a, b, h1, p, img, input, button, summary")) ?? [])
          await part.click().catch(() => undefined) // what has no size is not pressed
        await Bun.sleep(IDLE_MS)
        expect(shown().map((one) => one.url())).toEqual([address])
        await page.click("Dark", "button")
        await until("its dark colors", () => shown().some((one) => one.url().endsWith("=dark")))
        await Bun.sleep(IDLE_MS)
        expect(shown().map((one) => one.url())).toEqual([address.replace(/light$/, "dark")])
        expect(page.tab.url()).toBe(url)
        expect(await page.tab.title()).toContain(`Hostile: ${name}`)
        expect(page.requests.filter((one) => !isOwn(one))).toEqual([])
        expect([dialogs, await page.tab.browserContext().pages()]).toMatchObject([[], [{}]])
      })
      expect(asked).toEqual([])
    },
  )

  test("opens a link when somebody presses it, in a tab that knows nothing of the mail", async () => {
    using site = startSite()
    await drop(on.server, mailOfLinks(site.url))
    const { id, html_url } = await mailWith(on.server, "Links")
    const expected = [...SIGNED_OUT, OF_THE_FRAME]
    await on.browser.visit(on.server.url, { screen: "desktop", expected }, async (page) => {
      await page.keepKey(on.server.api_key)
      const url = `${on.server.url}/mailbox/${id}`
      await page.goto(url)
      const frame = await until("the mail in the frame", async () => {
        const found = page.tab.frames().find((one) => one.url().includes("/mailbox/html/"))
        const links = await found?.evaluate("document.links.length").catch(() => 0)
        return links ? found : undefined
      })
      const address = frame.url()
      await Bun.sleep(IDLE_MS)
      expect([site.asked, await otherTabs(page)]).toEqual([[], []])

      for (const link of ["dead", "away", "scheme", "data", "call", "relative"]) {
        await (await frame.$(`#${link}`))?.click()
        await Bun.sleep(IDLE_MS / 2)
        expect([link, site.asked, await otherTabs(page)]).toEqual([link, [], []])
      }
      await (await frame.$("#good"))?.click()
      await requireStranger(page, `${site.url}good`)
      expect(site.asked).toEqual([{ path: "/good", referer: null, cookie: null }])
      expect([page.tab.url(), frame.url(), frame.detached]).toEqual([url, address, false])

      await page.tab.bringToFront()
      await page.click("Text", "tab")
      await page.click(`${site.url}text`, "link")
      await requireStranger(page, `${site.url}text`)
      expect(site.asked.at(-1)).toEqual({ path: "/text", referer: null, cookie: null })
      expect(page.tab.url()).toBe(url)
    })
    const { headers } = await fetch(`${on.server.url}${html_url}`)
    expect(headers.get("content-security-policy")).toBe(
      "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    )
  })

  test.each(
    HOSTILE_MAILS.filter(({ name }) => LOUD.includes(name)).map((one) => [one.name, one] as const),
  )("with %s would ask somebody in any other page", async (_, mail) => {
    const html = mail.html(`http://127.0.0.1:${canary.port}`)
    const headers = { "content-type": "text/html" }
    await using site = Bun.serve({ port: 0, fetch: () => new Response(html, { headers }) })
    const page = await on.browser.open(`http://127.0.0.1:${site.port}/`)
    await until("somebody was asked", () => asked.length > 0)
    await page[Symbol.asyncDispose]()
    asked.length = 0
  })

  test("is told apart from one that is shown with its own picture and style", async () => {
    const body = `<html><body style="background:#eee"><h1 style="color:#c00">Hello</h1><img src="cid:dot" width="40" height="40" alt="dot"></body></html>`
    const raw = multipart(
      "From: Ann <ann@elsewhere.test>\nTo: hostile@mailbox.test\nSubject: Harmless",
      "multipart/related",
      [
        part("Content-Type: text/html; charset=utf-8", body),
        part(
          "Content-Type: image/png\nContent-ID: <dot>\nContent-Transfer-Encoding: base64",
          base64(Buffer.from(PIXEL, "base64")),
        ),
      ],
    )
    await drop(on.server, raw)
    const { html_url } = await mailWith(on.server, "Harmless")
    await on.browser.visit(`${on.server.url}${html_url}`, {}, async (page) => {
      expect(await page.read<string>("getComputedStyle(document.querySelector('h1')).color")).toBe(
        "rgb(204, 0, 0)",
      )
      expect(await page.read<number>("document.images[0].naturalWidth")).toBe(1)
    })
  })

  test("is shown by no page of another origin, and by no address that somebody made up", async () => {
    const { html_url } = await mailWith(on.server, "Harmless")
    const frame = `<!doctype html><iframe src="${on.server.url}${html_url}"></iframe>`
    const headers = { "content-type": "text/html" }
    await using site = Bun.serve({ port: 0, fetch: () => new Response(frame, { headers }) })
    const expected = [/frame-ancestors|X-Frame-Options|favicon/]
    await on.browser.visit(`http://127.0.0.1:${site.port}/`, { expected }, async (page) => {
      await until("a refused frame", () => {
        const framed = page.tab.frames().filter((one) => one.parentFrame() !== null)
        return framed.map((one) => one.url()).join() === "chrome-error://chromewebdata/"
      })
    })
    for (const made_up of ["/mailbox/html/x", `${html_url}x`, `${html_url?.slice(0, -4)}`])
      expect([made_up, (await fetch(`${on.server.url}${made_up}`)).status]).toEqual([made_up, 404])
  })
})

/** A mail whose links ask for more than a link may. Its text has one, too. */
const mailOfLinks = (site: string) =>
  multipart(
    "From: Eve <eve@elsewhere.test>\nTo: hostile@mailbox.test\nSubject: Links",
    "multipart/alternative",
    [
      part("Content-Type: text/plain; charset=utf-8", `Press ${site}text, please.`),
      part(
        "Content-Type: text/html; charset=utf-8",
        `<base href="${site}base/" target="_top"><p>${[
          `<a id="good" href="${site}good" target="_parent" rel="opener" ping="${site}ping" referrerpolicy="unsafe-url" autofocus accesskey="x" onfocus="this.click()">good</a>`,
          '<a id="dead">dead</a>',
          '<a id="away" href="//127.0.0.1:9/">away</a>',
          `<a id="scheme" href="javascript:open('${site}script')">scheme</a>`,
          `<a id="data" href="data:text/html,<script>fetch('${site}data')</script>">data</a>`,
          '<a id="call" href="tel:+4912345">call</a>',
          '<a id="relative" href="next">relative</a>',
        ].join(" ")}</p>`,
      ),
    ],
  )

/** Where links lead: keeps what it is asked for, and with what the browser gives away. */
function startSite() {
  const asked: { path: string; referer: string | null; cookie: string | null }[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url, headers }) => {
      const path = new URL(url).pathname
      if (path !== "/favicon.ico")
        asked.push({ path, referer: headers.get("referer"), cookie: headers.get("cookie") })
      const body = "<script>document.title = 'works: ' + window.opener + document.referrer</script>"
      return new Response(body, { headers: { "content-type": "text/html" } })
    },
  })
  return {
    asked,
    url: String(server.url),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

const otherTabs = async (page: BrowserPage) => {
  const tabs = await page.tab.browserContext().pages()
  return tabs.filter((one) => one !== page.tab).map((one) => one.url())
}

/** The page at `url` stands in a tab of its own, runs its scripts, and has neither an opener nor a referrer. */
async function requireStranger(page: BrowserPage, url: string) {
  const tab = await until(`a tab with ${url}`, async () => {
    const tabs = await page.tab.browserContext().pages()
    return tabs.find((one) => one.url() === url)
  })
  await until("its script", async () => (await tab.title()) === "works: null")
  await tab.close()
}
