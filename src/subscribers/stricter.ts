import type { ChosenPreferences, QuietHours } from "../lib/preferences"
import { SUBSCRIBER_STATUSES, type SubscriberStatus } from "./tables"

/**
 * What two people allow both, where they turn out to be one. A no of either one stays. A yes stays only
 * where both said it, because an entry that is absent may mean no.
 */
export function stricterPreferences(
  one: ChosenPreferences | null,
  other: ChosenPreferences | null,
): ChosenPreferences | null {
  if (one === null && other === null) return null
  const [{ quiet_hours: first = null, ...choices }, { quiet_hours: second = null, ...others }] = [
    one ?? {},
    other ?? {},
  ]
  const quiet_hours = quieter(first, second)
  return { ...stricter(choices, others), ...(quiet_hours && { quiet_hours }) }
}

interface Choices {
  [name: string]: Choices | boolean | undefined
}

/** By name, to any depth. A name of which nothing is left is left out. */
function stricter(one: Choices, other: Choices): Choices {
  const [first, second] = [new Map(Object.entries(one)), new Map(Object.entries(other))]
  const both = [...new Set([...first.keys(), ...second.keys()])].map(
    (name) => [name, ofBoth(first.get(name), second.get(name))] as const,
  )
  return Object.fromEntries(both.filter(([, value]) => value !== undefined))
}

function ofBoth(one: Choices[string], other: Choices[string]): Choices[string] {
  if (typeof one === "object" || typeof other === "object") {
    const both = stricter(groupOf(one), groupOf(other))
    return Object.keys(both).length > 0 ? both : undefined
  }
  return one === false || other === false ? false : one && other
}

const groupOf = (choices: Choices[string]) => (typeof choices === "object" ? choices : {})

/** Own hours that are off end those of the project, so hours that are on, or none at all, are stricter. */
function quieter(one: QuietHours | null, other: QuietHours | null): QuietHours | null {
  const on = [one, other].filter((hours): hours is QuietHours => hours?.enabled === true)
  const [first, second] = on
  if (first === undefined) return one === null || other === null ? null : one
  if (second === undefined) return first
  const longer = minutesIn(second) > minutesIn(first) ? second : first
  return { ...longer, channels: [...new Set([...first.channels, ...second.channels])] }
}

const DAY_MINUTES = 1440

function minutesIn({ start, end }: QuietHours): number {
  const minutes = minuteOf(end) - minuteOf(start)
  return minutes < 0 ? minutes + DAY_MINUTES : minutes
}

function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(":").map(Number)
  return hours * 60 + minutes
}

/** The status under which less is sent. */
export const stricterStatus = (one: SubscriberStatus, other: SubscriberStatus): SubscriberStatus =>
  SUBSCRIBER_STATUSES.indexOf(one) > SUBSCRIBER_STATUSES.indexOf(other) ? one : other
