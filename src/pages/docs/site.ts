import { gzipSync } from "node:zlib"
import { VERSION } from "../../core/version"
import { type ExampleRequest, exampleRequest } from "../../http/example-request"
import { openApi } from "../../http/openapi"
import type { AnyRoute } from "../../http/route"
import { takesCoding } from "../../lib/content-coding"
import { consoleAssets } from "../assets"
import { consoleHeaders } from "../console-page"
import { html, type Markup } from "../html"
import { errorContent, errorList, errorText } from "./error-pages"
import { eventTypesPage } from "./event-types-page"
import { docsFrame, HOME_TITLE } from "./frame"
import { guides, lookupGuide } from "./guides"
import { areaPage, homePage } from "./home-page"
import { guideContent, sectionsOf } from "./markdown"
import { operationPage } from "./operation-page"
import { type ApiReference, apiReference } from "./reference"
import { searchEntries, searchPage } from "./search-page"

/** What stands in the frame of one page. */
interface DocsContent {
  title: string
  content: Markup
  area?: string | undefined
}

/** A page as the cache keeps it. Its bytes are compressed, so that many pages need little memory. */
interface KeptPage {
  gzip: Uint8Array<ArrayBuffer>
  etag: string
}

/** All pages fit, a few kilobytes each: to make them again and again would be work for every stranger's request. */
const MOST_PAGES = 512

/** The pages of the reference. They are made at the first request, and the latest ones are kept. */
export class ReferenceSite {
  readonly #reference: ApiReference
  readonly #kept = new Map<string, KeptPage>()
  readonly #entries = madeOnce(() => searchEntries(this.#reference))
  readonly #index = madeOnce(async () => compressed(JSON.stringify(await this.#entries())))

  constructor(routes: AnyRoute[]) {
    const requests = new Map(
      routes.map((route) => [`${route.method} ${route.path}`, exampleRequest(route)]),
    )
    const requestOf = (name: string) => requests.get(name) as ExampleRequest
    this.#reference = apiReference(openApi(routes, VERSION), requestOf)
  }

  /** The page of a path such as `/docs/emails`. Undefined where there is none. */
  async page(request: Request, path: string): Promise<Response | undefined> {
    const { entries } = await consoleAssets()
    const key = `${entries.docs} ${entries.docsStyle} ${path}`
    const kept = this.#kept.get(key) ?? (await this.#made(path))
    if (!kept) return undefined
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST_PAGES) break
      this.#kept.delete(oldest)
    }
    return answer(request, kept, headersOf(request))
  }

  async #made(path: string): Promise<KeptPage | undefined> {
    const found = await this.#contentOf(path)
    return found && compressed(await this.#framed(path, found))
  }

  async #framed(path: string, content: DocsContent, query = ""): Promise<string> {
    const { entries } = await consoleAssets()
    const { areas, version } = this.#reference
    const assets = { theme: entries.theme, script: entries.docs, style: entries.docsStyle }
    return docsFrame({ areas, guides, version, assets }, { ...content, path, query })
  }

  async #contentOf(path: string): Promise<DocsContent | undefined> {
    if (path === "/docs") {
      return { title: HOME_TITLE, content: homePage(this.#reference, guides) }
    }
    if (path === "/docs/event-types") {
      return { title: "Event types", content: eventTypesPage(this.#reference) }
    }
    if (path === "/docs/errors") return { title: "Errors", content: errorList() }
    const [, , folder = "", name = ""] = path.split("/")
    if (folder === "errors") {
      const content = errorContent(name, await errorText(), this.#reference)
      return content && { title: name, content }
    }
    if (folder === "guides") return guideOf(name)
    return this.#operationOrArea(folder)
  }

  #operationOrArea(name: string): DocsContent | undefined {
    const operation = this.#reference.operations.get(name)
    if (operation) {
      const [area] = operation.operation.tags
      const content = operationPage(operation, this.#reference)
      return { title: operation.operation.summary, content, area }
    }
    const area = this.#reference.areas.find((one) => one.name === name)
    return area && { title: area.title, content: areaPage(area), area: name }
  }

  /** `GET /docs/search`, for browsers without script. */
  async search(request: Request, query: string): Promise<Response> {
    const content = searchPage(await this.#entries(), query)
    const text = await this.#framed("/docs/search", { title: "Search", content }, query)
    return answer(request, compressed(text), headersOf(request))
  }

  /** What the script of the pages searches in. */
  async searchIndex(request: Request): Promise<Response> {
    const headers = { "content-type": "application/json", "x-content-type-options": "nosniff" }
    return answer(request, await this.#index(), headers)
  }
}

/** Made at the first call, and after a failure at the next one. */
function madeOnce<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    return made
  }
}

/** As of the console. Search engines may read the reference, and the policy forbids frames. */
function headersOf(request: Request): Record<string, string> {
  const { "x-frame-options": _, "x-robots-tag": __, ...headers } = consoleHeaders(request)
  return headers
}

async function guideOf(name: string): Promise<DocsContent | undefined> {
  const guide = lookupGuide(name)
  if (!guide) return undefined
  const text = await Bun.file(guide.file).text()
  const content = html`<p class="trail"><a href="/docs">Reference</a> / <a href="/docs#guides">Guides</a></p>
${guideContent(text)}`
  return { title: sectionsOf(text).title, content }
}

function compressed(text: string): KeptPage {
  const digest = new Bun.CryptoHasher("sha256").update(text).digest("base64url")
  return { gzip: gzipSync(text, { level: 9 }), etag: `"${digest.slice(0, 22)}"` }
}

function answer(request: Request, { gzip, etag }: KeptPage, own: Record<string, string>): Response {
  const headers = { ...own, etag, "cache-control": "no-cache", vary: "accept-encoding" }
  if (request.headers.get("if-none-match")?.includes(etag))
    return new Response(null, { status: 304, headers })
  if (!takesCoding(request.headers.get("accept-encoding"), "gzip"))
    return new Response(Bun.gunzipSync(gzip), { headers })
  return new Response(gzip, { headers: { ...headers, "content-encoding": "gzip" } })
}
