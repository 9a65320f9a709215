import { type HarmlessOptions, harmlessHtml } from "../lib/harmless-html"
import { imageType } from "../lib/image-type"
import { contentOf, isFile, type MailLeaf, readTree, textsOf } from "../lib/mail-tree"

export interface MailToShow {
  raw: Uint8Array
  /** The content security policy of the page. */
  policy: string
  scheme: HarmlessOptions["scheme"]
}

/** Of all inline images of a page, before base64. The rest of a mail with more is not shown. */
const MOST_IMAGE_BYTES = 10 * 1024 * 1024

/**
 * The html of a mail as a page of its own, made harmless, or undefined where the mail has none. Runs in
 * the worker. The policy stands in the page, too, for a copy of it.
 */
export function showMail({ raw, policy, scheme }: MailToShow): string | undefined {
  const { leaves } = readTree(raw)
  const bodies = leaves.filter((leaf) => !isFile(leaf))
  const html = textsOf(bodies, "text/html")
  if (html === null) return undefined
  const shown = harmlessHtml(html, { imageOf: imagesOf(leaves), scheme })
  const head = [
    '<!doctype html><html><head><meta charset="utf-8">',
    `<meta http-equiv="content-security-policy" content="${policy}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width">',
    `<style>:root{color-scheme:${scheme}}</style>`,
  ]
  return `${head.join("")}${shown}`
}

/** Finds an inline image by its Content-ID: each is encoded once. */
function imagesOf(leaves: MailLeaf[]): HarmlessOptions["imageOf"] {
  const files = new Map<string, MailLeaf>()
  for (const leaf of leaves) {
    const { content_id } = leaf
    if (content_id !== null && !files.has(content_id)) files.set(content_id, leaf)
  }
  const known = new Map<string, string | undefined>()
  let bytes = 0
  return (content_id) => {
    if (known.has(content_id)) return known.get(content_id)
    const leaf = files.get(content_id)
    const content = leaf && contentOf(leaf)
    bytes += content?.length ?? 0
    const type = content && bytes <= MOST_IMAGE_BYTES ? imageType(content) : undefined
    const url = type && `data:${type};base64,${content?.toString("base64")}`
    known.set(content_id, url)
    return url
  }
}
