import { organizational } from "../../domains/names"
import { spamContentFindings } from "../../lib/spam-content"
import { countCharacters } from "../../lib/text"
import { linkTargets } from "../../mailbox/link-targets"
import { TAG } from "../variable-check"

export type ContentFacts = ReturnType<typeof contentFacts>

/** A tag, and no address in angle brackets: a body without one is plain text. */
const MARKUP = /<[!/]?[a-z][\w-]*(?:[\s/][^<>]*)?>/i

/** The variables of the recipient's own pages. */
const OWN_PAGES = /\{\{[{&~]{0,2}\s*(?:unsubscribe_url|preferences_url)\b/

/** Runs in the worker. */
export function contentFacts({ subject, body }: { subject?: string | null; body: string }) {
  const [html, text] = MARKUP.test(body) ? [body, null] : [null, body]
  const targets = linkTargets(new Uint8Array(), { html, text })
  // A host that a variable gives is not known yet.
  const hosts = targets.map(({ url }) => new URL(url).hostname).filter((name) => !/[{%]/.test(name))
  // What is between braces is not what people see.
  const line = (subject ?? "").replaceAll(TAG, "").trim()
  const spam = spamContentFindings({ subject: line, html, text })
  return {
    subject_length: countCharacters(line),
    body_bytes: Buffer.byteLength(body),
    /** What their owners registered, each once. */
    link_domains: [...new Set(hosts.map(organizational))],
    ends_subscription: OWN_PAGES.test(body) || targets.some((link) => link.is_unsubscribe),
    /** Why a mail looks unwanted, by the rule that found it. */
    spam: Object.fromEntries(spam.map(({ rule, detail }) => [rule, detail])),
  }
}
