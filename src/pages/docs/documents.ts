import type { AnyRoute } from "../../http/route"
import { IS_COMPILED } from "../assets"
import { type CompressedText, compressedText } from "../compressed-text"

/** What is made of the whole table of routes, which takes long enough to hold up other requests. */
export const DOCUMENTS = ["openapi", "search"] as const

export type DocumentName = (typeof DOCUMENTS)[number]

/** The OpenAPI document, and the index of the search, both as JSON. */
export type Documents = Record<DocumentName, CompressedText>

/** The binary carries them; from the sources they are made. */
export const documentsOf = (routes: AnyRoute[], version: string): Promise<Documents> =>
  IS_COMPILED ? embeddedDocuments() : madeDocuments(routes, version)

async function embeddedDocuments(): Promise<Documents> {
  const { documents } = await import("belfry-console")
  const opened = (name: DocumentName): CompressedText => {
    const { brotli, gzip, etag } = documents[name]
    return { brotli: Bun.file(brotli), gzip: Bun.file(gzip), etag }
  }
  return { openapi: opened("openapi"), search: opened("search") }
}

/** The build compresses better what the binary carries. */
const QUALITY = 5

async function madeDocuments(routes: AnyRoute[], version: string): Promise<Documents> {
  const { openApi } = await import("../../http/openapi")
  const { referenceOf } = await import("./reference")
  const { searchEntries } = await import("./search-page")
  const openapi = JSON.stringify(openApi(routes, version))
  const entries = await searchEntries(referenceOf(routes, openapi))
  return {
    openapi: await compressedText(openapi, QUALITY),
    search: await compressedText(JSON.stringify(entries), QUALITY),
  }
}
