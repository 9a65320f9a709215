/** Something in the content of a mail that its author may want to change. */
export interface ContentFinding {
  /** A stable word for programs. */
  rule: string
  /** For people: what it is, where, and what to do. */
  detail: string
}

/** A list of findings says no more than this. */
const MOST_FINDINGS = 20

/** The first findings, and how many more there are. */
export function bounded(findings: ContentFinding[]): ContentFinding[] {
  if (findings.length <= MOST_FINDINGS) return findings
  const rest = findings.length - MOST_FINDINGS
  return [...findings.slice(0, MOST_FINDINGS), { rule: "more", detail: `There are ${rest} more.` }]
}

export interface PlacedFinding extends ContentFinding {
  /** Characters before it. */
  at: number
}

/** The first findings in the order of the source, each with its line, and how many more there are. */
export const withLines = (source: string, found: PlacedFinding[]): ContentFinding[] =>
  bounded(
    found
      .toSorted((a, b) => a.at - b.at)
      .map(({ rule, at, detail }, place) => ({
        rule,
        detail: place < MOST_FINDINGS ? `Line ${lineAt(source, at)}: ${detail}` : detail,
      })),
  )

/** The line of a place in the source, from 1. */
const lineAt = (source: string, place: number): number => source.slice(0, place).split("\n").length
