import { describe, expect, test } from "bun:test"
import { generate } from "otplib"
import type { Belfry } from "../harness/binary"
import { type BrowserPage, type PageLookOptions, startBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"
import { until } from "./mails"
import {
  faultsAtWidths,
  holdRequests,
  OWNER,
  openLink,
  requireGoodLooks,
  SIGNED_OUT,
  startOwned,
} from "./page-visits"
import { lean } from "./serve"

/** Its name has the port, because a browser gives the cookies of one port to the others, too. */
const cookieOf = ({ url }: Belfry) => `__Host-belfry-${new URL(url).port}`

describe.skipIf(missing("chromium-headless-shell"))("signing in to the pages of the binary", () => {
  const on = sharedPages(() => startOwned({ env: lean }))

  const visit = (path: string, act: (page: BrowserPage) => Promise<void>, expected = SIGNED_OUT) =>
    on.browser.visit(`${on.server.url}${path}`, { expected }, act)

  const cookies = (page: BrowserPage) => page.tab.browserContext().cookies()

  /** Everything that a script of the page could read or keep. */
  const kept = (page: BrowserPage) =>
    page.read<string[]>(
      "[document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href]",
    )

  async function signIn(page: BrowserPage, password = OWNER.password) {
    await page.fill("Email", OWNER.email)
    await page.fill("Password", password)
    await page.click("Sign in", "button")
  }

  test("the page to sign in looks well", async () => {
    const url = `${on.server.url}/sign-in`
    await requireGoodLooks(on, {
      name: "sign-in",
      url,
      expected: SIGNED_OUT,
      act: (page) => page.shows("Email and password"),
    })
  })

  test("the parts of all pages look well in every state", async () => {
    const url = `${on.server.url}/parts`
    await requireGoodLooks(on, {
      name: "parts",
      url,
      expected: SIGNED_OUT,
      act: (page) => page.shows("From right to left"),
    })
  })

  test("the link of `up` signs in once, and no script can read what it brought", async () => {
    const open_url = await openLink(on.server)
    await on.browser.visit(open_url, {}, async (page) => {
      await page.shows("this computer")
      expect(page.tab.url()).toBe(`${on.server.url}/`)
      expect(await cookies(page)).toMatchObject([
        { name: cookieOf(on.server), httpOnly: true, secure: true, sameSite: "Strict", path: "/" },
      ])
      const known = JSON.stringify({ "belfry-signed-in": "yes" })
      expect(await kept(page)).toEqual(["", known, "{}", `${on.server.url}/`])
      await page.tab.reload()
      await page.shows("this computer")
    })
    await on.browser.visit(open_url, { expected: SIGNED_OUT }, async (page) => {
      await page.shows("belfry open")
      await page.named("Sign in", "link")
      expect(page.tab.url()).toBe(`${on.server.url}/`)
      expect(await cookies(page)).toEqual([])
    })
  })

  test("a link that was used tells somebody who is signed in so, and offers no other try", async () => {
    const open_url = await openLink(on.server)
    const expected = [/status of 401.*session\/link/]
    await on.browser.visit(open_url, { screen: "desktop", expected }, async (page) => {
      await page.shows("this computer")
      await page.goto("about:blank")
      await page.goto(open_url)
      await page.shows("you are signed in already")
      await page.shows("of 5")
      expect(await page.read<string>("document.body.innerText")).not.toContain("was used already")
    })
    await on.browser.visit(open_url, { expected: SIGNED_OUT }, async (page) => {
      await page.shows("This link was used already")
      expect(await page.read<string>("document.body.innerText")).not.toContain("Try again")
    })
  })

  test("a person signs in with a password, stays signed in over a reload, and signs out", async () => {
    // What the page had asked for when the session ended is refused.
    const refused = [...SIGNED_OUT, /status of 401.*\/v1\//]
    const inAndOut = async (page: BrowserPage) => {
      await signIn(page, "Wrong-Horse-77")
      await page.shows("password")
      await page.until("document.querySelector('[role=alert]')")
      await signIn(page)
      await page.shows(OWNER.email)
      expect((await kept(page)).join()).not.toMatch(/belfry_|eyJ/)
      await page.tab.reload()
      await page.shows(OWNER.email)
      await page.click("Sign out", "button")
      await page.named("Sign in", "link")
      expect(await cookies(page)).toEqual([])
      expect(await kept(page)).toEqual(["", "{}", "{}", `${on.server.url}/`])
      await page.tab.reload()
      await page.named("Sign in", "link")
    }
    await visit("/sign-in", inAndOut, refused)
  })

  test("the page says that somebody signed out when the server has ended the session, and not before", async () => {
    for (const path of ["/mailbox", "/docs/emails"].slice(0, sizes.variants)) {
      const look: PageLookOptions = { screen: "desktop", expected: [...SIGNED_OUT, /ERR_FAILED/] }
      await on.browser.visit(`${on.server.url}/sign-in`, look, async (page) => {
        await signIn(page)
        await page.shows(OWNER.email)
        await page.goto(`${on.server.url}${path}`)
        await page.shows(OWNER.email)
        const ends = await holdRequests(page, "DELETE")

        await page.click("Sign out", "button")
        const lost = await until("the request to end it", () => ends.at(0))
        await page.until("document.querySelector('header button[aria-busy]')")
        expect(await page.read<string>("document.body.innerText")).toContain(OWNER.email)
        const still_in = "you are still signed in. The server does not answer."
        await page.showsAfter(still_in, () => lost.abort())
        expect((await cookies(page)).map(({ name }) => name)).toEqual([cookieOf(on.server)])
        expect([path, await faultsAtWidths(page, "still signed in")]).toEqual([path, []])

        await page.click("Sign out", "button")
        const sent = await until("the second request", () => ends.at(1))
        expect(await page.read<string>("document.body.innerText")).toContain(OWNER.email)
        await sent.continue()
        await page.named("Sign in", "link")
        expect(await cookies(page)).toEqual([])
      })
    }
  })

  test("an API key is kept for the tab, and no longer", async () => {
    const refused = [...SIGNED_OUT, /status of 401.*\/v1\/mailbox/]
    const keep = async (page: BrowserPage) => {
      await page.click("API key", "tab")
      await page.fill("API key", "svc_live_wrong")
      await page.click("Use this key", "button")
      await page.until("document.querySelector('[role=alert]')")
      await page.fill("API key", on.server.api_key)
      await page.click("Use this key", "button")
      await page.shows("an API key")
      await page.tab.reload()
      await page.shows("an API key")
      const other = await page.tab.browserContext().newPage()
      await other.goto(on.server.url)
      await other.waitForFunction("document.body.innerText.includes('Sign in')", { polling: 50 })
      const shown = await other.evaluate("document.body.innerText")
      expect(shown).not.toContain("an API key")
    }
    await visit("/sign-in", keep, refused)
  })

  test("the next page is one of this server, whatever the address asks for", async () => {
    const strange = ["https://evil.test", "//evil.test", "/\\evil.test", "javascript:alert(1)"]
    for (const next of strange) {
      await visit(`/sign-in?next=${encodeURIComponent(next)}`, async (page) => {
        await signIn(page)
        await page.shows("Sign out")
        await page.until(`location.pathname === "/"`)
        expect(page.tab.url()).toBe(`${on.server.url}/`)
      })
    }
    await visit("/sign-in?next=%2Fparts", async (page) => {
      await signIn(page)
      await page.until(`location.pathname === "/parts"`)
    })
  })

  test("a session that somebody planted is not the one that goes on", async () => {
    await visit("/sign-in", async (page) => {
      await signIn(page)
      await page.shows(OWNER.email)
      const [planted] = await cookies(page)
      await on.browser.visit(
        `${on.server.url}/sign-in`,
        { expected: SIGNED_OUT },
        async (victim) => {
          const value = planted?.value ?? ""
          await victim.tab.browserContext().setCookie({ ...planted, value } as never)
          await signIn(victim)
          await victim.shows(OWNER.email)
          const [own] = await cookies(victim)
          expect(own?.value).not.toBe(value)
        },
      )
    })
  })

  test("a forged cookie opens nothing", async () => {
    await visit("/", async (page) => {
      const forged = {
        name: cookieOf(on.server),
        value: "belfry_page_forged",
        url: on.server.url,
        secure: true,
      }
      await page.tab.browserContext().setCookie({ ...forged, domain: "127.0.0.1", path: "/" })
      await page.tab.reload()
      await page.named("Sign in", "link")
      expect(await cookies(page)).toEqual([])
    })
  })

  test("pages of other origins neither act in the session nor frame a page", async () => {
    const html = (body: string) =>
      new Response(`<!doctype html><title>Elsewhere</title>${body}`, {
        headers: { "content-type": "text/html" },
      })
    const frames = ["/", "/sign-in", "/device", "/docs"]
      .map((path) => `<iframe src="${on.server.url}${path}"></iframe>`)
      .join("")
    await using site = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => html(frames) })
    const elsewhere = [`http://127.0.0.1:${site.port}/`, `http://localhost:${site.port}/`]
    await visit(
      "/sign-in",
      async (page) => {
        await signIn(page)
        await page.shows(OWNER.email)
        const [before] = await cookies(page)
        for (const url of elsewhere) {
          const evil = await page.tab.browserContext().newPage()
          await evil.goto(url)
          expect(await evil.evaluate(attack(on.server.url))).toEqual([])
          const framed = () => evil.frames().filter((frame) => frame.parentFrame() !== null)
          await until("four refused frames", () => {
            const refused = framed().filter((frame) => frame.url().startsWith("chrome-error:"))
            return refused.length === 4
          })
          expect(framed().length).toBe(4)
          await evil.evaluate(formAttack(on.server.url))
          await evil.close()
        }
        expect((await cookies(page))[0]?.value).toBe(before?.value ?? "")
        await page.tab.reload()
        await page.shows(OWNER.email)
      },
      [...SIGNED_OUT, /frame-ancestors/],
    )
  })

  test("two servers on one machine do not sign each other out", async () => {
    await using second = await startOwned({ env: lean })
    const linkOf = async (one: Belfry) => {
      const opened = await one.cli("open", "--json", "--data-dir", one.data_dir)
      return (JSON.parse(opened.stdout) as { open_url: string }).open_url
    }
    await on.browser.visit(await linkOf(on.server), {}, async (page) => {
      await page.shows("this computer")
      const other = await page.tab.browserContext().newPage()
      await other.goto(await linkOf(second))
      await other.waitForFunction("document.body.innerText.includes('this computer')")
      for (const one of [page.tab, other]) {
        await one.bringToFront() // a tab behind another one draws no frames to wait for
        await one.reload()
        await one.waitForFunction("document.body.innerText.includes('this computer')")
      }
      const names = (await cookies(page)).map(({ name }) => name)
      expect(names.toSorted()).toEqual([cookieOf(on.server), cookieOf(second)].toSorted())
    })
  })

  test("the second factor is asked for", async () => {
    const enrolled = await on.server.cli("me", "mfa", "enroll", "--json")
    const { secret, backup_codes } = JSON.parse(enrolled.stdout) as Enrolled
    const verified = await on.server.cli("me", "mfa", "verify", await generate({ secret }))
    expect(verified.code).toBe(0)
    await visit("/sign-in", async (page) => {
      await signIn(page)
      await page.fill("Code of your authenticator app, or a backup code", backup_codes[0] ?? "")
      await page.click("Continue", "button")
      await page.shows(OWNER.email)
    })
  })
})

test.skipIf(!sizes.firefox || missing("firefox-esr"))(
  "Firefox keeps the cookie of a server on this machine, too",
  async () => {
    await using server = await startOwned({ env: lean })
    await using browser = await startBrowser("firefox-esr")
    const opened = await server.cli("open", "--json", "--data-dir", server.data_dir)
    const { open_url } = JSON.parse(opened.stdout) as { open_url: string }
    await browser.visit(open_url, {}, async (page) => {
      await page.shows("this computer")
      await page.tab.reload()
      await page.shows("this computer")
      expect(await page.read<string>("document.cookie")).toBe("")
    })
  },
)

interface Enrolled {
  secret: string
  backup_codes: string[]
}

/** What a page of another origin gets out of each way to call: nothing but refusals. */
const attack = (url: string) => `(async () => {
  const found = []
  const ways = [
    ["POST", "/session/token", "{}"],
    ["DELETE", "/session", undefined],
    ["POST", "/session/link", '{"code":"x"}'],
    ["GET", "/v1/mailbox", undefined],
  ]
  for (const [method, path, body] of ways)
    for (const mode of ["cors", "no-cors"])
      for (const headers of [{}, { "x-belfry-csrf": "1", "content-type": "application/json" }])
        try {
          const answer = await fetch("${url}" + path, { method, body, mode, headers, credentials: "include" })
          if (answer.type !== "opaque") found.push([method, path, mode, await answer.text()])
        } catch {}
  return found
})()`

/** A form needs no permission to be sent. Resolves when both were answered. */
const formAttack = (url: string) => `Promise.all(["/session/token", "/session"].map((path) => {
  const frame = Object.assign(document.createElement("iframe"), { name: "sink of " + path })
  const form = document.createElement("form")
  Object.assign(form, { method: "post", enctype: "text/plain", action: "${url}" + path, target: frame.name })
  form.append(Object.assign(document.createElement("input"), { name: '{"a":"', value: '"}' }))
  document.body.append(frame, form) // its own empty page is loaded now
  const answered = new Promise((resolve) => frame.addEventListener("load", resolve))
  form.submit()
  return answered
}))`
