import type { AnyRoute } from "../../http/route"
import type { SearchEntry } from "../../lib/reference-search"
import { consoleAssets } from "../assets"
import {
  type CompressedText,
  compressedAnswer,
  compressedText,
  plainText,
} from "../compressed-text"
import { consoleHeaders } from "../console-page"
import { html, type Markup } from "../html"
import type { Documents } from "./documents"
import { errorContent, errorList, errorText } from "./error-pages"
import { eventTypesPage } from "./event-types-page"
import { docsFrame, HOME_TITLE } from "./frame"
import { guides, lookupGuide } from "./guides"
import { areaPage, homePage } from "./home-page"
import { guideContent, sectionsOf } from "./markdown"
import { operationPage } from "./operation-page"
import { type ApiReference, referenceOf } from "./reference"
import { searchPage } from "./search-page"

/** What stands in the frame of one page. */
interface DocsContent {
  title: string
  content: Markup
  area?: string | undefined
}

/** All pages fit, a few kilobytes each: to make them again and again would be work for every stranger's request. */
const MOST_PAGES = 512

/** To compress better takes as long as to make the page. */
const QUALITY = 9

/** The pages of the reference. They are made at the first request, and the latest ones are kept. */
export class ReferenceSite {
  readonly #reference: ApiReference
  readonly #documents: Documents
  readonly #kept = new Map<string, CompressedText>()
  #entries: Promise<SearchEntry[]> | undefined

  private constructor(reference: ApiReference, documents: Documents) {
    this.#reference = reference
    this.#documents = documents
  }

  static async open(routes: AnyRoute[], documents: Documents): Promise<ReferenceSite> {
    const openapi = await plainText(documents.openapi)
    return new ReferenceSite(referenceOf(routes, openapi), documents)
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
    return compressedAnswer(request, kept, headersOf(request))
  }

  async #made(path: string): Promise<CompressedText | undefined> {
    const found = await this.#contentOf(path)
    return found && compressedText(await this.#framed(path, found), QUALITY)
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
    if (path === "/docs/errors") return { title: "Errors", content: errorList(this.#reference) }
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
    this.#entries ??= plainText(this.#documents.search).then(JSON.parse)
    const content = searchPage(await this.#entries, query)
    const text = await this.#framed("/docs/search", { title: "Search", content }, query)
    const found = await compressedText(text, SEARCH_QUALITY)
    return compressedAnswer(request, found, headersOf(request))
  }

  /** What the script of the pages searches in. */
  async searchIndex(request: Request): Promise<Response> {
    return compressedAnswer(request, this.#documents.search, INDEX_HEADERS)
  }
}

/** Nobody asks for the same search again. */
const SEARCH_QUALITY = 5

const INDEX_HEADERS = {
  "content-type": "application/json",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache",
}

/** As of the console. Search engines may read the reference, and the policy forbids frames. */
function headersOf(request: Request): Record<string, string> {
  const { "x-frame-options": _, "x-robots-tag": __, ...headers } = consoleHeaders(request)
  return { ...headers, "cache-control": "no-cache" }
}

async function guideOf(name: string): Promise<DocsContent | undefined> {
  const guide = lookupGuide(name)
  if (!guide) return undefined
  const text = await Bun.file(guide.file).text()
  const content = html`<p class="trail"><a href="/docs">Reference</a> / <a href="/docs#guides">Guides</a></p>
${guideContent(text)}`
  return { title: sectionsOf(text).title, content }
}
