import { PredefinedNetworkConditions } from "puppeteer-core"
import { type BrowserPage, startBrowser, type TestBrowser } from "../harness/browser"
import { atMost, type Bench, median, requireEqual, series } from "./bench"
import { letter, liveLoad } from "./live-load"
import { LivePages } from "./live-pages"
import { nanosecondsOf } from "./processor"
import { scratchFolder } from "./scratch"
import { scrollMails } from "./scrolling"
import { initialise, type Serving, serve } from "./serving"

const FULL = { mails: 100_000, idle_seconds: 30, scroll_seconds: 12 }
const QUICK = { mails: 2_000, idle_seconds: 15, scroll_seconds: 5 }
/** The list scrolls through so many; a search finds the others. */
const SCROLLED = 10_000
const BATCH = 100
const AT_ONCE = 4
const LIVE = 50
const NANOSECONDS = 1e9
const QUIET_MS = 3_000

export const pages: Bench = {
  name: "pages",
  title: "the pages in Chromium: first page, search, scrolling, idle page, 50 live pages",

  async run({ rounds }) {
    const effort = rounds > 2 ? FULL : QUICK
    using scratch = scratchFolder()
    const key = await initialise(scratch.path)
    await using server = await serve(scratch.path, key)
    const first = series("first page on a phone (4 × slower, Fast 3G): until it takes input", "ms")
    const rows = series("the same: until the mailbox shows its rows", "ms")
    const searched = series(`search in ${effort.mails} mails: from the key to the rows`, "ms")
    const listed = Math.min(effort.mails, SCROLLED)
    const hitches = series(`scrolling ${listed} mails: frames over 50 ms`, "%")
    const gaps = series("the same: rows in view that are not loaded", "%")
    const idle = series("processor of the server for an open page, of one core", "%")

    await fill(server, BATCH)
    await using browser = await startBrowser()
    for (let round = 0; round < rounds; round++)
      idle.values.push(await idleCost(server, effort.idle_seconds))
    const live = await liveLoad(server, rounds)
    await fill(server, effort.mails)
    for (let round = 0; round < rounds; round++) {
      const found = await firstPage(browser, server.url, key)
      first.values.push(found.usable_ms)
      rows.values.push(found.rows_ms)
    }
    const page = await browser.open(server.url, { screen: "desktop" })
    await page.keepKey(key)
    await page.goto(`${server.url}/mailbox`)
    await page.until("document.querySelector('[role=option]')")
    for (let round = 0; round < rounds; round++) {
      searched.values.push(await searchTime(page, `${1 + (round % 9)}x`))
    }
    for (let round = 0; round < rounds; round++) {
      await page.goto(`${server.url}/mailbox`) // so that no row is loaded
      const wish = { from: round / rounds, seconds: effort.scroll_seconds }
      const { hitches: late, missing } = await scrollMails(page, wish)
      hitches.values.push(late)
      gaps.values.push(missing)
    }
    return {
      series: [first, rows, searched, hitches, gaps, idle, ...live.series],
      verdicts: [
        atMost("first page, until it takes input", median(first.values), 2000, "ms"),
        atMost("search, from the key to the rows", median(searched.values), 200, "ms"),
        atMost("scrolling, frames over 50 ms", Math.max(...hitches.values), 1, "%"),
        atMost("scrolling, rows in view that are not loaded", Math.max(...gaps.values), 1, "%"),
        atMost("an idle page, of one core", Math.max(0, median(idle.values)), 0.1, "%"),
        ...live.verdicts,
      ],
      notes: [
        ...live.notes,
        `The cost of an idle page is that of ${LIVE}, divided.`,
        "Scrolling goes at 2,400 pixels (40 rows) a second. Each round begins at another part of the list, where nothing is loaded; the worst round counts.",
      ],
    }
  },
}

/** Times of the page itself, from the begin of the navigation, in a fresh profile. */
async function firstPage(browser: TestBrowser, url: string, key: string) {
  await using page = await browser.open("about:blank", { screen: "phone" })
  await page.tab.evaluateOnNewDocument(`
    if (location.protocol !== "about:") sessionStorage.setItem("belfry-key", ${JSON.stringify(key)})
    const look = () => {
      const field = document.querySelector("#page input[type=search]")
      if (field && !globalThis.usable_ms) globalThis.usable_ms = performance.now()
      if (document.querySelector("[role=option] .subject")) globalThis.rows_ms ??= performance.now()
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)`)
  await page.tab.emulateNetworkConditions(PredefinedNetworkConditions["Fast 3G"])
  await page.tab.emulateCPUThrottling(4)
  await page.goto(`${url}/mailbox`)
  await page.until("globalThis.rows_ms")
  return page.read<{ usable_ms: number; rows_ms: number }>("({ usable_ms, rows_ms })")
}

/** From the last key of the search until the page has drawn rows that fit, and only such. */
async function searchTime(page: BrowserPage, end: string): Promise<number> {
  await page.fill("Search", `Receipt ${end.slice(0, -1)}`)
  await Bun.sleep(1000)
  await page.read(`void (globalThis.timed = new Promise((resolve) => {
    const field = document.querySelector("input[type=search]")
    field.addEventListener("keydown", () => {
      const begun = performance.now()
      const look = () => {
        const rows = [...document.querySelectorAll("[role=option]")]
        const fits = rows.length > 0 && rows.every((one) => one.innerText.includes(${JSON.stringify(end)}))
        if (fits) resolve(performance.now() - begun)
        else requestAnimationFrame(look)
      }
      requestAnimationFrame(look)
    }, { once: true })
  }))`)
  await page.tab.keyboard.type(end.slice(-1))
  return page.read<number>("globalThis.timed")
}

/** Mail of one project in the mailbox, through the API and the delivery. */
async function fill({ url, headers }: Serving, mails: number) {
  let next = 0
  const send = async () => {
    while (next < mails) {
      const from = next
      next += BATCH
      const messages = Array.from({ length: BATCH }, (_, at) => letter(`Receipt ${from + at}x`))
      const body = JSON.stringify({ messages })
      const answer = await fetch(`${url}/v1/emails/batch`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
      })
      const { data } = (await answer.json()) as { data: { succeeded: number } }
      requireEqual("mails of a batch", BATCH, data.succeeded)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, send))
  while ((await totalOf({ url, headers })) < mails) await Bun.sleep(500)
}

async function totalOf({ url, headers }: Pick<Serving, "url" | "headers">): Promise<number> {
  const answer = await fetch(`${url}/v1/mailbox?per_page=1&search=Receipt`, { headers })
  return ((await answer.json()) as { meta: { total: number } }).meta.total
}

/** What one open page costs the server, beside what it does anyhow: of many, so that it is seen. */
async function idleCost(server: Serving, seconds: number) {
  await Bun.sleep(QUIET_MS)
  const without = await processor(server.pid, seconds)
  await using open = new LivePages(server, LIVE)
  await open.ready
  await Bun.sleep(QUIET_MS)
  return ((await processor(server.pid, seconds)) - without) / LIVE
}

/** Of one core, over so many seconds, all threads together. */
async function processor(pid: number, seconds: number): Promise<number> {
  const before = nanosecondsOf(pid)
  await Bun.sleep(seconds * 1000)
  return (100 * (nanosecondsOf(pid) - before)) / NANOSECONDS / seconds
}
