import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "./migrations"
import { locate } from "./peers"

/** Headless Chromium, driven over the DevTools protocol. */
export interface Chromium extends AsyncDisposable {
  /** A new page in a profile of its own, so that no page knows what another one kept. */
  open(url: string, look?: PageLookOptions): Promise<BrowserPage>
}

interface PageLookOptions {
  dark?: boolean
  /** False: the page runs no script of its own. */
  scripts?: boolean
  headers?: Record<string, string>
  /** What Chromium is served in place of the network, by URL. */
  serve?: (url: string) => { type: string; body: Uint8Array } | undefined
}

export interface BrowserPage {
  goto(url: string): Promise<void>
  /** The width of the window, in CSS pixels. */
  resize(width: number): Promise<void>
  /** Presses keys by name, one after another: `Tab`, `Enter`, `Space`. */
  press(...keys: KeyName[]): Promise<void>
  /** As `press`, and waits for the page that the last key leads to. */
  pressAndLoad(...keys: KeyName[]): Promise<void>
  /** The value of an expression in the page. */
  read<Value>(expression: string): Promise<Value>
  /** What axe-core finds wrong: `rule (impact): the markup that is meant`. */
  accessibilityProblems(): Promise<string[]>
  screenshot(): Promise<Uint8Array>
  /** URLs of requests, those included that the page's policy blocked. */
  requests: string[]
  /** What the console of the page and the browser's log said. */
  messages: string[]
}

const START_MS = 30_000
const CALL_MS = 20_000

/** Starts a browser. It opens no socket but to what a page asks for, and leaves nothing behind. */
export async function startChromium(): Promise<Chromium> {
  const program = locate("chromium")
  if (!program) throw new Error("chromium is not installed")
  const profile = mkdtempSync(join(tmpdir(), "belfry-chromium-"))
  const child = Bun.spawn({
    cmd: [
      program,
      ...["--headless=new", "--remote-debugging-port=0", `--user-data-dir=${profile}`],
      ...["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
      ...["--disable-features=Translate,MediaRouter,OptimizationHints", "--hide-scrollbars"],
      "about:blank",
    ],
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    env: { PATH: process.env.PATH ?? "", HOME: profile, LANG: "C.UTF-8" },
  })
  const wire = await Wire.open(await addressIn(child.stderr))
  return {
    open: (url, look = {}) => openPage(wire, url, look),
    async [Symbol.asyncDispose]() {
      await wire.call("Browser.close").catch(() => {})
      wire.close()
      child.kill()
      await child.exited
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

/** `DevTools listening on ws://…`, which the browser prints when it is ready. */
async function addressIn(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ""
  const deadline = AbortSignal.timeout(START_MS)
  for await (const chunk of stderr) {
    text += decoder.decode(chunk, { stream: true })
    const [, address] = /DevTools listening on (ws:\S+)/.exec(text) ?? []
    if (address) return address
    if (deadline.aborted) break
  }
  throw new Error(`chromium did not start: ${text.slice(-2000)}`)
}

type Params = Record<string, unknown>
type Listener = (params: Params, session: string | undefined) => void

/** One connection to the browser; calls are answered by number, and events come between them. */
class Wire {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, { resolve(result: never): void; reject(e: Error): void }>()
  readonly #listeners = new Map<string, Set<Listener>>()
  #last = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.onmessage = ({ data }) => this.#hear(JSON.parse(String(data)))
  }

  static open(address: string): Promise<Wire> {
    const socket = new WebSocket(address)
    return new Promise((resolve, reject) => {
      socket.onopen = () => resolve(new Wire(socket))
      socket.onerror = () => reject(new Error("chromium does not answer"))
    })
  }

  #hear({ id, result, error, method, params = {}, sessionId }: Answer) {
    if (id === undefined) {
      for (const hear of this.#listeners.get(method ?? "") ?? []) hear(params, sessionId)
      return
    }
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error) waiting?.reject(new Error(error.message))
    else waiting?.resolve(result as never)
  }

  call<Result = Params>(method: string, params: Params = {}, sessionId?: string): Promise<Result> {
    const id = ++this.#last
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${method} got no answer`)), CALL_MS)
      const end =
        <Value>(settle: (value: Value) => void) =>
        (value: Value) => {
          clearTimeout(late)
          settle(value)
        }
      this.#waiting.set(id, {
        resolve: end(resolve as (value: never) => void),
        reject: end(reject),
      })
    })
  }

  on(method: string, hear: Listener): () => void {
    const known = this.#listeners.get(method) ?? new Set()
    this.#listeners.set(method, known.add(hear))
    return () => void known.delete(hear)
  }

  close() {
    this.#socket.close()
  }
}

interface Answer {
  id?: number
  result?: unknown
  error?: { message: string }
  method?: string
  params?: Params
  sessionId?: string
}

async function openPage(wire: Wire, url: string, look: PageLookOptions): Promise<BrowserPage> {
  const { browserContextId } = await wire.call("Target.createBrowserContext")
  const { targetId } = await wire.call("Target.createTarget", {
    url: "about:blank",
    browserContextId,
  })
  const attached = await wire.call<{ sessionId: string }>("Target.attachToTarget", {
    targetId,
    flatten: true,
  })
  const tab = new Tab(wire, attached.sessionId)
  await tab.prepare(look)
  await tab.goto(url)
  return tab
}

type KeyName = keyof typeof KEYS

const KEYS = {
  Tab: { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 },
  Enter: { key: "Enter", code: "Enter", windowsVirtualKeyCode: 13, text: "\r" },
  Space: { key: " ", code: "Space", windowsVirtualKeyCode: 32, text: " " },
}

const AXE = join(root, "node_modules/axe-core/axe.min.js")

class Tab implements BrowserPage {
  readonly #wire: Wire
  readonly #session: string
  readonly requests: string[] = []
  readonly messages: string[] = []

  constructor(wire: Wire, session: string) {
    this.#wire = wire
    this.#session = session
  }

  #call<Result = Params>(method: string, params?: Params) {
    return this.#wire.call<Result>(method, params, this.#session)
  }

  #on(method: string, hear: (params: never) => void) {
    return this.#wire.on(method, (params, session) => {
      if (session === this.#session) hear(params as never)
    })
  }

  async prepare({ dark = false, scripts = true, headers, serve }: PageLookOptions) {
    this.#on("Network.requestWillBeSent", ({ request }: { request: { url: string } }) => {
      if (!request.url.startsWith("data:")) this.requests.push(request.url)
    })
    this.#on("Log.entryAdded", ({ entry }: { entry: { text: string } }) => {
      this.messages.push(entry.text)
    })
    for (const domain of ["Page", "Network", "Log", "Runtime"]) await this.#call(`${domain}.enable`)
    await this.resize(900)
    const features = [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }]
    await this.#call("Emulation.setEmulatedMedia", { features })
    if (!scripts) await this.#call("Emulation.setScriptExecutionDisabled", { value: true })
    if (headers) await this.#call("Network.setExtraHTTPHeaders", { headers })
    if (serve) await this.#serve(serve)
  }

  async resize(width: number) {
    const screen = { width, height: 700, deviceScaleFactor: 1, mobile: false }
    await this.#call("Emulation.setDeviceMetricsOverride", screen)
  }

  async #serve(serve: NonNullable<PageLookOptions["serve"]>) {
    this.#on("Fetch.requestPaused", ({ requestId, request }: PausedRequest) => {
      const found = serve(request.url)
      const answer = found
        ? this.#call("Fetch.fulfillRequest", {
            requestId,
            responseCode: 200,
            responseHeaders: [{ name: "content-type", value: found.type }],
            body: Buffer.from(found.body).toString("base64"),
          })
        : this.#call("Fetch.continueRequest", { requestId })
      answer.catch(() => {}) // the page is gone
    })
    await this.#call("Fetch.enable", { patterns: [{ urlPattern: "*" }] })
  }

  async goto(url: string) {
    await this.#loaded(async () => {
      const { errorText } = await this.#call<{ errorText?: string }>("Page.navigate", { url })
      if (errorText) throw new Error(`${url}: ${errorText}`)
    })
  }

  /** Resolves when the page that `act` leads to has loaded. */
  async #loaded(act: () => Promise<void>) {
    const loaded = Promise.withResolvers<void>()
    const late = setTimeout(() => loaded.reject(new Error("no page has loaded")), CALL_MS)
    const stop = this.#on("Page.loadEventFired", () => loaded.resolve())
    try {
      await act()
      await loaded.promise
    } finally {
      clearTimeout(late)
      stop()
    }
  }

  async press(...keys: KeyName[]) {
    for (const name of keys) {
      await this.#call("Input.dispatchKeyEvent", { type: "keyDown", ...KEYS[name] })
      await this.#call("Input.dispatchKeyEvent", { type: "keyUp", ...KEYS[name] })
    }
  }

  pressAndLoad(...keys: KeyName[]) {
    return this.#loaded(() => this.press(...keys))
  }

  async read<Value>(expression: string): Promise<Value> {
    const asked = { expression, returnByValue: true, awaitPromise: true }
    const { result, exceptionDetails } = await this.#call<Evaluated>("Runtime.evaluate", asked)
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails))
    return result.value as Value
  }

  async accessibilityProblems(): Promise<string[]> {
    await this.read(`${readFileSync(AXE, "utf8")};0`)
    const found = await this.read<AxeResult>(
      "axe.run(document, { resultTypes: ['violations'] }).then(({violations}) => violations.map(({id, impact, nodes}) => ({id, impact, nodes: nodes.map(({html}) => html)})))",
    )
    return found.flatMap(({ id, impact, nodes }) => nodes.map((one) => `${id} (${impact}): ${one}`))
  }

  async screenshot(): Promise<Uint8Array> {
    const { data } = await this.#call<{ data: string }>("Page.captureScreenshot", { format: "png" })
    return Buffer.from(data, "base64")
  }
}

type AxeResult = { id: string; impact: string; nodes: string[] }[]

interface Evaluated {
  result: { value?: unknown }
  exceptionDetails?: unknown
}

interface PausedRequest {
  requestId: string
  request: { url: string }
}
