import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { PROJECT_DEFAULTS } from "../identity/caller"
import type { Retention } from "../identity/tables"
import { count } from "../lib/record-fields"

const DEFAULTS = PROJECT_DEFAULTS.retention
const NAMES = Object.keys(DEFAULTS) as (keyof Retention)[]

const LEAST_DAYS = 1
const MOST_DAYS = 3650

const ABOUT: Record<keyof Retention, string> = {
  messages_days: "Messages with their attempts.",
  bodies_days: "Contents, sent bytes and attachments of messages that are settled.",
  inbound_days: "Received mail.",
  webhook_deliveries_days: "Webhook deliveries that have ended.",
  events_days: "Events. With webhooks they are kept at least as long as webhook deliveries.",
}

const DAYS = "For how many days what belongs to the project is kept."

export const retentionAnswer = t.Object(
  Object.fromEntries(NAMES.map((name) => [name, count(DEFAULTS[name], ABOUT[name])])),
  { description: DAYS },
)

const days = (name: keyof Retention) =>
  t.Optional(
    t.Union([
      t.Integer({ minimum: LEAST_DAYS, maximum: MOST_DAYS, description: ABOUT[name] }),
      t.Null(),
    ]),
  )

export const retentionPatch = t.Union([
  t.Object(Object.fromEntries(NAMES.map((name) => [name, days(name)]))),
  t.Null(),
])

/** Reads what a change says of the retention. What it does not name stays; null is the default. */
export function readRetention(
  given: unknown,
  path: string,
  problems: Problems,
): Partial<Retention> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be an object.")
  }
  const wanted: Partial<Retention> = {}
  for (const [name, value] of Object.entries(given)) {
    const known = NAMES.find((one) => one === name)
    const place = `${path}.${name}`
    if (!known) {
      const hint = `There is no such setting. There are ${NAMES.join(", ")}.`
      problems.add(place, "unknown_field", hint)
    } else if (value === null) wanted[known] = DEFAULTS[known]
    else if (isDays(value)) wanted[known] = value
    else {
      const hint = `The value must be a whole number of days from ${LEAST_DAYS} to ${MOST_DAYS}.`
      problems.add(place, "invalid", hint)
    }
  }
  return wanted
}

const isDays = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= LEAST_DAYS && Number(value) <= MOST_DAYS
