import { Type as t } from "@sinclair/typebox"
import { invalid, type Problems } from "../core/errors"
import type { FrequencyCap } from "../lib/preferences"
import { count, rarely } from "../lib/record-fields"

/** What a field of the cap may be, from 1 on. A window is no longer than a month. */
const MOST: FrequencyCap = { count: 1000, per_seconds: 30 * 24 * 3600 }

export const frequencyCapAnswer = rarely(
  t.Object(
    {
      count: count(3, "Messages to one subscriber by one channel in one category."),
      per_seconds: count(86_400, "The time within which they are counted."),
    },
    { title: "FrequencyCap", description: "A message beyond the cap is not sent." },
  ),
)

const number = (name: keyof FrequencyCap) =>
  t.Optional(t.Integer({ minimum: 1, maximum: MOST[name] }))

export const frequencyCapPatch = t.Union([
  t.Object({ count: number("count"), per_seconds: number("per_seconds") }),
  t.Null(),
])

/** Reads what a change says of the cap. What it does not name stays. Undefined after a problem. */
export function readFrequencyCap(
  given: unknown,
  path: string,
  problems: Problems,
): Partial<FrequencyCap> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be an object or null.")
  }
  const wanted: Partial<FrequencyCap> = {}
  for (const [name, value] of Object.entries(given)) {
    const place = `${path}.${name}`
    if (!isField(name)) {
      problems.add(place, "unknown_field", "There is no such field. There are count, per_seconds.")
    } else if (Number.isInteger(value) && value >= 1 && value <= MOST[name]) wanted[name] = value
    else {
      const hint = `The value must be a whole number from 1 to ${MOST[name]}.`
      problems.add(place, "invalid", hint)
    }
  }
  return wanted
}

const isField = (name: string): name is keyof FrequencyCap => Object.hasOwn(MOST, name)

/** The cap after a change. Throws 422 where a number is missing. */
export function changedFrequencyCap(
  before: FrequencyCap | null | undefined,
  change: Partial<FrequencyCap>,
): FrequencyCap {
  const { count, per_seconds } = { ...before, ...change }
  if (count !== undefined && per_seconds !== undefined) return { count, per_seconds }
  const missing = count === undefined ? "count" : "per_seconds"
  throw invalid(`frequency_cap.${missing}`, "required", "The field is required.")
}
