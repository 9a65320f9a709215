import type { Secrets } from "../core/secrets"
import type { Workers } from "../core/workers"
import type { ContentFinding } from "../lib/content-finding"
import { TOKEN_PURPOSE } from "../tracking/tracking-tokens"
import type { CheckedMail, FeatureSupport, MailToCheck } from "./check-task"
import { type CheckedLink, type LinkRules, probeLinks } from "./link-probe"
import { lookInto } from "./mail-look"
import type { MailboxMail } from "./mailbox"

const CHECK_DEADLINE_MS = 10_000

/** Some mail programs show no more of an html body than this. */
const CLIPPED_BYTES = 102 * 1024

export interface MailCheckParts {
  secrets: Secrets
  workers: Workers
  /** Where links of a mail may lead to be fetched. */
  link_rules: LinkRules
}

/** What receivers will make of a mail. */
export interface MailCheck {
  html: FeatureSupport[]
  /** Null: nobody asked for them. */
  links: CheckedLink[] | null
  content: ContentFinding[]
  size: { bytes: number; html_bytes: number; clipped: boolean }
}

/** Looks at a mail, and with `links` asks the servers of its links. */
export async function checkMail(
  { secrets, workers, link_rules }: MailCheckParts,
  { project_id, raw, subject, size: bytes }: MailboxMail,
  { links }: { links: boolean },
): Promise<MailCheck> {
  const key = secrets.mac(TOKEN_PURPOSE, "v1")
  const input = () => {
    const given: MailToCheck = { raw: new Uint8Array(raw), subject, key }
    return { given, transfer: [given.raw.buffer as ArrayBuffer] }
  }
  const checked = await lookInto<CheckedMail>(
    ...([workers, project_id, "check-mail", input, CHECK_DEADLINE_MS] as const),
  )
  const { html, content, html_bytes, targets, announced } = checked
  return {
    html,
    content,
    links: links ? await probeLinks(targets, link_rules, announced) : null,
    size: { bytes, html_bytes, clipped: html_bytes > CLIPPED_BYTES },
  }
}
