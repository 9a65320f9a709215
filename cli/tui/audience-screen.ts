import type { Components } from "../../src/client/components"
import { isHeld } from "../lib/message-status"
import {
  isOver,
  type Publish,
  rateOf,
  secondsLeft,
  skippedText,
  spanText,
  totalsOf,
} from "../lib/publish-progress"
import type { Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"
import { loadPublishes, searchTopics } from "./audience-news"
import { number, percent, until } from "./cells"
import { chosen, layoutOf, moved, stepsOf, tableRows, turnedDetail, webhookHeights } from "./layout"
import {
  type AudienceState,
  type State,
  type StateStep,
  type SubscriberView,
  step,
  whether,
  withAudience,
} from "./state"
import { subscriberLines } from "./subscriber-lines"
import { type Brush, type MonitorColumn, tableLines } from "./table-lines"
import { told } from "./webhooks-screen"

/** A topic, and its publishes that are not over. */
type TopicRow = Components["Topic"] & { open: readonly Publish[] }

/** A publish, and how many recipients it does in a second. */
type RunningPublish = Publish & { rate: number | undefined }

const topicColumns: MonitorColumn<TopicRow>[] = [
  { title: "TOPIC", width: 0, share: 4, cell: ({ key }) => key },
  { title: "NAME", width: 0, share: 4, cell: ({ name }) => name },
  {
    title: "MEMBERS",
    width: 11,
    right: true,
    cell: ({ subscriber_count }) => number(subscriber_count),
  },
  {
    title: "PUBLISHING",
    width: 13,
    cell: ({ open }) => openText(open),
    brush: ({ open: [first] }) => first && brushOf(first),
  },
  { title: "DEFAULT", width: 7, from: 70, cell: ({ default: fallback }) => fallback },
  { title: "VISIBILITY", width: 10, from: 90, cell: ({ visibility }) => visibility },
]

const publishColumns: MonitorColumn<RunningPublish>[] = [
  { title: "TIME", width: 8, cell: ({ created_at }) => clockTime(created_at).slice(0, 8) },
  {
    title: "STATUS",
    width: 11,
    cell: (row) => wordOf(row),
    brush: (row) => brushOf(row),
  },
  { title: "PROGRESS", width: 17, from: 110, cell: progressOf },
  { title: "DONE", width: 9, right: true, cell: doneOf },
  { title: "LEFT", width: 9, right: true, cell: (row) => leftText(row) },
  { title: "RATE", width: 7, from: 70, right: true, cell: (row) => rateText(row) },
  { title: "END", width: 0, share: 4, cell: endOf },
  { title: "SKIPPED", width: 9, from: 84, right: true, cell: (row) => countOf(row, "skipped") },
  {
    title: "FAILED",
    width: 7,
    from: 76,
    right: true,
    cell: (row) => countOf(row, "failed"),
    brush: (row) => (totalsOf(row).failed > 0 ? "red" : undefined),
  },
]

const STATUS_WORDS: Partial<Record<Publish["status"], string>> = {
  fanning_out: "sending",
  failed: "failed ✗",
}

const BRUSHES: Partial<Record<Publish["status"], Brush>> = {
  completed: "green",
  fanning_out: "cyan",
  paused: "yellow",
  failed: "red",
}

const wordOf = ({ status, status_reason }: Publish): string =>
  isHeld(status_reason) ? "held" : (STATUS_WORDS[status] ?? status)

const brushOf = ({ status, status_reason }: Publish): Brush | undefined =>
  isHeld(status_reason) ? "yellow" : BRUSHES[status]

/** The state of the first one, and how many others are open. */
const openText = ([first, ...others]: readonly Publish[]): string =>
  first ? [wordOf(first), others.length > 0 ? `+${others.length}` : ""].join(" ").trim() : ""

function doneOf(row: Publish): string {
  const { planned, done } = totalsOf(row)
  return planned === 0 && !isOver(row) ? "" : number(done)
}

const PROGRESS_CELLS = 10

/** A bar and its share in words; empty before it begins. */
function progressOf(row: Publish): string {
  const { planned, done } = totalsOf(row)
  if (planned === 0) return ""
  const filled = Math.floor((Math.min(done, planned) * PROGRESS_CELLS) / planned)
  const bar = "▓".repeat(filled) + "░".repeat(PROGRESS_CELLS - filled)
  return `${bar} ${percent(done, planned)}`
}

/** Of one that makes messages now. */
const rateText = ({ rate, status, status_reason }: RunningPublish) =>
  rate === undefined || status !== "fanning_out" || isHeld(status_reason) ? "" : `${number(rate)}/s`

const leftText = (row: Publish) => {
  const { left } = totalsOf(row)
  return isOver(row) || left === 0 ? "" : number(left)
}

const countOf = (row: Publish, name: "skipped" | "failed") => number(totalsOf(row)[name])

/** When it ended, or is expected to; of one that waits, until when or why. */
function endOf(row: RunningPublish, now: number): string {
  const { completed_at, status, status_reason, scheduled_at, rate } = row
  if (completed_at !== null) return [clockTime(completed_at).slice(0, 8), status_reason].join(" ")
  if (isHeld(status_reason)) return "since a restore"
  if (status === "scheduled") return until(scheduled_at, now)
  if (status === "paused") return status_reason ?? ""
  const seconds = secondsLeft(totalsOf(row).left, rate)
  return seconds === undefined ? "" : `in ${spanText(seconds)}`
}

/** Topics above, the publishes to the chosen one below; each line exactly `width` cells. */
export function audienceLines(state: State, width: number, paint: Paint): string[] {
  const { audience, now } = state
  const { topics, problem, position, focus, publishes, publish_position, samples, detail } =
    audience
  const { height } = layoutOf(state)
  if (topics === null || topics.length === 0) {
    return told(problem ?? (topics ? noneOf(audience) : "loading…"), width, height)
  }
  const [upper, lower] = webhookHeights(height, topics.length)
  const both = { width, now, paint }
  const above = tableLines({
    ...both,
    ...{ columns: topicColumns, rows: rowsOf(audience), height: upper },
    ...{
      top: position.top,
      selected: position.selected,
      has_focus: focus === "topics" && detail === null,
    },
  })
  const rows = publishes.map((row) => ({ ...row, rate: rateOf(samples[row.id] ?? []) }))
  const below = tableLines({
    ...both,
    ...{ columns: publishColumns, rows, height: lower, top: publish_position.top },
    selected: publish_position.selected,
    has_focus: focus === "publishes" && detail === null,
  })
  const line = paint.dim("─".repeat(width))
  if (rows.length > 0) return [...above, line, ...below]
  const empty = isRead(audience) ? "no publish to this topic yet" : "loading…"
  return [...above, line, below[0] ?? "", ...told(empty, width, lower).slice(1)]
}

const isRead = ({ topics, position, publishes_of }: AudienceState): boolean =>
  publishes_of === chosen(topics ?? [], position)?.key

const rowsOf = ({ topics, open }: AudienceState): TopicRow[] =>
  (topics ?? []).map((topic) => ({ ...topic, open: byState(open[topic.key] ?? []) }))

/** From the busiest state to those that wait. */
const STATES: Publish["status"][] = ["fanning_out", "paused", "queued", "scheduled"]

const byState = (open: readonly Publish[]): Publish[] =>
  [...open].sort((one, other) => STATES.indexOf(one.status) - STATES.indexOf(other.status))

const noneOf = ({ search }: AudienceState): string =>
  search === "" ? NONE : `no topic has "${search}" in it: Esc shows all topics`

const NONE = "there is no topic yet: belfry topics create product-news --name 'Product news'"

/** The chosen publish in words, else how many topics there are. */
export function audienceInfo({ audience }: State): string {
  const { search, problem, publishes, publish_position, focus } = audience
  if (problem !== null) return problem
  const publish = focus === "publishes" ? chosen(publishes, publish_position) : undefined
  if (publish) {
    const { sent, planned } = totalsOf(publish)
    const skipped = skippedText(publish)
    const why = skipped ? `   skipped: ${skipped}` : ""
    return `${number(sent)} sent to an audience of ${number(planned)}${why}`
  }
  const running = publishes.filter(({ status }) => status === "fanning_out").length
  return [
    ...(search === "" ? [] : [`search: ${search}`]),
    topicCount(audience),
    `${publishes.length} newest publishes`,
    ...(running > 0 ? [`${running} running`] : []),
  ].join("   ")
}

function topicCount({ topics, more, open }: AudienceState): string {
  const count = topics?.length ?? 0
  const publishing = (topics ?? []).filter(({ key }) => (open[key] ?? []).length > 0).length
  const all = more
    ? `${count}+ topics (/ finds others)`
    : `${number(count)} topic${count === 1 ? "" : "s"}`
  return publishing > 0 ? `${all}   ${publishing} publishing` : all
}

/** Keys of the Audience screen: on topics, or on publishes. */
export function pressOnAudience(state: State, key: string): StateStep {
  const { audience } = state
  if (audience.detail) return pressInSubscriber(state, audience.detail, key)
  const [upper, lower] = webhookHeights(layoutOf(state).height, audience.topics?.length ?? 0)
  const on_topics = audience.focus === "topics"
  const rows = tableRows(on_topics ? upper : lower)
  const by = stepsOf(key, rows)
  if (by !== undefined) return on_topics ? toTopic(state, by, rows) : toPublish(state, by, rows)
  const focused = (focus: AudienceState["focus"]) => step(withAudience(state, { focus }))
  switch (key) {
    case "<tab>":
      return focused(on_topics ? "publishes" : "topics")
    case "<enter>":
      return focused("publishes")
    case "<escape>":
    case "<backspace>":
      return on_topics && audience.search !== "" ? searchTopics(state, "") : focused("topics")
    case "y":
      return copyChosen(state)
    case "c":
      return askCancel(state)
    case "s":
      return askSubscriber(state)
    default:
      return step(state)
  }
}

const askSubscriber = (state: State): StateStep =>
  step({ ...state, prompt: { asks: "subscriber", text: "", problem: null } })

/** Asks which topics are to be shown. */
export const askTopics = (state: State): StateStep =>
  step({ ...state, prompt: { asks: "topics", text: state.audience.search, problem: null } })

/** Opens a subscriber by its id or its external id. */
export function openSubscriber(state: State, name: string): StateStep {
  if (name === "") return step(state)
  const detail = { name, top: 0, found: null, problem: null }
  const next = withAudience({ ...state, screen: "audience" }, { detail })
  return step(next, { do: "load_subscriber", name })
}

function pressInSubscriber(state: State, detail: SubscriberView, key: string): StateStep {
  const turned_detail = turnedDetail(state, detail, key, subscriberLines)
  if (turned_detail !== undefined) return step(withAudience(state, { detail: turned_detail }))
  switch (key) {
    case "s":
      return askSubscriber(state)
    case "y":
      return step(state, { do: "copy", text: detail.found?.subscriber.id ?? detail.name })
    default:
      return step(state)
  }
}

function toTopic(state: State, by: number, rows: number): StateStep {
  const { audience } = state
  const topics = audience.topics ?? []
  const position = moved(audience.position, topics, by, rows)
  const topic = chosen(topics, position)
  if (!topic || position.selected === audience.position.selected) {
    return step(withAudience(state, { position }))
  }
  // The publishes of the topic before are not those of this one.
  const emptied = { publishes: [], publishes_of: null, samples: {} }
  const next = withAudience(state, { position, ...emptied })
  return step(next, loadPublishes(topic.key))
}

function toPublish(state: State, by: number, rows: number): StateStep {
  const { publishes, publish_position: before } = state.audience
  return step(withAudience(state, { publish_position: moved(before, publishes, by, rows) }))
}

function copyChosen(state: State): StateStep {
  const { topics, position, focus, publishes, publish_position } = state.audience
  const text =
    focus === "topics"
      ? chosen(topics ?? [], position)?.key
      : chosen(publishes, publish_position)?.id
  return text === undefined ? step(state) : step(state, { do: "copy", text })
}

function askCancel(state: State): StateStep {
  const { focus, publishes, publish_position } = state.audience
  const said = (text: string) => step({ ...state, notice: { text, at: state.now } })
  const publish = focus === "publishes" ? chosen(publishes, publish_position) : undefined
  if (!publish) return said("choose a publish first: press Tab")
  const { id, topic_key } = publish
  if (isOver(publish)) return said(`the publish is over: ${publish.status}`)
  const text = `Cancel the rest of this publish to ${topic_key}? ${number(totalsOf(publish).left)} recipients are left.`
  return step({ ...state, question: whether(text, { do: "cancel_publish", topic_key, id }) })
}
