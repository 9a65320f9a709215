import { Failure } from "../lib/errors"
import { duration } from "../lib/time"
import type { MessageRow } from "./message-rows"

const STATUSES = ["queued", "sending", "sent", "delivered", "failed"] as const
const OF_EMAIL = ["bounced", "complained"] as const
const OF_TEXT = ["undelivered", "cancelled", "received"] as const
const OF_PUSH = ["cancelled", "expired"] as const
const OF_INBOX = ["unseen", "seen", "read", "archived", "snoozed"] as const
const ALL_STATUSES = [
  ...new Set([...STATUSES, ...OF_EMAIL, ...OF_TEXT, ...OF_PUSH, ...OF_INBOX] as const),
]

export interface MessageFilter {
  text: string
  matches(row: MessageRow, now: number): boolean
  /** What the server can be asked for, so that what is not here yet is found too. */
  query: {
    status?: (typeof ALL_STATUSES)[number]
    tag?: string
    template_id?: string
    to?: string
    subject?: string
    since?: string
  }
}

export const NO_FILTER: MessageFilter = { text: "", matches: () => true, query: {} }

/** What the list of emails is asked for; undefined where none passes the filter. */
export function emailQuery({ status, ...query }: MessageFilter["query"]) {
  const known = [...STATUSES, ...OF_EMAIL].find((one) => one === status)
  if ((status && !known) || query.to?.startsWith("+")) return undefined
  return { ...query, status: known }
}

/** What the list of texts is asked for; undefined where none passes the filter. */
export function textQuery({ status, template_id, subject, ...query }: MessageFilter["query"]) {
  const known = [...STATUSES, ...OF_TEXT].find((one) => one === status)
  if ((status && !known) || template_id || subject || query.to?.includes("@")) return undefined
  return { ...query, status: known }
}

/** What the list of push messages is asked for; undefined where none passes the filter. */
export function pushQuery({ status, template_id, subject, to, tag }: MessageFilter["query"]) {
  const known = [...STATUSES, ...OF_PUSH].find((one) => one === status)
  if ((status && !known) || template_id || subject || to) return undefined
  return { tag, status: known }
}

/** What the list of inboxes is asked for; undefined where none passes the filter. */
export function inboxQuery({ status, tag, template_id, subject, to }: MessageFilter["query"]) {
  const state = OF_INBOX.find((one) => one === status)
  if ((status && !state) || template_id || subject || to) return undefined
  return { tag, state }
}

type Test = (row: MessageRow, now: number) => boolean

/**
 * `status:bounced,failed to:nope.test since:1h tag:billing receipt`: every word must hold, one
 * with a `-` before it must not. Words without a name are looked for in address, subject and id.
 * Part of the text is enough; with a `*` the whole text must fit.
 * Gives the problem as text when a word cannot be understood.
 */
export function parseFilter(text: string): MessageFilter | { problem: string } {
  const words = text.trim().split(/\s+/).filter(Boolean)
  const tests: Test[] = []
  const query: MessageFilter["query"] = {}
  for (const word of words) {
    const parsed = parseWord(word)
    if ("problem" in parsed) return parsed
    tests.push(parsed.test)
    Object.assign(query, parsed.query)
  }
  return {
    text: words.join(" "),
    matches: (row, now) => tests.every((test) => test(row, now)),
    query,
  }
}

interface Word {
  test: Test
  query: MessageFilter["query"]
}

function parseWord(word: string): Word | { problem: string } {
  if (word.startsWith("-") && word.length > 1) {
    const parsed = parseWord(word.slice(1))
    if ("problem" in parsed) return parsed
    return { test: (row, now) => !parsed.test(row, now), query: {} }
  }
  const [, named = "", value = ""] = /^([a-z]+):(.*)$/i.exec(word) ?? []
  if (named === "") return { test: anywhere(word), query: {} }
  if (value === "") return { problem: `${named}: give a value` }
  const name = named.toLowerCase()
  if (name === "status") return statusWord(value)
  if (name === "since") return sinceWord(value)
  const field = FIELDS.get(name)
  if (field) return fieldWord(field, value)
  const known = ["status", ...FIELDS.keys(), "since"].join(", ")
  return { problem: `there is no filter ${named}; the filters are ${known}` }
}

/** What a word with a name looks at, and the field of the server that looks at the same. */
interface Field {
  of: (row: MessageRow) => readonly string[]
  asks?: "to" | "subject" | "tag" | "template_id"
}

const FIELDS = new Map<string, Field>([
  ["to", { of: ({ to }) => [to], asks: "to" }],
  ["subject", { of: ({ subject }) => [subject], asks: "subject" }],
  ["tag", { of: ({ tags }) => tags, asks: "tag" }],
  ["template", { of: ({ template }) => template, asks: "template_id" }],
  ["id", { of: ({ id }) => [id] }],
  ["ch", { of: ({ channel }) => [channel, shortChannel(channel)] }],
])

/** A channel by the word that the list has for it. */
export const shortChannel = (channel: string): string => SHORT_CHANNELS[channel] ?? channel

const SHORT_CHANNELS: Partial<Record<string, string>> = { email: "mail", in_app: "inbox" }

/** An address or a number that looks whole: one that is half typed would find nothing on the server. */
const ADDRESS = /^([^@*]+@[^@*]+\.[a-z]{2,}|\+[1-9]\d{6,14})$/i

function fieldWord({ of, asks }: Field, value: string): Word {
  const wanted = pattern(value)
  const is_askable = asks === "to" ? ADDRESS.test(value) : !value.includes("*")
  return {
    test: (row) => of(row).some((text) => wanted.test(text)),
    query: asks && is_askable ? { [asks]: value } : {},
  }
}

function statusWord(value: string): Word | { problem: string } {
  const wanted = value.toLowerCase().split(",").filter(Boolean)
  const known = ALL_STATUSES.filter((status) => wanted.includes(status))
  const wrong = wanted.find((status) => !known.some((one) => one === status))
  if (wrong !== undefined) return { problem: `there is no status ${wrong}` }
  const [only, ...others] = known
  return {
    test: ({ status }) => wanted.includes(status),
    query: only && others.length === 0 ? { status: only } : {},
  }
}

function sinceWord(value: string): Word | { problem: string } {
  try {
    const span = duration(value, "since")
    return { test: ({ created_at }, now) => created_at >= now - span, query: { since: value } }
  } catch (error) {
    if (error instanceof Failure) return { problem: error.message }
    throw error
  }
}

/** Part of the text, or the whole of it where `*` stands for anything; case does not count. */
function pattern(value: string): RegExp {
  const parts = (value.includes("*") ? value : `*${value}*`)
    .split("*")
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${parts.join(".*")}$`, "iu")
}

/** A shorter part of an id is in too many of them. */
const LEAST_OF_ID = 4

function anywhere(word: string): Test {
  const wanted = word.toLowerCase()
  const isOfId = (id: string) =>
    wanted.length >= LEAST_OF_ID && (id.startsWith(wanted) || id.endsWith(wanted))
  return ({ id, to, subject }) =>
    to.toLowerCase().includes(wanted) || subject.toLowerCase().includes(wanted) || isOfId(id)
}
