import { reachabilityText } from "../commands/preferences"
import { consentColumns } from "../commands/subscriber-consents"
import { subscribedColumns, topicColumns } from "../commands/topics"
import { paintPublish, publishColumns } from "../commands/topics-publish"
import { bar, counted, number, percent } from "../lib/cells"
import { emailColumns } from "../lib/email-text"
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
import { type Columns, fields, table } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, clockSecond } from "../lib/time"
import { loadPublishes, loadTopics, searchTopics } from "./audience-news"
import { back, copy, key, moving, scrolling, untold } from "./keys"
import { drawList } from "./list-lines"
import { chosen, rowsOf, withDetail } from "./lists"
import {
  ask,
  type Key,
  type Rows,
  type Screen,
  type State,
  type StateStep,
  type SubscriberFacts,
  said,
  step,
} from "./state"

const wordOf = ({ status, status_reason }: Publish): string => {
  if (isHeld(status_reason)) return "held"
  if (status === "failed") return "failed ✗"
  return status === "fanning_out" ? "sending" : status
}

/** From the busiest state to those that wait. */
const STATES: Publish["status"][] = ["fanning_out", "paused", "queued", "scheduled"]

/** The publishes to a topic that are not over, the busiest first. */
const openTo = ({ audience }: State, { key: topic_key }: Rows["topics"]): Publish[] =>
  [...(audience.open[topic_key] ?? [])].sort(
    (one, other) => STATES.indexOf(one.status) - STATES.indexOf(other.status),
  )

const { AGE: _, ...columns } = topicColumns

const topics = drawList("topics", (state) => ({
  ...columns,
  PUBLISHING: {
    cell: (topic: Rows["topics"]) => {
      const [first, ...others] = openTo(state, topic)
      if (!first) return ""
      return others.length > 0 ? `${wordOf(first)} +${others.length}` : wordOf(first)
    },
    paint: (text, topic, paint) => {
      const [first] = openTo(state, topic)
      return first ? paintPublish(text, first, paint) : text
    },
    least: 13,
  },
}))

const PROGRESS_CELLS = 10

const { ID: __, AGE: ___, STATUS: ____, AUDIENCE: _____, ...counts } = publishColumns

const publishes = drawList("publishes", ({ audience: { samples }, now }): Columns<Publish> => {
  const rate = ({ id }: Publish) => rateOf(samples[id] ?? [])
  return {
    TIME: ({ created_at }) => clockSecond(created_at),
    STATUS: { cell: wordOf, paint: paintPublish, least: 9 },
    PROGRESS: { cell: progressOf, least: 15, spare: 4 },
    ...counts,
    RATE: { cell: (row) => rateText(row, rate(row)), right: true, least: 6, spare: 3 },
    END: { cell: (row) => endOf(row, rate(row), now), flexible: true },
  }
})

/** A bar and its share in words; empty before it begins. */
function progressOf(row: Publish): string {
  const { planned, done } = totalsOf(row)
  return planned === 0 ? "" : `${bar(done / planned, PROGRESS_CELLS)} ${percent(done / planned)}`
}

/** Of one that makes messages now. */
const rateText = ({ status, status_reason }: Publish, rate: number | undefined) =>
  rate === undefined || status !== "fanning_out" || isHeld(status_reason) ? "" : `${number(rate)}/s`

/** When it ended, or is expected to; of one that waits, until when or why. */
function endOf(row: Publish, rate: number | undefined, now: number): string {
  const { completed_at, status, status_reason, scheduled_at } = row
  if (completed_at !== null) return [clockSecond(completed_at), status_reason].join(" ")
  if (isHeld(status_reason)) return "since a restore"
  if (status === "scheduled") return age(scheduled_at, now)
  if (status === "paused") return status_reason ?? ""
  const seconds = secondsLeft(totalsOf(row).left, rate)
  return seconds === undefined ? "" : `in ${spanText(seconds)}`
}

const chosenPublish = (state: State) =>
  state.lower.audience ? chosen(state, "publishes") : undefined

/** The chosen publish in words, else how many topics there are. */
function info(state: State): string {
  const { search, more, open } = state.audience
  const publish = chosenPublish(state)
  if (publish) {
    const { sent, planned } = totalsOf(publish)
    const skipped = skippedText(publish)
    const why = skipped ? `   skipped: ${skipped}` : ""
    return `${number(sent)} sent to an audience of ${number(planned)}${why}`
  }
  const all = rowsOf(state, "topics")
  const newest = rowsOf(state, "publishes")
  const publishing = all.filter(({ key: name }) => (open[name] ?? []).length > 0).length
  const running = newest.filter(({ status }) => status === "fanning_out").length
  return [
    ...(search === "" ? [] : [`search: ${search}`]),
    more ? `${all.length}+ topics (/ finds others)` : counted(all.length, "topic"),
    ...(publishing > 0 ? [`${publishing} publishing`] : []),
    `${newest.length} newest publishes`,
    ...(running > 0 ? [`${running} running`] : []),
  ].join("   ")
}

function none({ audience: { search } }: State, list: string): string {
  if (list === "publishes") return "no publish to this topic yet"
  return search === ""
    ? "there is no topic yet: belfry topics create product-news --name 'Product news'"
    : `no topic has "${search}" in it: Esc shows all topics`
}

/** Opens a subscriber by its id or its external id. */
export function openSubscriber(state: State, name: string): StateStep {
  if (name === "") return step(state)
  const tab = "Timeline" as const
  const detail = { id: name, of: null, tab, top: 0, found: null, problem: null }
  const next = withDetail({ ...state, screen: "audience" }, "audience", detail)
  return step(next, { do: "load_subscriber", name })
}

/** The subscriber, where messages reach it, its topics and consents, and its last messages. */
function subscriberText(found: SubscriberFacts, paint: Paint, width: number): string {
  const { subscriber, reachability, topics: followed, consents, messages } = found
  const section = (title: string, text: string | undefined) =>
    `${paint.bold(title)}\n${text ?? paint.dim("this key may not read it")}`
  const list = <Row>(rows: readonly Row[] | undefined, shown: Columns<Row>) =>
    rows && (rows.length === 0 ? paint.dim("none") : table(rows, shown, width, paint))
  return [
    fields(Object.entries(subscriber), paint),
    section("REACHABILITY", reachability && reachabilityText(reachability, paint)),
    section("TOPICS", list(followed, subscribedColumns)),
    section("CONSENTS", list(consents, consentColumns)),
    section("LAST MESSAGES", list(messages, emailColumns)),
  ].join("\n\n")
}

const cancel: Key = {
  ...key("c", "cancel", "cancel the rest of this publish (asks first)"),
  word: "cancel",
  press(state) {
    const publish = chosenPublish(state)
    if (!publish) return said(state, "choose a publish first: press Tab")
    const { id, topic_key, status } = publish
    if (isOver(publish)) return said(state, `the publish is over: ${status}`)
    const left = number(totalsOf(publish).left)
    const text = `Cancel the rest of this publish to ${topic_key}? ${left} recipients are left.`
    return ask(state, text, { do: "cancel_publish", topic_key, id })
  },
}

const subscriber: Key = {
  ...key("s", "subscriber", "open a subscriber: reachability, consents and last messages"),
  press: (state) => step({ ...state, prompt: { asks: "subscriber", text: "", problem: null } }),
}

const search: Key = {
  ...key("/", "search", "show only topics with this text in key, name or description"),
  press: (state) =>
    step({ ...state, prompt: { asks: "topics", text: state.audience.search, problem: null } }),
}

/** On topics it takes the search away. */
const shownAll: Key = {
  ...key("Esc", "", ""),
  press: (state) => (state.audience.search === "" ? step(state) : searchTopics(state, "")),
}

const copied = copy((state) => {
  const { audience: opened } = state.details
  return (
    (opened && (opened.found?.subscriber.id ?? opened.id)) ??
    (state.lower.audience ? chosenPublish(state)?.id : chosen(state, "topics")?.key)
  )
})

const tab = (short: string, long = "") =>
  key("Tab", short, `move between topics and publishes${long}`)

const onTopics: Key[] = [
  ...[
    moving,
    subscriber,
    tab("publishes", "; ⏎ goes down, Esc up"),
    search,
    copied,
    shownAll,
    untold(cancel),
  ],
]

const onPublishes: Key[] = [moving, cancel, tab("topics"), subscriber, search, copied]

const inSubscriber: Key[] = [back("topics and publishes"), scrolling, subscriber, search, copied]

export const audienceScreen: Screen = {
  load: (state) => (state.details.audience ? [] : [loadTopics(state)]),
  info,
  lists: [topics, publishes],
  none,
  below(state) {
    const topic = chosen(state, "topics")
    return topic ? [loadPublishes(topic.key)] : []
  },
  detail: {
    title: ({ id }) => `subscriber ${id}`,
    under: ({ subscriber: { status } }: SubscriberFacts) => status,
    text: subscriberText,
    load: ({ id }) => ({ do: "load_subscriber", name: id }),
  },
  keys({ details, lower }) {
    if (details.audience) return inSubscriber
    return lower.audience ? onPublishes : onTopics
  },
  actions: [cancel, copied],
}
