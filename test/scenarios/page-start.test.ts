import { describe, expect, test } from "bun:test"
import { startBelfry } from "../harness/binary"
import { noKnot, startKnot } from "../harness/knot"
import { missing } from "../harness/peers"
import { sharedPages } from "../harness/shared-pages"
import { mailWith, sendMail, write } from "./page-mails"
import {
  faultsOf,
  looksOf,
  openLink,
  requireGoodLooks,
  SIGNED_OUT,
  startOwned,
} from "./page-visits"
import { lean } from "./serve"

interface DnsRecord {
  host: string
  value: string
  required: boolean
}

describe.skipIf(missing("chromium-headless-shell"))("the first page of the binary", () => {
  const on = sharedPages(() => startOwned({ env: lean }))

  test("tells a stranger what this is, in good looks", async () => {
    await requireGoodLooks(on, {
      name: "start",
      url: on.server.url,
      expected: SIGNED_OUT,
      act: (page) => page.shows("Where to go"),
    })
  })

  test("is readable without script, as are the pages that need one", async () => {
    for (const path of ["/", "/mailbox", "/sign-in"]) {
      await on.browser.visit(`${on.server.url}${path}`, { scripts: false }, async (page) => {
        expect(await page.read<string>("document.querySelector('h1').textContent")).toBe("Belfry")
        expect(await page.read<number>("document.links.length")).toBeGreaterThan(0)
        const edge = "document.querySelector('h1').getBoundingClientRect().left"
        expect(await page.read<number>(edge)).toBeGreaterThanOrEqual(16)
      })
    }
  })

  test("shows the first steps under `up`, in good looks", async () => {
    for (const look of looksOf("start-steps")) {
      await requireGoodLooks(
        on,
        {
          name: "start-steps",
          url: await openLink(on.server),
          act: (page) => page.shows("0 of 5"),
        },
        [look],
      )
    }
  })

  test("ticks its steps by itself, from the first mail to the invitation", async () => {
    await on.browser.visit(await openLink(on.server), { screen: "phone" }, async (page) => {
      await page.shows("0 of 5")
      await page.click("Write a mail", "button")
      await page.until("document.querySelector('dialog[open]')")
      expect(await page.layoutFaults()).toEqual([])
      expect(await page.accessibilityProblems()).toEqual([])
      await page.click("Send", "button")
      await page.shows("1 of 5")
      await page.named("Write another mail", "button")
      const hook = ["webhooks", "create", "http://localhost:3000/hooks", "--event", "email.*"]
      const made = await on.server.cli(...hook)
      expect([made.code, made.stderr]).toEqual([0, expect.any(String)])
      await page.shows("2 of 5")
      expect((await on.server.cli("domains", "add", "example.com")).code).toBe(0)
      await page.shows("example.com waits for its records")
      await page.shows("2 of 5")
    })
  })

  const withNames = test.skipIf(noKnot)
  withNames("says what the last step needs, where nobody owns the server yet", async () => {
    await using knot = await startKnot({ "acme.test": [] })
    const names = { BELFRY_DNS_SERVERS: knot.address, BELFRY_DOMAINS_HOST: "mx.test" }
    await using server = await startBelfry({ env: { ...lean, ...names } })
    await sendMail(server, { subject: "First" })
    const { id } = await mailWith(server, "First")
    await write(server, "PATCH", `/v1/mailbox/${id}`, { read: true })
    const hook = { url: "http://localhost:3000/hooks", events: ["email.*"] }
    await write(server, "POST", "/v1/webhooks", hook)
    const { stdout } = await server.cli("domains", "add", "acme.test")
    const records = (JSON.parse(stdout).dns_records as DnsRecord[]).filter((one) => one.required)
    await knot.serve(
      "acme.test",
      records.map(({ host, value }) => `${host}. TXT "${value}"`),
    )
    expect((await server.cli("domains", "check", "acme.test")).code).toBe(0)
    await on.browser.visit(await openLink(server), { screen: "phone" }, async (page) => {
      await page.shows("4 of 5; only an owner or an admin can do the rest")
      await page.shows(`belfry setup ${server.url}\nbelfry members invite ann@example.com`)
      await page.shows("It asks for the setup token that belfry up printed")
      expect(await faultsOf(page, "no owner")).toEqual([])
    })
  })

  test("the theme that a person chooses stays over a reload and on the next page", async () => {
    await on.browser.visit(on.server.url, { expected: SIGNED_OUT }, async (page) => {
      const scheme = () =>
        page.read<string>("getComputedStyle(document.documentElement).colorScheme")
      const paper = () => page.read<string>("getComputedStyle(document.body).backgroundColor")
      const light = await paper()
      const control = "document.querySelector('header [aria-label*=heme]')"
      await page.until(control)
      for (let presses = 0; presses < 3 && (await paper()) === light; presses++)
        await page.read(`${control}.click()`)
      expect(await scheme()).toBe("dark")
      const dark = await paper()
      expect(dark).not.toBe(light)
      await page.tab.reload()
      expect(await paper()).toBe(dark)
      await page.goto(`${on.server.url}/sign-in`)
      expect(await paper()).toBe(dark)
    })
  })

  test("nothing moves for a person who prefers it so, on any page", async () => {
    const { id } = await sendMail(on.server, { subject: "Quiet", html: "<p>Hello</p>" })
    const still = { screen: "desktop", still: true, expected: SIGNED_OUT } as const
    await on.browser.visit(`${on.server.url}/sign-in`, still, async (page) => {
      const paths = ["/sign-in", "/parts", "/docs", "/docs/postEmails", "/device", "/", "/mailbox"]
      for (const path of [...paths, `/mailbox/${id}`]) {
        if (path === "/") await page.keepKey(on.server.api_key)
        await page.goto(`${on.server.url}${path}`)
        await page.read(WATCH)
        await page.settled()
        expect([path, await page.read<string[]>(MOVES)]).toEqual([path, []])
      }
      await page.click("Commands", "button")
      await page.until("document.querySelector('dialog[open]')")
      expect(await page.read<string[]>(MOVES)).toEqual([])
      await page.press("Escape")
      await page.click("Mark unread", "button")
      await page.until("document.querySelector('.toast')")
      expect(await page.read<string[]>(MOVES)).toEqual([])
      await page.settled()
      expect(await page.read<string[]>("window.moved")).toEqual([])
    })
  })

  test("for all others a message comes up from below, and nothing else moves", async () => {
    const { id } = await sendMail(on.server, { subject: "Lively", html: "<p>Hello</p>" })
    const expected = SIGNED_OUT
    await on.browser.visit(on.server.url, { screen: "desktop", expected }, async (page) => {
      await page.keepKey(on.server.api_key)
      await page.goto(`${on.server.url}/mailbox/${id}`)
      expect(await page.read<boolean>(MAY_MOVE)).toBe(true)
      await page.read(WATCH)
      await page.click("Mark unread", "button")
      await page.until("window.moved.length > 0")
      await page.settled()
      expect(await page.read<string[]>("window.moved")).toEqual(["appear of toast good"])
      expect(await page.read<string[]>("window.durations")).toEqual(["0.15s"])
    })
  })
})

const MAY_MOVE = "matchMedia('(prefers-reduced-motion: no-preference)').matches"

/** Keeps in `window.moved` what begins to move from now on, and in `window.durations` for how long. */
const WATCH = `(() => {
  window.moved = []
  window.durations = []
  for (const type of ["animationstart", "transitionrun"])
    document.addEventListener(type, ({ target, animationName, propertyName }) => {
      window.moved.push((animationName ?? propertyName) + " of " + target.className)
      window.durations.push(getComputedStyle(target).animationDuration)
    })
})()`

/** What moves now, or would as soon as something of it changed. */
const MOVES = `(() => {
  const styles = [...document.querySelectorAll("*")].flatMap((one) =>
    [null, "::before", "::after", "::backdrop", "::details-content"].map((part) => [one, getComputedStyle(one, part)]))
  const is_lively = (style) => style.animationName !== "none" || /[1-9]/.test(style.transitionDuration) ||
    /[1-9]/.test(style.transitionDelay) || style.scrollBehavior === "smooth"
  return [
    ...document.getAnimations().map((one) => one.animationName ?? one.transitionProperty ?? "an animation"),
    ...styles.filter(([, style]) => is_lively(style)).map(([one]) => one.outerHTML.slice(0, 100)),
  ]
})()`
