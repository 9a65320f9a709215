import { expect } from "bun:test"
import type { HTTPRequest } from "puppeteer-core"
import { type Belfry, type Options, runBinary, startBelfry } from "../harness/binary"
import type { BrowserPage, PageLookOptions } from "../harness/browser"
import type { Pictures } from "../harness/pictures"
import type { SharedPages } from "../harness/shared-pages"
import { sizes } from "../harness/sizes"

export const OWNER = { email: "ann@mailbox.test", password: "Honest-Barn-41" }

/** `belfry up` with a first owner, who has a password and is signed in on the command line. */
export async function startOwned(options: Options = {}): Promise<Belfry> {
  const server = await startBelfry(options)
  const { setup_token } = JSON.parse(server.stdout.all[0] ?? "{}") as { setup_token: string }
  const proof = [`--setup-token=${setup_token}`, "--email", OWNER.email, "--password-stdin"]
  const home = server.home
  const made = await runBinary(["setup", server.url, ...proof], { home, input: OWNER.password })
  if (made.code !== 0) throw new Error(`belfry setup: ${made.stderr}`)
  return server
}

/** A new link that signs in once, as the banner of `up` has one. */
export async function openLink(server: Belfry): Promise<string> {
  const opened = await server.cli("open", "--json", "--data-dir", server.data_dir)
  return (JSON.parse(opened.stdout) as { open_url: string }).open_url
}

/** The link of the newest mail of the instance to an address. */
export async function linkInMail(
  server: Pick<Belfry, "cli" | "data_dir">,
  to: string,
  path: RegExp,
): Promise<string> {
  const system = ["--system", "--data-dir", server.data_dir, "--json"]
  for (let tries = 0; tries < 200; tries++) {
    const listed = await server.cli("mailbox", "list", ...system)
    const mails = JSON.parse(listed.stdout) as { id: string; to: string }[]
    for (const { id } of mails.filter((mail) => mail.to === to)) {
      const [link] = path.exec((await server.cli("mailbox", "get", id, ...system)).stdout) ?? []
      if (link) return link
    }
    await Bun.sleep(100)
  }
  throw new Error(`no mail to ${to} has a link like ${path}`)
}

/** A phone and a desktop, light and dark. Each of them is kept as a picture. */
const ALL_LOOKS: [string, PageLookOptions][] = [
  ["phone-light", { screen: "phone", still: true }],
  ["desktop-dark", { screen: "desktop", still: true, dark: true }],
  ["phone-dark", { screen: "phone", still: true, dark: true }],
  ["desktop-light", { screen: "desktop", still: true }],
  ["200 % zoom", { screen: "zoom", still: true }],
]

/** A page is looked at so. A short run looks at the one on a phone and at the other on a desktop, by its name. */
export function looksOf(name: string) {
  const first = sizes.looks > 1 ? 0 : name.length % 2
  return ALL_LOOKS.slice(first, first + sizes.looks)
}

/** What is wrong with how a page is now: its layout, its accessibility, and its picture. */
export async function faultsOf(page: BrowserPage, name: string, pictures?: Pictures) {
  await page.settled()
  const faults = [...(await page.layoutFaults()), ...(await page.accessibilityProblems())]
  const differs = await pictures?.compare(name, page)
  return differs === undefined ? faults : [...faults, differs]
}

/** A person drags the window to these widths: of a phone, a tablet and a wide screen. */
const OTHER_WIDTHS = [390, "tablet", "wide"] as const

/** The same for a desktop, and then for other widths. */
export async function faultsAtWidths(page: BrowserPage, name: string, pictures?: Pictures) {
  const faults = await faultsOf(page, name, pictures)
  for (const width of OTHER_WIDTHS) {
    await page.resize(width)
    await page.settled()
    faults.push(...(await page.layoutFaults()).map((fault) => `${width}: ${fault}`))
  }
  await page.resize("desktop")
  return faults
}

/** Opens an address in every look, and demands that nothing is wrong with any. */
export async function requireGoodLooks(
  { browser, pictures }: Pick<SharedPages, "browser" | "pictures">,
  { name, url, expected = [], act }: Visit,
  looks = looksOf(name),
) {
  for (const [look, options] of looks) {
    await browser.visit(url, { ...options, expected }, async (page) => {
      await act?.(page)
      const kept = options.screen === "zoom" ? undefined : pictures
      const faults = options.screen === "desktop" ? faultsAtWidths : faultsOf
      expect([look, await faults(page, `${name}-${look}`, kept)]).toEqual([look, []])
    })
  }
}

export interface Visit {
  /** Of its pictures. */
  name: string
  url: string
  expected?: RegExp[]
  /** What is done before the page is looked at. */
  act?: (page: BrowserPage) => Promise<unknown>
}

/** A page asks for the session that the browser may have; without one the browser logs the 401. */
export const SIGNED_OUT = [/status of 40[01].*\/session/]

/** Requests with this method, from now on. Each waits until somebody lets it go. */
export async function holdRequests(page: BrowserPage, method: string): Promise<HTTPRequest[]> {
  const held: HTTPRequest[] = []
  page.tab.on("request", (request) => {
    if (request.method() === method) held.push(request)
    else request.continue().catch(() => {}) // the page is gone
  })
  await page.tab.setRequestInterception(true)
  return held
}
