import { type ContentChecks, checkContent } from "../emails/content-check-task"
import { bounded, type ContentFinding } from "../lib/content-finding"
import { isFile, readTree, textsOf } from "../lib/mail-tree"
import { featuresIn } from "../lib/markup-check"
import { untrackedHtml } from "../tracking/tracked-html"
import { type LinkTarget, linkTargets, unsubscribeAddresses } from "./link-targets"
import { supportTable } from "./program-support" with { type: "macro" }

/** A feature of html or CSS that some mail programs show in part, or not at all. */
export interface FeatureSupport {
  feature: string
  count: number
  programs: { name: string; support: "partial" | "no" }[]
}

export interface MailToCheck {
  raw: Uint8Array
  subject: string
  /** Of the tokens of tracking. */
  key: Uint8Array
}

export interface CheckedMail {
  html: FeatureSupport[]
  content: ContentFinding[]
  html_bytes: number
  targets: LinkTarget[]
  /** The addresses that the header gives for the end of a subscription. */
  announced: Set<string>
}

/** Looking at more would hold a thread for seconds, and no mail program shows that much. */
const MOST_LOOKED_AT_BYTES = 1024 * 1024

const TABLE = supportTable()

/**
 * Runs in the worker. Html and text beyond 1 MiB are not looked at, and a finding says so. Links and
 * pixel of the server's own tracking are no fault of the mail, and asking for such a link would be a
 * click of the recipient: the mail is looked at as it was written.
 */
export function checkMail({ raw, subject, key }: MailToCheck): CheckedMail {
  const { leaves } = readTree(raw)
  const bodies = leaves.filter((leaf) => !isFile(leaf))
  const html = textsOf(bodies, "text/html")
  const text = textsOf(bodies, "text/plain")
  const html_bytes = Buffer.byteLength(html ?? "")
  const [shown, plain] = [shortened(html), shortened(text)]
  const is_cut = shown !== html || plain !== text
  const seen = { subject, html: shown === null ? null : untrackedHtml(shown, key), text: plain }
  return {
    html: supportOf(featuresIn(seen.html ?? "")),
    content: [...(is_cut ? [TOO_LONG] : []), ...contentOf(checkContent(seen))],
    html_bytes,
    targets: linkTargets(raw, seen),
    announced: unsubscribeAddresses(raw),
  }
}

const shortened = (text: string | null): string | null =>
  text === null ? null : text.slice(0, MOST_LOOKED_AT_BYTES)

const TOO_LONG: ContentFinding = {
  rule: "long",
  detail: `Only the first ${MOST_LOOKED_AT_BYTES} characters of html and text were looked at.`,
}

/** Which programs show what has a list of its own, from the same places. */
const contentOf = ({ rendering, links, accessibility, spam_content }: ContentChecks) =>
  bounded([
    ...rendering.filter(({ rule }) => rule !== "unsupported"),
    ...links,
    ...accessibility,
    ...spam_content,
  ])

/** What most programs lack comes first. */
function supportOf(counts: Map<string, number>): FeatureSupport[] {
  const rows = TABLE.features.flatMap(([feature, names, support]) => {
    const count = names.reduce((sum, name) => sum + (counts.get(name) ?? 0), 0)
    return count > 0 ? [{ feature, count, programs: programsOf(support) }] : []
  })
  const lacking = ({ programs }: FeatureSupport) =>
    programs.filter(({ support }) => support === "no").length
  return rows.sort((a, b) => lacking(b) - lacking(a) || b.programs.length - a.programs.length)
}

const SUPPORT: Record<string, "no" | "partial" | undefined> = { n: "no", a: "partial" }

const programsOf = (letters: string): FeatureSupport["programs"] =>
  [...letters].flatMap((letter, at) => {
    const support = SUPPORT[letter]
    return support ? [{ name: TABLE.programs[at] ?? "", support }] : []
  })
