import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import {
  type Browser,
  type ConsoleMessage,
  type ElementHandle,
  type HTTPRequest,
  type KeyInput,
  launch,
  type Page,
} from "puppeteer-core"
import { layoutScript } from "./layout"
import { root } from "./migrations"
import { locate } from "./peers"
import { NEVER_MS } from "./waits"

/** A browser without a window. It reaches the loopback only, and has the fonts of the fixtures. */
export interface TestBrowser extends AsyncDisposable {
  /** `Chrome/142.0.7444.59`. Pictures are compared within one version. */
  version: string
  /** A new page in a profile of its own, so that no page knows what another one kept. */
  open(url: string, look?: PageLookOptions): Promise<BrowserPage>
  /**
   * As `open`; closes the page when `act` has ended. Rejects when the console had an error, the
   * policy of the page blocked something or a script failed, unless `look.expected` names it.
   */
  visit<Value>(
    url: string,
    look: PageLookOptions,
    act: (page: BrowserPage) => Promise<Value>,
  ): Promise<Value>
}

export interface PageLookOptions {
  /** Width of the window in CSS pixels, or a usual device. */
  screen?: number | keyof typeof SCREENS
  dark?: boolean
  /** The person prefers a page without movement. Tests of pictures do. */
  still?: boolean
  /** False: the page runs no script of its own. */
  scripts?: boolean
  headers?: Record<string, string>
  /** What the browser is served in place of the network, by URL. */
  serve?: (url: string) => { type: string; body: Uint8Array } | undefined
  /** Problems that belong to the test. */
  expected?: RegExp[]
}

/** `zoom` is the same window as `desktop` at 200 %: half as many CSS pixels, each twice as large. */
export const SCREENS = {
  phone: { width: 390, height: 844, deviceScaleFactor: 1, isMobile: true, hasTouch: true },
  tablet: { width: 820, height: 1180, deviceScaleFactor: 1 },
  desktop: { width: 1280, height: 800, deviceScaleFactor: 1 },
  wide: { width: 1920, height: 1080, deviceScaleFactor: 1 },
  zoom: { width: 640, height: 400, deviceScaleFactor: 2 },
}

const HEIGHT = 700
const POLL_MS = 50
const QUIET_MS = 150
/** A browser that has not ended by then is ended. */
const END_MS = 5_000
const SETTLE_MS = 20_000
/** So many places of one fault are told. */
const MANY = 4

/** Names that are not the loopback's are not found, so that no page reaches anything else. */
const CHROMIUM_ARGS = [
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
  ...["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"],
  ...["--disable-lcd-text", "--font-render-hinting=none", "--force-color-profile=srgb"],
]

/** A proxy where nobody listens, for all but the loopback; and no question to its makers. */
const FIREFOX_PREFS = {
  "network.proxy.type": 1,
  "network.proxy.http": "127.0.0.1",
  "network.proxy.http_port": 9,
  "network.proxy.ssl": "127.0.0.1",
  "network.proxy.ssl_port": 9,
  "network.proxy.no_proxies_on": "127.0.0.1, localhost",
  "datareporting.policy.dataSubmissionEnabled": false,
}

export interface BrowserOptions {
  env?: Record<string, string>
  /** Preferences of Firefox. */
  prefs?: Record<string, unknown>
}

/** Starts a browser, which leaves nothing behind. */
export async function startBrowser(
  program: "chromium-headless-shell" | "firefox-esr" = "chromium-headless-shell",
  { env = {}, prefs = {} }: BrowserOptions = {},
): Promise<TestBrowser> {
  const executablePath = locate(program)
  if (!executablePath) throw new Error(`${program} is not installed`)
  const home = mkdtempSync(join(tmpdir(), "belfry-browser-"))
  const is_chromium = program === "chromium-headless-shell"
  const browser = await launch({
    browser: is_chromium ? "chrome" : "firefox",
    headless: is_chromium ? "shell" : true, // Chromium without what draws a window takes half of the time
    executablePath,
    // Through the pipe it ends with this process, and no port is open.
    ...(is_chromium
      ? { args: CHROMIUM_ARGS, pipe: true }
      : { extraPrefsFirefox: { ...FIREFOX_PREFS, ...prefs }, args: [] }),
    timeout: NEVER_MS,
    protocolTimeout: NEVER_MS,
    handleSIGTERM: false,
    handleSIGHUP: false,
    handleSIGINT: false,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      TMPDIR: home,
      LANG: "C.UTF-8",
      FONTCONFIG_FILE: fontSettings(home),
      ...env,
    },
  })
  const open = (url: string, look: PageLookOptions = {}) => openPage(browser, url, look)
  return {
    version: (await browser.version()).replace("Headless", ""),
    open,
    async visit(url, look, act) {
      await using page = await open(url, look)
      const value = await act(page)
      await page.settled()
      page.requireNoProblem(look.expected ?? [])
      return value
    },
    async [Symbol.asyncDispose]() {
      await Promise.race([browser.close().catch(() => undefined), Bun.sleep(END_MS)])
      browser.process()?.kill("SIGKILL") // one that a busy machine keeps from saying goodbye
      rmSync(home, { recursive: true, force: true })
    },
  }
}

const FONTS = join(root, "test/fixtures/fonts")

/** Every family is the one of the fixtures: a machine's own fonts would draw another picture. */
function fontSettings(home: string): string {
  const path = join(home, "fonts.conf")
  const cache = join(home, "font-cache")
  mkdirSync(cache)
  const text = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${FONTS}</dir><cachedir>${cache}</cachedir>
${["monospace", "ui-monospace"].map((name) => alias(name, "DejaVu Sans Mono")).join("")}
${["system-ui", "sans-serif", "serif"].map((name) => alias(name, "DejaVu Sans")).join("")}
</fontconfig>`
  writeFileSync(path, text)
  return path
}

const alias = (name: string, family: string) =>
  `<match target="pattern"><test name="family"><string>${name}</string></test><edit name="family" mode="prepend" binding="strong"><string>${family}</string></edit></match>`

async function openPage(browser: Browser, url: string, look: PageLookOptions) {
  const context = await browser.createBrowserContext()
  const page = new BrowserPage(await context.newPage(), () => context.close())
  await page.prepare(look)
  await page.goto(url)
  return page
}

const AXE = join(root, "node_modules/axe-core/axe.min.js")

/** A page that a test looks at and works with. `tab` is puppeteer's own page. */
export class BrowserPage implements AsyncDisposable {
  readonly tab: Page
  readonly #close: () => Promise<void>
  /** URLs of requests, those included that the page's policy blocked. */
  readonly requests: string[] = []
  /** Errors and warnings of the console, and errors that no script caught, with their URL. */
  readonly problems: string[] = []
  readonly #under_way = new Set<HTTPRequest>()

  constructor(tab: Page, close: () => Promise<void>) {
    this.tab = tab
    this.#close = close
  }

  async prepare({ screen = 900, dark = false, still = false, ...look }: PageLookOptions) {
    this.tab.setDefaultTimeout(NEVER_MS)
    this.tab.on("request", (request) => this.#hearRequest(request))
    this.tab.on("response", (response) => this.#hearAnswer(response.request()))
    for (const end of ["requestfinished", "requestfailed"] as const)
      this.tab.on(end, (request) => this.#under_way.delete(request))
    this.tab.on("console", (message) => this.#hearConsole(message))
    this.tab.on("pageerror", (error) => this.problems.push(`uncaught: ${error}`))
    await this.resize(screen)
    if (dark || still) await this.prefer(dark, still)
    if (look.scripts === false) await this.tab.setJavaScriptEnabled(false)
    if (look.headers) await this.tab.setExtraHTTPHeaders(look.headers)
    if (look.serve) await this.#serve(look.serve)
  }

  #hearRequest(request: HTTPRequest) {
    this.#under_way.add(request)
    if (!request.url().startsWith("data:")) this.requests.push(request.url())
  }

  /** With the answer comes a new page. What the one before had asked for, until then, is never told to end. */
  #hearAnswer(request: HTTPRequest) {
    if (!request.isNavigationRequest() || request.frame() !== this.tab.mainFrame()) return
    this.#under_way.clear()
    this.#under_way.add(request)
  }

  #hearConsole(message: ConsoleMessage) {
    if (!["error", "warn", "assert"].includes(message.type())) return
    const { url = "" } = message.location()
    this.problems.push(`${message.text()}${url && ` (${url.slice(0, 200)})`}`)
  }

  /** What the settings of the device say. */
  async prefer(dark: boolean, still: boolean) {
    await this.tab.emulateMediaFeatures([
      { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
      { name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference" },
    ])
  }

  async #serve(serve: NonNullable<PageLookOptions["serve"]>) {
    this.tab.on("request", (request) => {
      const found = serve(request.url())
      const answer = found
        ? request.respond({ status: 200, contentType: found.type, body: found.body })
        : request.continue()
      answer.catch(() => {}) // the page is gone
    })
    await this.tab.setRequestInterception(true)
  }

  async goto(url: string) {
    await this.tab.goto(url, { waitUntil: "load" })
  }

  async resize(screen: NonNullable<PageLookOptions["screen"]>) {
    const one_to_one = { width: Number(screen), height: HEIGHT, deviceScaleFactor: 1 }
    await this.tab.setViewport(typeof screen === "number" ? one_to_one : SCREENS[screen])
  }

  /** Presses keys by name, one after another: `Tab`, `Enter`, `Space`. */
  async press(...keys: KeyInput[]) {
    for (const key of keys) await this.tab.keyboard.press(key)
  }

  /** As `press`, and waits for the page that the last key leads to. */
  async pressAndLoad(...keys: KeyInput[]) {
    await Promise.all([this.tab.waitForNavigation({ waitUntil: "load" }), this.press(...keys)])
  }

  /** Signs the tab in with an API key, as the page to sign in does. */
  async keepKey(key: string) {
    await this.read(`sessionStorage.setItem("belfry-key", ${JSON.stringify(key)})`)
  }

  /** The value of an expression in the page. */
  async read<Value>(expression: string): Promise<Value> {
    return (await this.tab.evaluate(expression)) as Value
  }

  /** Resolves to the value of an expression as soon as it is truthy. */
  async until<Value>(expression: string): Promise<Value> {
    const deadline = performance.now() + NEVER_MS
    while (true) {
      const value = await this.read<Value>(expression).catch(whileNavigating)
      if (value) return value
      if (performance.now() > deadline) {
        const text = await this.read<string>("document.body.innerText")
        throw new Error(`never true: ${expression}\nThe page at ${this.tab.url()} says:\n${text}`)
      }
      await Bun.sleep(POLL_MS)
    }
  }

  /** Resolves when the page shows a text. */
  async shows(text: string) {
    await this.until(`document.body.innerText.includes(${JSON.stringify(text)})`)
  }

  /** Resolves when the page has shown a text since `act` began, also where it is gone by now. */
  async showsAfter(text: string, act: () => Promise<unknown>) {
    const shown = `document.body.innerText.includes(${JSON.stringify(text)})`
    await this.read(`(() => {
      window.has_shown = false
      new MutationObserver((_, watch) => {
        window.has_shown ||= ${shown}
        if (window.has_shown) watch.disconnect()
      }).observe(document.body, { subtree: true, childList: true, characterData: true })
    })()`)
    await act()
    await this.until("window.has_shown")
  }

  /** Clicks what people call so: a button, link or tab by its name and, where needed, its role. */
  async click(name: string, ...roles: string[]) {
    const element = await this.named(name, ...roles)
    await element.click()
  }

  /** Types into the field with this label, in place of what it holds. */
  async fill(label: string, text: string) {
    const field = await this.named(label, "textbox", "searchbox", "spinbutton")
    await field.focus()
    await this.tab.keyboard.down("Control")
    await this.press("a")
    await this.tab.keyboard.up("Control")
    await this.press("Backspace")
    await field.type(text)
  }

  /** Resolves to the first element with this name and a role, as assistive programs know it. */
  async named(name: string, ...roles: string[]): Promise<ElementHandle> {
    const query = `aria/[name=${JSON.stringify(name)}]`
    const queries = roles.length > 0 ? roles.map((role) => `${query}[role="${role}"]`) : [query]
    const deadline = performance.now() + NEVER_MS
    while (performance.now() < deadline) {
      for (const one of queries) {
        const found = await this.tab.$(one)
        if (found) return found
      }
      await Bun.sleep(POLL_MS)
    }
    const text = await this.read<string>("document.body.innerText")
    throw new Error(`nothing is called ${query} at ${this.tab.url()}, which says:\n${text}`)
  }

  /** Resolves when nothing was under way for a moment, or after 20 s: a page may always ask for more. */
  async settled() {
    const deadline = performance.now() + SETTLE_MS
    let quiet_since = performance.now()
    while (performance.now() - quiet_since < QUIET_MS && performance.now() < deadline) {
      await Bun.sleep(POLL_MS)
      if (this.#under_way.size > 0) quiet_since = performance.now()
    }
  }

  /** What axe-core finds wrong: `rule (impact): the markup that is meant`. */
  async accessibilityProblems(): Promise<string[]> {
    if (!(await this.read("'axe' in window"))) await this.read(`${readFileSync(AXE, "utf8")};0`)
    const found = await this.read<AxeResult>(
      "axe.run(document, { resultTypes: ['violations'], iframes: false }).then(({violations}) => violations.map(({id, impact, nodes}) => ({id, impact, nodes: nodes.map(({html}) => html)})))",
    )
    return found.flatMap(({ id, impact, nodes }) => [
      ...nodes.slice(0, MANY).map((one) => `${id} (${impact}): ${one.slice(0, 200)}`),
      ...(nodes.length > MANY ? [`${id}: ${nodes.length - MANY} times more`] : []),
    ])
  }

  /** What `layoutScript` finds: overflow, overlap, misalignment. */
  async layoutFaults(): Promise<string[]> {
    return await this.read<string[]>(layoutScript())
  }

  async screenshot(): Promise<Uint8Array> {
    return await this.tab.screenshot({ type: "png" })
  }

  requireNoProblem(expected: RegExp[] = []) {
    const found = this.problems.filter((one) => !expected.some((form) => form.test(one)))
    if (found.length > 0) throw new Error(`problems at ${this.tab.url()}:\n${found.join("\n")}`)
  }

  async [Symbol.asyncDispose]() {
    await this.#close()
  }
}

/** Between two pages there is nothing to read: the next look will find one. */
function whileNavigating(error: Error): undefined {
  if (!/context was destroyed|Cannot find context|detached/i.test(error.message)) throw error
}

type AxeResult = { id: string; impact: string; nodes: string[] }[]
