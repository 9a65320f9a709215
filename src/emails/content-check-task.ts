import { accessibilityFindings } from "../lib/accessibility-check"
import { bounded, type ContentFinding } from "../lib/content-finding"
import { linksInHtml } from "../lib/mail-links"
import { markupFaults, unsupportedFeatures } from "../lib/markup-check"
import { linkFindings, type MailContent, spamContentFindings } from "../lib/spam-content"

/** Findings of each check that looks at nothing but the content. */
export type ContentChecks = Record<
  "rendering" | "links" | "accessibility" | "spam_content",
  ContentFinding[]
>

const PLACEHOLDER = /\{\{[^{}]{0,200}\}\}/g

/** Runs in the worker. */
export function checkContent(content: MailContent): ContentChecks {
  const { html } = content
  return {
    rendering: bounded([...placeholders(content), ...markupFaults(html ?? ""), ...unseen(html)]),
    links: bounded(linkFindings(linksInHtml(html ?? ""))),
    accessibility: html === null ? [] : accessibilityFindings(html),
    spam_content: bounded(spamContentFindings(content)),
  }
}

function placeholders({ subject, html, text }: MailContent): ContentFinding[] {
  const found = [subject, html ?? "", text ?? ""].flatMap((part) => part.match(PLACEHOLDER) ?? [])
  return [...new Set(found)].map((placeholder) => ({
    rule: "placeholder",
    detail: `${placeholder} is in the mail as it was written. Give it a value, or remove it.`,
  }))
}

const unseen = (html: string | null): ContentFinding[] =>
  unsupportedFeatures(html ?? "").map(({ feature, count, programs }) => {
    const times = count === 1 ? "once" : `${count} times`
    const detail = `The html uses ${feature} ${times}. Support is missing in: ${programs}.`
    return { rule: "unsupported", detail }
  })
