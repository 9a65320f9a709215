import { afterAll, describe, expect, test } from "bun:test"
import { LANGUAGES } from "../../src/pages/unsubscribe-words"
import { INJECTIONS } from "../fixtures/hostile/injections"
import { BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { missing } from "../harness/peers"
import { openPictures } from "../harness/pictures"
import { startRelay } from "../harness/relay"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { startSite } from "./embedding-site"

const without = missing("chromium-headless-shell")
const service = await sharedService()
const api = service.listen()
/** The network between the shop's visitors and the server. */
const network = await startRelay(Number(new URL(api.url).port))
const site = startSite(service, `http://127.0.0.1:${network.port}`)
const browser: TestBrowser | undefined = without ? undefined : await startBrowser()

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
  await network[Symbol.asyncDispose]()
})

const open: TestBrowser["open"] = (url, look) => {
  if (!browser) throw new Error("there is no browser")
  return browser.open(url, look)
}

/** Expressions in the page. */
const ROOT = "document.querySelector('belfry-inbox').shadowRoot"
const BADGE = `${ROOT}.querySelector('.badge')?.checkVisibility() && ${ROOT}.querySelector('.badge').textContent`
const TITLES = `[...${ROOT}.querySelectorAll('.title')].map((one) => one.textContent)`
const UNREAD = `[...${ROOT}.querySelectorAll('.unread .title')].map((one) => one.textContent)`
const FOCUSED = `(${ROOT}.activeElement?.ariaLabel ?? ${ROOT}.activeElement?.textContent)`
const IS_OPEN = `${ROOT}.querySelector('.panel').matches(':popover-open')`

const untilIs = (page: BrowserPage, expression: string, value: unknown) =>
  page.until(`JSON.stringify(${expression}) === ${JSON.stringify(JSON.stringify(value))}`)

describe.skipIf(without)("a page of another origin", () => {
  test("shows what comes, and the keyboard alone reads, acts and archives", async () => {
    const visitor = await site.visitor()
    const older = await visitor.send({
      title: "Join us?",
      actions: [{ key: "yes", label: "Accept", style: "primary" }],
    })
    await using page = await open(visitor.url())
    await untilIs(page, BADGE, "1")
    const newer = await visitor.send({ title: "Paid", action_url: "/orders/1" })
    await untilIs(page, BADGE, "2")
    await untilIs(page, "heard", [["message", "Paid"]])
    await page.read("window.stays = true")

    await page.press("Tab", "Enter")
    await untilIs(page, TITLES, ["Paid", "Join us?"])
    await page.until(`${FOCUSED}?.includes('Paid')`)
    await page.press("Enter")
    await untilIs(page, UNREAD, ["Join us?"])
    await untilIs(page, "heard.at(-1)", ["opened", "Paid"])
    expect(page.tab.url()).toContain(site.origin)
    await page.press("ArrowDown", "Tab", "Tab")
    await untilIs(page, FOCUSED, "Accept")
    await page.press("Enter")
    await page.until(`${ROOT}.querySelector('.is-done')`)
    await untilIs(page, "heard.at(-1)", ["action", "Join us?"])
    await page.press("ArrowUp", "Tab")
    await untilIs(page, FOCUSED, "More actions: Paid")
    await page.press("Enter")
    await untilIs(page, FOCUSED, "Mark as unread")
    await page.press("ArrowDown", "Enter")
    await untilIs(page, TITLES, ["Join us?"])
    await page.until(`${FOCUSED}?.includes('Join us?')`)
    await page.press("Escape")
    await page.until(`!${IS_OPEN}`)
    expect(await page.read<string>(FOCUSED)).toBe("Notifications, unread: 1")

    expect(await visitor.get(newer)).toMatchObject({
      seen_at: expect.any(String),
      read_at: expect.any(String),
      archived_at: expect.any(String),
    })
    expect(await visitor.get(older)).toMatchObject({
      seen_at: expect.any(String),
      actions: [{ key: "yes", completed_at: expect.any(String) }],
    })
    page.requireNoProblem()
  })

  test("follows the link of a message, which is read then", async () => {
    const visitor = await site.visitor()
    const id = await visitor.send({ title: "Paid", action_url: "/?orders" })
    await using page = await open(visitor.url())
    await untilIs(page, BADGE, "1")
    await page.press("Tab", "Enter")
    await page.until(`${FOCUSED}?.includes('Paid')`)
    await page.pressAndLoad("Enter")
    expect(page.tab.url()).toBe(`${site.origin}/?orders`)
    await untilRead(visitor, id)
  })

  test("agrees with a second tab, whatever the person does in one of them", async () => {
    const visitor = await site.visitor()
    await visitor.send({ title: "One", category: "billing" })
    await visitor.send({ title: "Two" })
    const url = visitor.url({ layout: "panel", tabs: "billing" })
    await using first = await open(url)
    await using second = new BrowserPage(await first.tab.browserContext().newPage(), async () => {})
    await second.prepare({})
    await second.goto(url)
    for (const page of [first, second]) await untilIs(page, UNREAD, ["Two", "One"])
    await first.click("More actions: Two", "button")
    await first.click("Mark as read", "menuitem")
    await untilIs(second, UNREAD, ["One"])
    await second.click("Billing 1", "tab")
    await untilIs(second, TITLES, ["One"])
    await second.click("Mark all as read", "button")
    await untilIs(first, UNREAD, [])
    await first.click("More actions: One", "button")
    await first.click("Snooze for an hour", "menuitem")
    await untilIs(second, TITLES, [])
    await second.tab.locator("belfry-inbox >>> select").fill("snoozed")
    await untilIs(second, TITLES, ["One"])
    await first.click("More actions: Two", "button")
    await first.click("Delete", "menuitem")
    await untilIs(first, TITLES, [])
  })

  test("misses nothing while its network is off", async () => {
    const visitor = await site.visitor()
    await visitor.send({ title: "Before" })
    await using page = await open(visitor.url({ layout: "panel" }))
    await untilIs(page, TITLES, ["Before"])
    await untilIs(page, "document.querySelector('belfry-inbox').client.state", "live")
    const { to } = network
    network.to = 9 // nobody listens there
    await page.tab.setOfflineMode(true)
    network.cut()
    await page.until(`${ROOT}.querySelector('.note').textContent.startsWith('You are offline')`)
    await visitor.send({ title: "While off" })
    await visitor.send({ title: "Then another" })
    await Bun.sleep(sizes.offline_seconds * 1_000) // long enough for the page to give its socket up
    network.to = to
    await page.tab.setOfflineMode(false)
    await untilIs(page, TITLES, ["Then another", "While off", "Before"])
    await page.until(`${ROOT}.querySelector('.note').hidden`)
  })
})

async function untilRead(visitor: Awaited<ReturnType<typeof site.visitor>>, id: string) {
  while ((await visitor.get(id)).read_at === null) await Bun.sleep(50)
}

test("only a laptop's own server has a page that shows an inbox", async () => {
  const answer = await fetch(`${api.url}/inbox`, { headers: { accept: "text/html" } })
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("no page")])
})

describe.skipIf(without)("the look of the inbox", () => {
  async function filled() {
    const visitor = await site.visitor()
    await visitor.send({
      title: "Your export is complete",
      body: "You find it among your files.",
      actions: [{ key: "get", label: "Download" }],
    })
    await visitor.send({
      title: "Maria wants to join “Winter campaign”",
      body: "She can read and write after you accept.",
      ...{ category: "team", priority: "urgent" },
      actions: [
        { key: "yes", label: "Accept", style: "primary" },
        { key: "no", label: "Refuse", style: "danger" },
      ],
    })
    await visitor.send({
      title: "Your invoice for November is ready",
      body: "The amount of 49.00 EUR is due on 14 December.",
      ...{ category: "billing", icon: `${site.origin}/face.svg` },
      ...{ action_url: "/invoices/11", action_label: "Open the invoice" },
    })
    return visitor
  }

  const LOOKS = [
    ["light", {}, {}],
    ["dark", { dark: true }, {}],
    ["phone", { screen: "phone" }, {}],
    ["rtl", {}, { lang: "ar", dir: "rtl" }],
  ] as const

  test("is as it was drawn: light, dark, on a phone, from right to left", async () => {
    if (!browser) throw new Error("there is no browser")
    const pictures = openPictures(browser)
    const visitor = await filled()
    const differing: unknown[] = []
    for (const [name, look, page_attributes] of LOOKS) {
      const url = visitor.url({ tabs: "billing,team" }, page_attributes)
      await using page = await open(url, { ...look, still: true })
      await untilIs(page, BADGE, "3")
      await page.tab.click("belfry-inbox")
      await page.until(`${IS_OPEN} && ${TITLES}.length === 3`)
      await page.read(
        `${ROOT}.querySelectorAll('time').forEach((one) => { one.textContent = 'now' })`,
      )
      await page.settled()
      differing.push(await pictures.compare(`inbox-${name}`, page))
      page.requireNoProblem()
    }
    expect(differing).toEqual(LOOKS.map(() => undefined))
  })

  test("axe-core finds nothing wrong with the list, a menu and the settings, in every language", async () => {
    const visitor = await filled()
    for (const [at, lang] of LANGUAGES.entries()) {
      const dark = at % 2 === 1
      await using page = await open(visitor.url({ tabs: "billing,team", locale: lang }), {
        dark,
        still: true,
      })
      await untilIs(page, BADGE, "3")
      await page.tab.click("belfry-inbox")
      await page.until(`${IS_OPEN} && ${TITLES}.length === 3`)
      const faults = [...(await page.accessibilityProblems()), ...(await page.layoutFaults())]
      await page.read(`${ROOT}.querySelector('[data-at=more]').click()`)
      faults.push(...(await page.accessibilityProblems()))
      await page.press("Escape")
      await page.read(`${ROOT}.querySelectorAll('.head .icon')[2].click()`)
      await page.until(`${ROOT}.querySelector('input')`)
      faults.push(...(await page.accessibilityProblems()))
      expect([lang, faults]).toEqual([lang, []])
    }
  })
})

describe.skipIf(without)("texts that would run as a script", () => {
  const channel = {
    enabled: true,
    categories: Object.fromEntries(INJECTIONS.map((text) => [text, true])),
  }

  const TIME = "2026-11-21T10:30:00.000Z"

  const messageOf = (text: string, at: number) => ({
    id: String(9000 - at),
    ...{ seq: at, subscriber_id: text, title: text, body: text, icon: text, image_url: text },
    ...{ action_url: text, action_label: text, category: text, priority: text, collapse_key: text },
    actions: [{ key: text, label: text, url: text, style: text, completed_at: null }],
    ...{ data: { text }, tags: [text], seen_at: null, read_at: null, archived_at: null },
    ...{ snoozed_until: null, expires_at: null, created_at: TIME, updated_at: TIME },
  })

  test("do nothing in any field, even where a server sends what it would have refused", async () => {
    const { fakes, origin } = site
    const root = "/hostile/v1/subscriber-inbox"
    const meta = { last_seq: 99, next_cursor: null }
    fakes.set(root, { data: INJECTIONS.map(messageOf), meta })
    const by_category = Object.fromEntries(INJECTIONS.map((text) => [text, 1]))
    const counts = { unread: INJECTIONS.length, unseen: 0, total: INJECTIONS.length, by_category }
    fakes.set(`${root}/unread-count`, { data: counts, meta })
    const preferences = {
      email: channel,
      push: channel,
      sms: channel,
      in_app: channel,
      topics: by_category,
    }
    fakes.set(`${root}/preferences`, { data: preferences, meta })
    const attributes = JSON.stringify({ url: `${origin}/hostile`, layout: "panel" })
    const url = `${origin}?${new URLSearchParams({ reader: "nobody", attributes })}`
    await using page = await open(url)
    await untilIs(page, TITLES, INJECTIONS)
    await page.read("window.stays = true")
    await page.read(
      `${ROOT}.querySelectorAll('button.open, button.act').forEach((one) => one.click())`,
    )
    await page.read(`${ROOT}.querySelectorAll('[data-at=more]').forEach((one) => one.click())`)
    await page.settled()
    const links = `[...${ROOT}.querySelectorAll('[href], [src]')].map((one) => one.getAttribute('href') ?? one.getAttribute('src'))`
    const risky = (await page.read<string[]>(links)).filter((link) => !/^(https?:\/)?\//.test(link))
    expect(risky).toEqual([])
    await page.read(`${ROOT}.querySelectorAll('.head .icon')[2].click()`)
    await page.until(`${ROOT}.querySelectorAll('input').length > ${INJECTIONS.length}`)
    const foreign = `${ROOT}.querySelectorAll('script, style, iframe, object, embed, form, base, meta, [style]').length`
    expect(await page.read<number>(foreign)).toBe(0)
    expect(await page.tab.title()).toBe("Shop")
    expect(page.requests.filter((one) => /\/(injected|x)$/.test(new URL(one).pathname))).toEqual([])
  })
})
