import { statSync } from "node:fs"
import { Glob } from "bun"
import { fail } from "../core/errors"
import { type CompressedText, compressedAnswer, compressedText } from "./compressed-text"
import { type EntryName, SERVER_URL } from "./console-bundle"

/** The bundle as it is served: compressed bytes by hashed name and encoding. */
interface ConsoleAssets {
  entries: Record<EntryName, string>
  /** By page: the names of its scripts. */
  pages: Record<string, string[]>
  lookup(name: string, encoding: AssetEncoding): Blob | undefined
}

type AssetEncoding = "brotli" | "gzip"

export const IS_COMPILED = /\/(\$bunfs|~BUN)\//.test(import.meta.url)

/**
 * The bundle of the console. The binary carries it; from the sources it is made at the first call, and
 * again after a source of it changed.
 */
export const consoleAssets = (): Promise<ConsoleAssets> =>
  IS_COMPILED ? embeddedAssets() : bundledAssets()

async function embeddedAssets(): Promise<ConsoleAssets> {
  const { files, entries, pages } = await import("belfry-console")
  const lookup: ConsoleAssets["lookup"] = (name, encoding) => {
    const file = Object.hasOwn(files, name) ? files[name] : undefined
    return file && Bun.file(file[encoding])
  }
  return { entries, pages, lookup }
}

let bundled: { stamp: number; assets: Promise<ConsoleAssets> } | undefined

async function bundledAssets(): Promise<ConsoleAssets> {
  const { bundleConsole, BROWSER_FOLDERS } = await import("./console-bundle")
  const stamp = stampOf([...BROWSER_FOLDERS, import.meta.dir])
  if (bundled?.stamp === stamp) return bundled.assets
  const assets = bundleConsole({ is_release: false }).then(
    ({ files, entries, pages }): ConsoleAssets => {
      const byName = new Map(files.map((file) => [file.name, file]))
      const lookup: ConsoleAssets["lookup"] = (name, encoding) => {
        const bytes = byName.get(name)?.[encoding]
        return bytes && new Blob([bytes as Uint8Array<ArrayBuffer>])
      }
      return { entries, pages, lookup }
    },
  )
  bundled = { stamp, assets }
  return assets
}

function stampOf(folders: string[]): number {
  const files = folders.flatMap((folder) => [
    ...new Glob("**/*.{ts,tsx,css}").scanSync({ cwd: folder, absolute: true }),
  ])
  return Math.max(...files.map((file) => statSync(file).mtimeMs))
}

const TYPES: Record<string, string> = {
  js: "text/javascript;charset=utf-8",
  css: "text/css;charset=utf-8",
}

/** The name changes with the content, so a browser never has to ask again. */
const FOR_EVER = "public, max-age=31536000, immutable"

/** `GET /assets/{name}`: a file of the bundle in the encoding that the browser takes. */
export async function assetResponse(request: Request, name: string): Promise<Response> {
  if (name === VERSION_NAME && !IS_COMPILED) return versionResponse()
  return namedAsset(request, await consoleAssets(), name, {
    "cache-control": FOR_EVER,
    "cross-origin-resource-policy": "same-origin",
  })
}

/** Of scripts for every origin. Their addresses stay the same, so a browser asks each time whether they changed. */
const FOR_ALL = {
  "cache-control": "public, no-cache",
  "cross-origin-resource-policy": "cross-origin",
  "access-control-allow-origin": "*",
}

/** `GET /inbox.js`: the component for pages of every origin. */
export async function inboxScript(request: Request): Promise<Response> {
  const assets = await consoleAssets()
  return namedAsset(request, assets, assets.entries.inbox, FOR_ALL)
}

/** `GET /sw.js`: what workers of every origin import. It calls the server at this address. */
export async function workerScript(request: Request, base_url: string): Promise<Response> {
  const name = `${(await consoleAssets()).entries.worker} ${base_url}`
  if (worker?.name !== name) worker = { name, text: workerText(base_url) }
  return compressedAnswer(request, await worker.text, { ...headersOf(".js"), ...FOR_ALL })
}

let worker: { name: string; text: Promise<CompressedText> } | undefined

async function workerText(base_url: string): Promise<CompressedText> {
  const { entries, lookup } = await consoleAssets()
  const packed = lookup(entries.worker, "gzip") ?? fail("not_found", "There is no such script.")
  const text = new TextDecoder().decode(Bun.gunzipSync(await packed.bytes()))
  return compressedText(text.replaceAll(SERVER_URL, base_url), 9)
}

function namedAsset(
  request: Request,
  assets: ConsoleAssets,
  name: string,
  own: Record<string, string>,
): Promise<Response> {
  const [brotli, gzip] = [assets.lookup(name, "brotli"), assets.lookup(name, "gzip")]
  if (!brotli || !gzip) return fail("not_found", `There is no asset ${name}. Load the page again.`)
  const text = { brotli, gzip, etag: `"${name}"` }
  return compressedAnswer(request, text, { ...headersOf(name), ...own })
}

const headersOf = (name: string) => ({
  "content-type": TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
  "x-content-type-options": "nosniff",
})

/** From the sources only: a page asks for it, and loads itself again after a change. */
const VERSION_NAME = "version.txt"

async function versionResponse(): Promise<Response> {
  const { entries } = await consoleAssets()
  const headers = { "content-type": "text/plain", "cache-control": "no-store" }
  return new Response(Object.values(entries).join(" "), { headers })
}
