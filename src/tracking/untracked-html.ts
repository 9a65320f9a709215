import { rewriteHtml } from "../lib/html-rewriting"
import { keysOf } from "./tracked-html"
import { readClickToken, readOpenToken } from "./tracking-tokens"

const PIXEL = /<img src="https?:\/\/[^\s"'<>]{1,500}\/t\/o\/([\w.-]{1,200})"[^<>]{0,200}>/g

/**
 * The html as `trackedHtml` got it: links lead where they led, and the pixel is gone. What another
 * server tracks stays. `key` is that of the tokens.
 */
export function untrackedHtml(html: string, key: Uint8Array): string {
  const keys = keysOf(key)
  const linkFor = (target: string) => {
    const [, token] = /\/t\/c\/([\w-]+)$/.exec(target) ?? []
    return token === undefined ? undefined : escaped(readClickToken(keys, token)?.url)
  }
  return rewriteHtml(html, { linkFor, ending: "" }).replace(PIXEL, (image, token: string) =>
    readOpenToken(keys, token) ? "" : image,
  )
}

const escaped = (url: string | undefined) =>
  url?.replace(/[&"'<>\s]/g, (char) => `&#${char.charCodeAt(0)};`)
