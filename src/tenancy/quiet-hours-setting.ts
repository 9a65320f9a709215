import { type Static, Type as t } from "@sinclair/typebox"
import { invalid, type Problems } from "../core/errors"
import { isTimeZone } from "../lib/locale"
import { OUTGOING_CHANNELS, type QuietHours } from "../lib/preferences"
import { isTimeOfDay } from "../lib/quiet-hours"
import { flag, maybe, rarely, text, word } from "../lib/record-fields"

/** What a change of quiet hours leaves out, where there were none before. */
const DEFAULTS: QuietHours = {
  enabled: true,
  start: "22:00",
  end: "08:00",
  timezone: null,
  channels: ["push", "sms"],
}

const MOST_ZONE_CHARACTERS = 64

const time = (description: string) => t.String({ pattern: "^\\d\\d:\\d\\d$", description })

export const quietHoursAnswer = rarely(
  t.Object(
    {
      enabled: flag(true),
      start: text(DEFAULTS.start, "The first quiet minute, by the clock of the time zone."),
      end: text(DEFAULTS.end, "The first minute after them. It may be on the next day."),
      timezone: maybe(
        text("Europe/Vienna", "Null: the zone of the subscriber, else that of the project."),
      ),
      channels: t.Array(word(OUTGOING_CHANNELS), { examples: [["push", "sms"]] }),
    },
    {
      title: "QuietHours",
      description: "Messages wait until these hours of the day are over. They are never dropped.",
    },
  ),
)

export const quietHoursPatch = t.Union([
  t.Object({
    enabled: t.Optional(t.Boolean()),
    start: t.Optional(time(`As in ${DEFAULTS.start}.`)),
    end: t.Optional(time(`As in ${DEFAULTS.end}.`)),
    timezone: t.Optional(
      t.Union([
        t.String({ maxLength: MOST_ZONE_CHARACTERS, description: "As in Europe/Vienna." }),
        t.Null(),
      ]),
    ),
    channels: t.Optional(
      t.Array(
        t.Unsafe<QuietHours["channels"][number]>(
          t.Union(OUTGOING_CHANNELS.map((one) => t.Literal(one))),
        ),
        {
          maxItems: OUTGOING_CHANNELS.length,
        },
      ),
    ),
  }),
  t.Null(),
])

type Given = NonNullable<Static<typeof quietHoursPatch>>

/** Whether a value is right for each field, and what is said where it is not. */
const FIELDS: { [Name in keyof QuietHours]: { fits: (value: unknown) => boolean; hint: string } } =
  {
    enabled: {
      fits: (value) => typeof value === "boolean",
      hint: "The value must be true or false.",
    },
    start: { fits: isTime, hint: "The value must be a time of day from 00:00 to 23:59." },
    end: { fits: isTime, hint: "The value must be a time of day from 00:00 to 23:59." },
    timezone: {
      fits: (value) => value === null || isZone(value),
      hint: "The value must be a time zone, such as Europe/Vienna, or null.",
    },
    channels: {
      fits: areChannels,
      hint: `The value must be a list of ${OUTGOING_CHANNELS.join(", ")}, each at most once.`,
    },
  }

function isTime(value: unknown): boolean {
  return typeof value === "string" && isTimeOfDay(value)
}

/** Whether the value names a time zone of the IANA database. */
export const isZone = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MOST_ZONE_CHARACTERS && isTimeZone(value)

function areChannels(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    new Set(value).size === value.length &&
    value.every((one) => OUTGOING_CHANNELS.includes(one))
  )
}

/** Reads what a change says of quiet hours. What it does not name stays. Undefined after a problem. */
export function readQuietHours(
  given: unknown,
  path: string,
  problems: Problems,
): Partial<QuietHours> | undefined {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be an object or null.")
  }
  for (const [name, value] of Object.entries(given)) {
    const place = `${path}.${name}`
    if (!isQuietField(name)) {
      const known = Object.keys(FIELDS).join(", ")
      problems.add(place, "unknown_field", `There is no such field. There are ${known}.`)
    } else if (!FIELDS[name].fits(value)) problems.add(place, "invalid", FIELDS[name].hint)
  }
  return given as Given
}

/** Whether quiet hours have a field of this name. */
export const isQuietField = (name: string): name is keyof QuietHours => Object.hasOwn(FIELDS, name)

/** The quiet hours after a change. Throws 422 where they would have no length. */
export function changedQuietHours(
  before: QuietHours | null | undefined,
  change: Partial<QuietHours>,
): QuietHours {
  const { enabled, start, end, timezone, channels } = { ...DEFAULTS, ...before, ...change }
  if (start !== end) return { enabled, start, end, timezone, channels }
  const text = `Quiet hours from ${start} to ${end} have no length. Give two different times.`
  throw invalid("quiet_hours.end", "invalid", text)
}
