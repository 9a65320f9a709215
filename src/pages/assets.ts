import { statSync } from "node:fs"
import { Glob } from "bun"
import { fail } from "../core/errors"
import { compressedAnswer } from "./compressed-text"
import type { EntryName } from "./console-bundle"

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

/**
 * `GET /inbox.js`: the component for pages of every origin. Its address stays the same, so a browser asks each time
 * whether it has changed.
 */
export async function inboxScript(request: Request): Promise<Response> {
  const assets = await consoleAssets()
  return namedAsset(request, assets, assets.entries.inbox, {
    "cache-control": "public, no-cache",
    "cross-origin-resource-policy": "cross-origin",
    "access-control-allow-origin": "*",
  })
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
  const type = TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream"
  const headers = { "content-type": type, "x-content-type-options": "nosniff", ...own }
  return compressedAnswer(request, text, headers)
}

/** From the sources only: a page asks for it, and loads itself again after a change. */
const VERSION_NAME = "version.txt"

async function versionResponse(): Promise<Response> {
  const { entries } = await consoleAssets()
  const headers = { "content-type": "text/plain", "cache-control": "no-store" }
  return new Response(Object.values(entries).join(" "), { headers })
}
