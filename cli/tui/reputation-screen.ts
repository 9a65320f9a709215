import type { Components } from "../../src/client/components"
import { forecastText, percent } from "../commands/reputation"
import { cleanLine, type Paint } from "../lib/terminal"
import { age } from "../lib/time"
import { fitted, number } from "./cells"
import { layoutOf } from "./layout"
import type { State } from "./state"
import type { Brush } from "./table-lines"
import { told } from "./webhooks-screen"

type Reputation = Components["Reputation"]

const BAR = 20

const LABEL = 12

/** Rates beside their thresholds, what comes next, and the names that stand out. */
export function reputationLines(state: State, width: number, paint: Paint): string[] {
  const { found, problem, top } = state.reputation
  const { height } = layoutOf(state)
  if (found === null) return told(problem ?? "loading…", width, height)
  const lines = contentOf(found).slice(top, top + height)
  const shown = lines.map(({ text, brush }) => {
    const line = fitted(cleanLine(text), width)
    return brush ? paint[brush](line) : line
  })
  const blank = Array.from({ length: height - shown.length }, () => " ".repeat(width))
  return [...shown, ...blank]
}

interface ScreenLine {
  text: string
  brush?: Brush | undefined
}

/** How many lines there are to scroll. */
export const reputationLength = (found: Reputation | null): number =>
  found === null ? 0 : contentOf(found).length

const plain = (text = ""): ScreenLine => ({ text })

function contentOf(found: Reputation): ScreenLine[] {
  const { status, reason, would_be, rejected_share, sent, hour_sent, window_days, warning } = found
  const rejected = rejected_share > 0 ? `, rejects ${percent(rejected_share)} of new sends` : ""
  const unenforced = would_be && `reputation.enforced is off; it would be ${would_be}`
  const why = reason ?? unenforced ?? ""
  return [
    {
      text: labelled("status", `${status}${rejected}${why && `  (${why})`}`),
      brush: BRUSHES[status],
    },
    plain(
      labelled("sent", `${number(sent)} in ${window_days} days, ${number(hour_sent)} this hour`),
    ),
    rateLine(found, "bounce_rate", "bounces"),
    rateLine(found, "complaint_rate", "complaints"),
    plain(labelled("forecast", forecastText(found))),
    ...(warning
      ? [
          {
            text: labelled("warning", `close to ${warning.next}: ${warning.reason}`),
            brush: "yellow" as const,
          },
        ]
      : []),
    ...heldLines(found),
    ...nameLines(
      "DOMAIN",
      found.by_domain.map((one) => ({ ...one, name: one.domain })),
    ),
    ...nameLines(
      "TAG",
      found.by_tag.map((one) => ({ ...one, name: one.tag })),
    ),
  ]
}

const BRUSHES = { active: "green", throttled: "yellow", frozen: "red" } as const

const labelled = (label: string, text: string) => `${fitted(label, LABEL)}${text}`

/** The bar is full at the threshold of freezing. The numbers say the same. */
function rateLine(
  found: Reputation,
  name: "bounce_rate" | "complaint_rate",
  label: string,
): ScreenLine {
  const { throttled, frozen } = found.thresholds
  const rate = found[name]
  const filled = Math.min(BAR, Math.round((rate / frozen[name]) * BAR))
  const bar = "▓".repeat(filled) + "░".repeat(BAR - filled)
  const limits = `throttled at ${percent(throttled[name])}, frozen at ${percent(frozen[name])}`
  const is_over = found.sent >= throttled.min_sent && rate >= throttled[name]
  const text = labelled(label, `${bar} ${fitted(percent(rate), 7)} ${limits}`)
  return { text, brush: is_over ? "red" : undefined }
}

function heldLines({ held }: Reputation): ScreenLine[] {
  return held.map(({ tag, template_id, complaint_rate, held_at, waiting }) => {
    const what = tag === null ? `template ${template_id}` : `tag ${tag}`
    const since = `for ${age(held_at)}, ${percent(complaint_rate)} complaints, ${number(waiting)} wait`
    return { text: labelled("held", `${what}: ${since}`), brush: "red" }
  })
}

interface NamedRates {
  name: string
  sent: number
  bounce_rate: number
  complaint_rate: number
}

function nameLines(title: string, rows: NamedRates[]): ScreenLine[] {
  if (rows.length === 0) return []
  const line = (name: string, sent: string, bounces: string, complaints: string) =>
    `${fitted(name, 32)} ${sent.padStart(9)} ${bounces.padStart(9)} ${complaints.padStart(11)}`
  return [
    plain(),
    { text: line(title, "SENT", "BOUNCES", "COMPLAINTS"), brush: "dim" },
    ...rows.map(({ name, sent, bounce_rate, complaint_rate }) =>
      plain(line(cleanLine(name), number(sent), percent(bounce_rate), percent(complaint_rate))),
    ),
  ]
}

/** All of it in one line; empty before it was read. */
export function reputationInfo({ reputation: { found, problem } }: State): string {
  if (problem !== null) return problem
  if (found === null) return ""
  const held = found.held.length
  const some = held > 0 ? `   ${held} held: belfry reputation release` : ""
  return `${found.status}: bounces ${percent(found.bounce_rate)}, complaints ${percent(found.complaint_rate)}${some}`
}
