import { isLonger } from "./text"

/** A condition over a JSON value: of an event for a webhook, of a subscriber, of a payload. */
export type Rule = { all: Rule[] } | { any: Rule[] } | { not: Rule } | Comparison

interface Comparison {
  /** A dotted path: names of objects, positions in lists. */
  field: string
  op: Operator
  value?: Scalar | Scalar[]
}

type Scalar = string | number | boolean | null

type Test = (found: unknown, value: Scalar | Scalar[] | undefined) => boolean

/** Where a rule is wrong: the path inside of it in dot form, "" for the rule itself. */
interface RuleProblem {
  path: string
  message: string
}

const MOST_LEVELS = 5
const MOST_LEAVES = 50
const LONGEST_FIELD = 256
const MOST_CHOICES = 100

/** Kinds of value that an operator is compared with. */
const isScalar = (value: unknown): value is Scalar =>
  value === null || ["string", "number", "boolean"].includes(typeof value)
const isOrdered = (value: unknown) => typeof value === "string" || typeof value === "number"
const isText = (value: unknown) => typeof value === "string"
const isChoice = (value: unknown) =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MOST_CHOICES &&
  value.every((item) => isScalar(item))
const isSwitch = (value: unknown) => value === undefined || typeof value === "boolean"

const takes = {
  scalar: { fits: isScalar, words: "a text, a number, true, false or null" },
  ordered: { fits: isOrdered, words: "a text or a number" },
  text: { fits: isText, words: "a text" },
  choice: {
    fits: isChoice,
    words: `a list of 1 to ${MOST_CHOICES} values (text, number, true, false or null)`,
  },
  switch: { fits: isSwitch, words: "true or false" },
}

interface Operation {
  takes: { fits(value: unknown): boolean; words: string }
  test: Test
}

/** Null and a missing value are different kinds. */
const kindOf = (value: unknown) => (value === null ? "null" : typeof value)

/** -1, 0 or 1, or NaN for two that cannot be ordered: every comparison with that is false. */
function order(found: unknown, value: unknown): number {
  if (!isOrdered(found) || kindOf(found) !== kindOf(value)) return Number.NaN
  const [one, other] = [found as string, value as string]
  return one < other ? -1 : one > other ? 1 : 0
}

const ordered = (holds: (order: number) => boolean): Operation => ({
  takes: takes.ordered,
  test: (found, value) => holds(order(found, value)),
})

const choices = (value: unknown) => (Array.isArray(value) ? (value as unknown[]) : [])
const sameKind = (found: unknown, value: unknown) => kindOf(found) === kindOf(value)

const operations = {
  eq: { takes: takes.scalar, test: (found, value) => found === value },
  ne: {
    takes: takes.scalar,
    test: (found, value) => sameKind(found, value) && found !== value,
  },
  gt: ordered((sign) => sign > 0),
  gte: ordered((sign) => sign >= 0),
  lt: ordered((sign) => sign < 0),
  lte: ordered((sign) => sign <= 0),
  in: { takes: takes.choice, test: (found, value) => choices(value).includes(found) },
  nin: {
    takes: takes.choice,
    test: (found, value) =>
      choices(value).some((item) => sameKind(found, item)) && !choices(value).includes(found),
  },
  contains: {
    takes: takes.scalar,
    test: (found, value) => {
      if (Array.isArray(found)) return found.includes(value)
      return typeof found === "string" && typeof value === "string" && found.includes(value)
    },
  },
  starts_with: {
    takes: takes.text,
    test: (found, value) =>
      typeof found === "string" && typeof value === "string" && found.startsWith(value),
  },
  exists: {
    takes: takes.switch,
    test: (found, value) => (found !== undefined && found !== null) === (value ?? true),
  },
} satisfies Record<string, Operation>

type Operator = keyof typeof operations

const OPERATORS = Object.keys(operations).join(", ")

class Wrong extends Error {
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/**
 * Reads a rule that came from outside: at most 5 levels and 50 comparisons, no unknown member.
 * Gives the rule itself, or the first problem in it.
 */
export function parseRule(value: unknown): Rule | { problem: RuleProblem } {
  try {
    requireRule(value, "", 1, { leaves: 0 })
    return value as Rule
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    return { problem: { path: error.path, message: error.message } }
  }
}

function requireRule(value: unknown, path: string, level: number, count: { leaves: number }) {
  if (!isRecord(value)) throw new Wrong(path, "A rule must be an object.")
  if (level > MOST_LEVELS) throw new Wrong(path, `A rule may have at most ${MOST_LEVELS} levels.`)
  const [name = "", more] = Object.keys(value)
  if (!["all", "any", "not"].includes(name)) return requireComparison(value, path, count)
  if (more !== undefined)
    throw new Wrong(at(path, more), `A rule with "${name}" must have no other member.`)
  const inner = value[name]
  if (name === "not") return requireRule(inner, at(path, name), level + 1, count)
  if (!Array.isArray(inner) || inner.length === 0) {
    throw new Wrong(at(path, name), "The value must be a list of at least one rule.")
  }
  inner.forEach((rule, index) => void requireRule(rule, at(path, name, index), level + 1, count))
}

function requireComparison(
  value: Record<string, unknown>,
  path: string,
  count: { leaves: number },
): void {
  count.leaves += 1
  if (count.leaves > MOST_LEAVES) {
    throw new Wrong(path, `A rule may have at most ${MOST_LEAVES} comparisons.`)
  }
  const unknown = Object.keys(value).find((name) => !["field", "op", "value"].includes(name))
  if (unknown !== undefined)
    throw new Wrong(at(path, unknown), "A comparison has only the members field, op and value.")
  if (!isField(value.field))
    throw new Wrong(at(path, "field"), "The value must be a dotted path, such as data.id.")
  if (!isOperator(value.op))
    throw new Wrong(at(path, "op"), `The value must be one of ${OPERATORS}.`)
  const { fits, words } = operations[value.op].takes
  if (!fits(value.value)) throw new Wrong(at(path, "value"), `The value must be ${words}.`)
}

const at = (...steps: (string | number)[]) => steps.filter((step) => step !== "").join(".")

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isOperator = (value: unknown): value is Operator =>
  typeof value === "string" && Object.hasOwn(operations, value)

const isField = (value: unknown) =>
  typeof value === "string" && !isLonger(value, LONGEST_FIELD) && value.split(".").every(Boolean)

/**
 * Whether the rule holds for a JSON value. Nothing is converted: two values of different types
 * compare as false with every operator, `ne` and `nin` too, and so does a field that is not there.
 * Texts are ordered by their code units. To `exists` null is no value.
 */
export function matches(rule: Rule, subject: unknown): boolean {
  if ("all" in rule) return rule.all.every((inner) => matches(inner, subject))
  if ("any" in rule) return rule.any.some((inner) => matches(inner, subject))
  if ("not" in rule) return !matches(rule.not, subject)
  const test: Test = operations[rule.op].test
  return test(valueAt(rule.field, subject), rule.value)
}

/** What stands at a path such as `items.0.name`. Own members only: what every object inherits is no data. */
export function valueAt(field: string, subject: unknown): unknown {
  let found = subject
  for (const step of field.split(".")) {
    if (typeof found !== "object" || found === null) return undefined
    if (Array.isArray(found) ? !/^\d+$/.test(step) : !Object.hasOwn(found, step)) return undefined
    found = (found as Record<string, unknown>)[step]
  }
  return found
}
