import { reachabilityText } from "../commands/preferences"
import { consentColumns } from "../commands/subscriber-consents"
import { subscribedColumns, topicColumns } from "../commands/topics"
import {
  isOver,
  type Publish,
  paintPublish,
  publishColumns,
  rateOf,
  secondsLeft,
  skippedText,
  spanText,
  totalsOf,
  withSample,
} from "../commands/topics-publish"
import { bar, counted, number, percent } from "../lib/cells"
import type { Client } from "../lib/client"
import { deviceColumns } from "../lib/device-text"
import { emailColumns, isHeld } from "../lib/email-text"
import { type Columns, fields, table } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { age, clockSecond } from "../lib/time"
import { action, back, copy, key, moving, scrolling, untold } from "./keys"
import { chosen, opened, rowsOf, withDetail, withLower, withUpper } from "./lists"
import { PAGE, readable } from "./reading"
import {
  ask,
  change,
  type Key,
  type ListForm,
  type Load,
  type Rows,
  type Screen,
  type State,
  type StateStep,
  type SubscriberFacts,
  said,
  step,
  UNREAD,
} from "./state"

type Topic = Rows["topics"]

const wordOf = ({ status, status_reason }: Publish): string => {
  if (isHeld(status_reason)) return "held"
  if (status === "failed") return "failed ✗"
  return status === "fanning_out" ? "sending" : status
}

/** From the busiest state to those that wait. */
const STATES: Publish["status"][] = ["fanning_out", "paused", "queued", "scheduled"]

/** The publishes to a topic that are not over, the busiest first. */
const openTo = ({ audience }: State, { key: topic_key }: Topic): Publish[] =>
  [...(audience.open[topic_key] ?? [])].sort(
    (one, other) => STATES.indexOf(one.status) - STATES.indexOf(other.status),
  )

const { AGE: _, ...columns } = topicColumns

const topics: ListForm<Topic> = {
  route: "GET /v1/topics",
  query: (search) => ({ ...PAGE, ...(search !== "" && { search }) }),
  columns: (state) => ({
    ...columns,
    PUBLISHING: {
      cell(topic) {
        const [first, ...others] = openTo(state, topic)
        if (!first) return ""
        return others.length > 0 ? `${wordOf(first)} +${others.length}` : wordOf(first)
      },
      paint(text, topic, paint) {
        const [first] = openTo(state, topic)
        return first ? paintPublish(text, first, paint) : text
      },
      least: 13,
    },
  }),
}

const PROGRESS_CELLS = 10

const { ID: __, AGE: ___, STATUS: ____, AUDIENCE: _____, ...counts } = publishColumns

/** Each load is asked again every few seconds: the newest publishes of one topic are enough. */
const NEWEST_PUBLISHES = { per_page: 25 }

const publishes: ListForm<Publish> = {
  route: "GET /v1/topics/{topic_key}/publishes",
  query: () => NEWEST_PUBLISHES,
  columns({ audience: { samples }, now }) {
    const rate = ({ id }: Publish) => rateOf(samples[id] ?? [])
    return {
      TIME: ({ created_at }) => clockSecond(created_at),
      STATUS: { cell: wordOf, paint: paintPublish, least: 9 },
      PROGRESS: { cell: progressOf, least: 15, spare: 4 },
      ...counts,
      RATE: { cell: (row) => rateText(row, rate(row)), right: true, least: 6, spare: 3 },
      END: { cell: (row) => endOf(row, rate(row), now), flexible: true },
    }
  },
}

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

export const openSubscriber = (state: State, name: string): StateStep =>
  name === "" ? step(state) : opened(state, "audience", name)

const NEWEST = { per_page: 20 }

const { ID: ______, USER: _______, ...shownDevices } = deviceColumns

async function subscriberFacts(
  client: Client,
  { id: name }: { id: string },
): Promise<SubscriberFacts> {
  const one = "GET /v1/subscribers/{subscriber_id}"
  const { data: subscriber } = await client.call(one, { params: { subscriber_id: name } })
  const { id: subscriber_id, external_id: user_id } = subscriber
  const own = { params: { subscriber_id } }
  const [reachability, topics, consents, devices, messages] = await Promise.all([
    readable(client.call(`${one}/reachability`, own)),
    readable(client.call(`${one}/topics`, { ...own, query: NEWEST })),
    readable(client.call(`${one}/consents`, { ...own, query: NEWEST })),
    readable(client.call("GET /v1/devices", { query: { ...NEWEST, user_id } })),
    readable(client.call("GET /v1/emails", { query: { ...NEWEST, subscriber_id } })),
  ])
  const more = { reachability: reachability?.data, topics: topics?.data, consents: consents?.data }
  return { subscriber, ...more, devices: devices?.data, messages: messages?.data }
}

function subscriberText(found: SubscriberFacts, paint: Paint, width: number): string {
  const { subscriber, reachability, topics: followed, consents, devices, messages } = found
  const section = (title: string, text: string | undefined) =>
    `${paint.bold(title)}\n${text ?? paint.dim("this key may not read it")}`
  const list = <Row>(rows: readonly Row[] | undefined, shown: Columns<Row>) =>
    rows && (rows.length === 0 ? paint.dim("none") : table(rows, shown, width, paint))
  return [
    fields(Object.entries(subscriber), paint),
    section("REACHABILITY", reachability && reachabilityText(reachability, paint)),
    section("TOPICS", list(followed, subscribedColumns)),
    section("CONSENTS", list(consents, consentColumns)),
    section("DEVICES", list(devices, shownDevices)),
    section("LAST MESSAGES", list(messages, emailColumns)),
  ].join("\n\n")
}

const loadTopics = ({ audience: { search } }: State): Load => ({
  ...{ do: "load_list", list: "topics" },
  ...(search !== "" && { of: search }),
})

const loadPublishes = (of: string): Load => ({ do: "load_list", list: "publishes", of })

/** Shows the topics with this text, or all of them for "". */
export function searchTopics(state: State, search: string): StateStep {
  const audience = { ...state.audience, more: false, search, next_look: 0, samples: {} }
  const lists = { ...state.lists, topics: UNREAD, publishes: UNREAD }
  const emptied = { lower: { ...state.lower, audience: false }, problems: {} }
  const begun = { ...state, screen: "audience" as const, audience, lists, ...emptied }
  return step(withDetail(begun, "audience", undefined), loadTopics(begun))
}

/**
 * A new topic does not change the selection. The publishes of the chosen one are asked for, and those of some
 * others, so that open ones are marked. What another search found came too late.
 */
export function withTopics(
  state: State,
  search: string,
  rows: readonly Topic[],
  more: boolean,
): StateStep {
  if (search !== state.audience.search) return step(state)
  const { keys, next_look } = nextLooks(state, rows)
  const marked = { ...state, audience: { ...state.audience, more, next_look } }
  const next = withTopicRows(marked, rows)
  const topic = chosen(next, "topics")
  const asked = new Set([...(topic ? [topic.key] : []), ...keys])
  return step(next, ...[...asked].map(loadPublishes))
}

/** About as many topics as a large terminal shows are looked at when the list is new. */
const FIRST_LOOKS = 20

/** Later a few at a time, because a plan limits the requests of a minute. */
const LOOKS = 2

function nextLooks({ audience: { next_look }, lists }: State, read: readonly Topic[]) {
  if (read.length === 0) return { keys: [], next_look }
  const looks = Math.min(read.length, lists.topics.rows === null ? FIRST_LOOKS : LOOKS)
  const all = Array.from({ length: looks }, (_, at) => read[(next_look + at) % read.length])
  const keys = all.flatMap((topic) => topic?.key ?? [])
  return { keys, next_look: (next_look + looks) % read.length }
}

/** Those with an open publish first, where they are seen. */
function withTopicRows(state: State, read: readonly Topic[]): State {
  const isOpen = ({ key }: Topic) => (state.audience.open[key] ?? []).length > 0
  const topics = [...read.filter(isOpen), ...read.filter((topic) => !isOpen(topic))]
  return withUpper(state, "topics", topics)
}

/** Publishes to another topic than the chosen one only mark it. */
export function withPublishes(before: State, topic_key: string, rows: readonly Publish[]): State {
  const running = rows.filter((publish) => !isOver(publish))
  const open = { ...before.audience.open, [topic_key]: running }
  const marked = { ...before, audience: { ...before.audience, open } }
  const { topics } = marked.lists
  const state = topics.rows ? withTopicRows(marked, topics.rows) : marked
  if (chosen(state, "topics")?.key !== topic_key) return state
  const samples = samplesOf(state, running)
  const next = { ...state, audience: { ...state.audience, samples } }
  return withLower(next, "publishes", topic_key, rows)
}

function samplesOf({ audience: { samples }, now }: State, running: readonly Publish[]) {
  return Object.fromEntries(
    running.map((publish) => {
      const sample = { at: now, done: totalsOf(publish).done }
      return [publish.id, withSample(samples[publish.id] ?? [], sample)]
    }),
  )
}

const cancel = action("c", "cancel", "cancel the rest of this publish (asks first)", (state) => {
  const publish = chosenPublish(state)
  if (!publish) return said(state, "choose a publish first: press Tab")
  const { id, topic_key, status } = publish
  if (isOver(publish)) return said(state, `the publish is over: ${status}`)
  const left = number(totalsOf(publish).left)
  const text = `Cancel the rest of this publish to ${topic_key}? ${left} recipients are left.`
  const name = "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel"
  const done = () => "the rest of the publish is cancelled"
  return ask(state, text, change(name, { params: { topic_key, publish_id: id } }, done))
})

const subscriber: Key = {
  ...key("s", "subscriber", "open a subscriber: reachability, consents, devices and last messages"),
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
  ...[moving, subscriber, tab("publishes", "; ⏎ moves down, Esc moves up")],
  ...[search, copied, shownAll, untold(cancel)],
]

const onPublishes: Key[] = [moving, cancel, tab("topics"), subscriber, search, copied]

const inSubscriber: Key[] = [back("topics and publishes"), scrolling, subscriber, search, copied]

export const audienceScreen: Screen = {
  loads: (state) => (state.details.audience ? [] : [loadTopics(state)]),
  info,
  lists: { topics, publishes },
  none,
  detail: {
    title: ({ id }) => `subscriber ${id}`,
    under: ({ subscriber: { status } }: SubscriberFacts) => status,
    text: subscriberText,
    read: subscriberFacts,
  },
  keys({ details, lower }) {
    if (details.audience) return inSubscriber
    return lower.audience ? onPublishes : onTopics
  },
  actions: [cancel, copied],
}
