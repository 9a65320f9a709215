import { getDomain } from "tldts"
import type { ContentFinding } from "./content-finding"
import { htmlTokens } from "./html-tokens"
import type { MailLink } from "./mail-links"
import * as words from "./spam-words"
import { SHORTENERS } from "./spam-words"
import { textFromHtml } from "./text-from-html"

export interface MailContent {
  subject: string
  html: string | null
  text: string | null
}

/** Unwanted mail shows what it is in its beginning. */
const MOST_TEXT = 64 * 1024
const LEAST_WORDS_BESIDE_IMAGES = 20
const LEAST_CAPITALS = 8

const WORDS: [rule: string, form: RegExp, meaning: string][] = [
  ["advance_fee", words.ADVANCE_FEE, "like an offer of money from a stranger"],
  ["threat", words.THREAT, "like blackmail"],
  ["credentials", words.CREDENTIALS, "like a request for credentials"],
  ["pharmacy", words.PHARMACY, "like an offer of medicine"],
  ["gambling", words.GAMBLING, "like gambling or dating"],
  ["easy_money", words.EASY_MONEY, "like a promise of easy money"],
  ["cold_offer", words.COLD_OFFER, "like an offer that nobody asked for"],
  ["urgency", words.URGENCY, "like pressure to act at once"],
  ["nameless", words.NAMELESS, "like a greeting without a name"],
]

/** Words and forms that filters count against a mail, each once. */
export function spamContentFindings({ subject, html, text }: MailContent): ContentFinding[] {
  const body = (text ?? textFromHtml(html ?? "")).slice(0, MOST_TEXT)
  const all = `${subject}\n${body}`.replace(/\s+/g, " ").toLowerCase()
  const found = WORDS.flatMap(([rule, form, meaning]): ContentFinding[] => {
    const word = new RegExp(form.source, form.flags.replace("g", "")).exec(all)?.[0]
    if (word === undefined) return []
    return [{ rule, detail: `${JSON.stringify(word)} reads ${meaning}. Say it in other words.` }]
  })
  return [...found, ...subjectFindings(subject), ...imageOnly(html, body)]
}

function subjectFindings(subject: string): ContentFinding[] {
  const found: ContentFinding[] = []
  const letters = subject.replace(/[^\p{L}]/gu, "")
  const is_shouted = letters === letters.toUpperCase() && letters !== letters.toLowerCase()
  if (is_shouted && letters.length >= LEAST_CAPITALS) {
    found.push({
      rule: "capitals",
      detail: "The subject is all in capitals. Write it as a sentence.",
    })
  }
  if (/[!?！？]{2,}/.test(subject)) {
    found.push({ rule: "exclamation", detail: "The subject has several marks in a row. Use one." })
  }
  if (/^(?:re|fwd?|aw|wg|tr):/i.test(subject)) {
    const detail = "The subject looks like an answer, but the mail answers none. Remove the prefix."
    found.push({ rule: "false_reply", detail })
  }
  return found
}

function imageOnly(html: string | null, body: string): ContentFinding[] {
  if (html === null) return []
  let images = 0
  for (const token of htmlTokens(html)) {
    if (token.kind === "tag" && token.name === "img" && !token.closing) images += 1
  }
  if (images === 0 || wordsIn(body) >= LEAST_WORDS_BESIDE_IMAGES) return []
  const counted = images === 1 ? "one image" : `${images} images`
  const detail = `The mail has ${counted} and almost no text. Filters cannot read it; add text.`
  return [{ rule: "image_only", detail }]
}

const wordsIn = (text: string) => text.match(/\p{L}{2,}/gu)?.length ?? 0

type CheckedLink = Pick<MailLink, "href" | "text">

/** Links that lead nowhere, without TLS, elsewhere than their text says, or over a shortener. */
export const linkFindings = (links: CheckedLink[]): ContentFinding[] => links.flatMap(findingsOf)

const OTHER_SCHEMES = /^(?:mailto|tel|sms|cid):/i

function findingsOf({ href, text }: CheckedLink): ContentFinding[] {
  if (href === "" || href === "#") {
    return [finding("empty", `The link ${quoted(text)} leads nowhere. Give it a target.`)]
  }
  if (href.startsWith("#") || OTHER_SCHEMES.test(href)) return []
  const url = URL.parse(href)
  if (!url || /\s/.test(href)) {
    return [finding("malformed", `The target ${quoted(href)} is no URL. Give it with https://.`)]
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return [finding("scheme", `Mail programs do not open ${quoted(href)}. Use https.`)]
  }
  const all: ContentFinding[] = []
  if (url.protocol === "http:") {
    all.push(finding("without_https", `${quoted(href)} is without TLS. Use https.`))
  }
  if (SHORTENERS.test(url.hostname)) {
    all.push(finding("shortener", `${url.hostname} hides the target. Link to the target itself.`))
  }
  const shown = shownDomain(text)
  const target = getDomain(url.hostname)
  if (shown !== null && target !== null && shown !== target) {
    all.push(finding("other_domain", `The text says ${shown}, but the link leads to ${target}.`))
  }
  return all
}

const finding = (rule: string, detail: string): ContentFinding => ({ rule, detail })

const MOST_SHOWN = 200

const quoted = (text: string) => JSON.stringify(text.slice(0, MOST_SHOWN))

/** The registrable domain that a link's text names as an address; null where it is other words. */
function shownDomain(text: string): string | null {
  const host = /^(?:https?:\/\/)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:[/?#:]\S*)?$/i.exec(text)?.[1]
  return host ? getDomain(host) : null
}
