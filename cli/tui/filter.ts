import { Failure } from "../lib/errors"
import { duration } from "../lib/time"
import type { MessageRow } from "./message-rows"

const STATUSES = [
  ...(["queued", "sending", "sent"] as const),
  ...(["delivered", "bounced", "complained", "failed"] as const),
]

/** What a filter says, ready to be asked of a row. */
export interface MessageFilter {
  /** As it was typed. */
  text: string
  matches(row: MessageRow, now: number): boolean
  /** What the server can be asked for, so that what is not here yet is found too. */
  query: {
    status?: (typeof STATUSES)[number]
    tag?: string
    template_id?: string
    to?: string
    subject?: string
    since?: string
  }
}

export const NO_FILTER: MessageFilter = { text: "", matches: () => true, query: {} }

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
  const [, name = "", value = ""] = /^([a-z]+):(.*)$/i.exec(word) ?? []
  if (name === "") return { test: anywhere(word), query: {} }
  if (value === "") return { problem: `${name}: give a value` }
  const known = names[name.toLowerCase()]
  if (!known)
    return {
      problem: `there is no filter ${name}; the filters are ${Object.keys(names).join(", ")}`,
    }
  return known(value)
}

const names: Partial<Record<string, (value: string) => Word | { problem: string }>> = {
  status: statusWord,
  to: (value) => ({
    test: byPattern(value, (row) => row.to),
    query: ADDRESS.test(value) ? { to: value } : {},
  }),
  subject: (value) => ({
    test: byPattern(value, (row) => row.subject),
    query: value.includes("*") ? {} : { subject: value },
  }),
  tag: (value) => {
    const is = pattern(value)
    return {
      test: ({ tags }) => tags.some((tag) => is.test(tag)),
      query: value.includes("*") ? {} : { tag: value },
    }
  },
  template: (value) => {
    const is = pattern(value)
    return {
      test: ({ template }) => template.some((name) => is.test(name)),
      query: value.includes("*") ? {} : { template_id: value },
    }
  },
  id: (value) => ({ test: byPattern(value, (row) => row.id), query: {} }),
  ch: (value) => ({
    test: byPattern(value === "mail" ? "email" : value, (row) => row.channel),
    query: {},
  }),
  since: sinceWord,
}

function statusWord(value: string): Word | { problem: string } {
  const wanted = value.toLowerCase().split(",").filter(Boolean)
  const known = STATUSES.filter((status) => wanted.includes(status))
  const wrong = wanted.find((status) => !known.some((one) => one === status))
  if (wrong !== undefined) return { problem: `there is no status ${wrong}` }
  const [only] = known
  return {
    test: ({ status }) => wanted.includes(status),
    query: known.length === 1 && only !== undefined ? { status: only } : {},
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

/** An address that looks whole: one that is half typed would find nothing on the server. */
const ADDRESS = /^[^@*]+@[^@*]+\.[a-z]{2,}$/i

/** Part of the text, or the whole of it where `*` stands for anything; case does not count. */
function pattern(value: string): RegExp {
  const parts = (value.includes("*") ? value : `*${value}*`)
    .split("*")
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${parts.join(".*")}$`, "iu")
}

function byPattern(value: string, of: (row: MessageRow) => string): Test {
  const wanted = pattern(value)
  return (row) => wanted.test(of(row))
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
