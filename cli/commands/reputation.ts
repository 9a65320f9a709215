import type { Components } from "../../src/client/components"
import { bar, counted, number, percent } from "../lib/cells"
import { type Resource, row } from "../lib/resource"
import { type Columns, count, fields, table, wide } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age } from "../lib/time"

type Reputation = Components["Reputation"]

/** How the account may send, and why; and what complaints hold. */
export const reputation: Resource = {
  noun: "reputation",
  about: "show how the account may send, and release held mail",
  example: ["reputation show", "reputation release --tag newsletter"],
  rows: [
    row("show", "GET /v1/accounts/me/reputation", {
      about: "show the sending status, the rates beside their thresholds, and a forecast",
      example: ["", "--json=status,bounce_rate,complaint_rate"],
      shown: reputationText,
      next: ({ held: [first] }) => (first ? `reputation release ${whichOf(first)}` : undefined),
    }),
    row("release", "POST /v1/accounts/me/reputation/release", {
      about: "queue the mail of a tag or template again that complaints hold",
      example: "--tag newsletter",
      flags: { tag: "tag that is held", template_id: "id of the template that is held" },
      refuse: ({ tag, template }) =>
        (tag === undefined) === (template === undefined) ? "give --tag or --template" : undefined,
      done: ({ released }) =>
        `released; ${released} ${released === 1 ? "message is" : "messages are"} queued again`,
      brief: ({ released }) => `${released}`,
    }),
  ],
}

type Held = Reputation["held"][number]

const whichOf = ({ tag, template_id }: Held) =>
  tag === null ? `--template ${template_id}` : `--tag ${tag}`

const MOST_SHOWN = 10
const BAR_CELLS = 20

/** Rates beside their thresholds, what comes next, what is held, and the names that stand out. */
export function reputationText(reputation: Reputation, paint: Paint, width: number): string {
  const parts = [summary(reputation, paint)]
  const { held, by_domain, by_tag } = reputation
  if (held.length > 0) parts.push(table(held, heldColumns, width, paint))
  const domains = by_domain.slice(0, MOST_SHOWN)
  if (domains.length > 0) {
    parts.push(table(domains, { DOMAIN: wide(({ domain }) => domain), ...numbers }, width, paint))
  }
  const tags = by_tag.slice(0, MOST_SHOWN)
  if (tags.length > 0) {
    parts.push(table(tags, { TAG: wide(({ tag }) => tag), ...numbers }, width, paint))
  }
  return parts.join("\n\n")
}

function summary(reputation: Reputation, paint: Paint): string {
  const { status, reason, would_be, rejected_share, window_days, sent, hour_sent, warning } =
    reputation
  const { thresholds } = reputation
  const { throttled, frozen } = thresholds
  // The bar is full at the threshold of freezing. The numbers say the same.
  const rate = (name: "bounce_rate" | "complaint_rate") =>
    `${bar(reputation[name] / frozen[name], BAR_CELLS)} ${percent(reputation[name])} (throttled at ${percent(throttled[name])}, frozen at ${percent(frozen[name])})`
  const brush = (name: "bounce_rate" | "complaint_rate") => {
    const is_over = sent >= throttled.min_sent && reputation[name] >= throttled[name]
    return is_over ? paint.red : String
  }
  const lines = [
    ["status", status, { active: paint.green, throttled: paint.yellow, frozen: paint.red }[status]],
    ["reason", reason],
    ["would be", would_be && `${would_be}, if reputation.enforced were on`],
    ["rejected", rejected_share > 0 ? `${percent(rejected_share)} of new sends` : null],
    ["warning", warning && `close to ${warning.next}: ${warning.reason}`, paint.yellow],
    ["sent", `${number(sent)} in ${window_days} days, ${number(hour_sent)} this hour`],
    ["bounces", rate("bounce_rate"), brush("bounce_rate")],
    ["complaints", rate("complaint_rate"), brush("complaint_rate")],
    [
      "minimum",
      `Belfry acts on rates from ${number(throttled.min_sent)} sent (throttled) and ${number(frozen.min_sent)} sent (frozen)`,
    ],
    ["forecast", forecastText(reputation)],
  ] as const
  return fields(lines, paint)
}

/** What comes next, in one line. */
function forecastText({ status, forecast }: Reputation): string {
  const { status: next, expected_at, bounces_left, complaints_left } = forecast
  if (status === "frozen") return "only the operator can lift the freeze"
  if (next !== null && expected_at !== null) return `${next} ${age(expected_at)}`
  const step = status === "active" ? "throttles" : "freezes"
  return `no change expected; Belfry ${step} the account after ${counted(bounces_left ?? 0, "more bounce")} or ${counted(complaints_left ?? 0, "more complaint")}`
}

const heldColumns: Columns<Held> = {
  HELD: wide(({ tag, template_id }) => (tag === null ? `template ${template_id}` : `tag ${tag}`)),
  COMPLAINTS: ({ complaint_rate }) => percent(complaint_rate),
  SINCE: ({ held_at }) => age(held_at),
  WAITING: count(({ waiting }) => waiting),
}

type Counted = Pick<
  Reputation["by_tag"][number],
  "sent" | "bounced" | "complained" | "bounce_rate" | "complaint_rate"
>

const numbers: Columns<Counted> = {
  SENT: count(({ sent }) => sent),
  BOUNCED: ({ bounced, bounce_rate }) => `${bounced} (${percent(bounce_rate)})`,
  COMPLAINED: ({ complained, complaint_rate }) => `${complained} (${percent(complaint_rate)})`,
}
