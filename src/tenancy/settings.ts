import { type TSchema, Type as t } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, invalid, type Problems } from "../core/errors"
import { now } from "../core/time"
import { type Caller, PROJECT_DEFAULTS, withDefaults } from "../identity/caller"
import { type Branding, type ProjectSettings, projects, type Retention } from "../identity/tables"
import { isName } from "../lib/address"
import { isTimeZone } from "../lib/locale"
import { type FrequencyCap, OUTGOING_CHANNELS, type QuietHours } from "../lib/preferences"
import { isTimeOfDay } from "../lib/quiet-hours"
import { count, flag, maybe, rarely, text, word } from "../lib/record-fields"
import { isLonger } from "../lib/text"
import { forUpdate } from "../store/dialect"
import type { Tx } from "../store/store"

/** Null is the default again. */
export type ProjectSettingsChange = Partial<{
  [Name in keyof ProjectSettings]: PatchOf<Name> | null
}>

/** Of a group, a change may name some of the settings. */
export type PatchOf<Name extends keyof ProjectSettings> = Name extends (typeof GROUPS)[number]
  ? Partial<NonNullable<ProjectSettings[Name]>>
  : ProjectSettings[Name]

/** Settings that are objects of settings: of these, too, what a change does not name stays. */
const GROUPS = ["branding", "retention", "quiet_hours", "frequency_cap"] as const

/** JSON merge patch (RFC 7396): what is absent stays, null is the default again. */
export async function patch(
  tx: Tx,
  caller: Caller,
  wanted: ProjectSettingsChange,
): Promise<ProjectSettings> {
  const { account_id, project_id } = caller
  const ours = and(eq(projects.id, project_id), eq(projects.account_id, account_id))
  const [row] = await forUpdate(tx.select().from(projects).where(ours))
  if (!row) return fail("not_found", "There is no such project.")

  const merged = Object.entries({ ...row.settings, ...wanted, ...groupsOf(row.settings, wanted) })
  const settings = Object.fromEntries(merged.filter(([, value]) => value !== null))
  await tx.update(projects).set({ settings, updated_at: now() }).where(ours)
  const [before, after] = [withDefaults(row.settings), withDefaults(settings)]
  const target = { type: "project", id: project_id }
  const action = "settings.updated"
  await audit.record(tx, caller, { account_id, project_id, action, target, before, after })
  return after
}

function groupsOf(
  stored: Partial<ProjectSettings>,
  { branding, retention, quiet_hours, frequency_cap }: ProjectSettingsChange,
): Partial<ProjectSettings> {
  return {
    ...(branding && {
      branding: { ...PROJECT_DEFAULTS.branding, ...stored.branding, ...branding },
    }),
    ...(retention && {
      retention: { ...PROJECT_DEFAULTS.retention, ...stored.retention, ...retention },
    }),
    ...(quiet_hours && { quiet_hours: changedQuietHours(stored.quiet_hours, quiet_hours) }),
    ...(frequency_cap && {
      frequency_cap: changedFrequencyCap(stored.frequency_cap, frequency_cap),
    }),
  }
}

// Settings that are objects of settings. What a change does not name of them stays.

/** One field of a group: what is kept of a value, undefined where it does not fit, and what is said then. */
interface GroupField<Value> {
  read: (given: unknown) => Value | undefined
  hint: string
}

type GroupFields<Group> = { [Name in keyof Group]: GroupField<Group[Name]> }

/** Makes the function that reads what a change says of a group. It returns undefined for what is no object. */
const groupReader =
  <Group extends object>(fields: GroupFields<Group>, called: "setting" | "field") =>
  (given: unknown, path: string, problems: Problems): Partial<Group> | undefined => {
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      const or_null = called === "field" ? " or null" : ""
      return problems.add(path, "invalid", `The value must be an object${or_null}.`)
    }
    const wanted: Partial<Group> = {}
    for (const [name, value] of Object.entries(given)) {
      const field = Object.hasOwn(fields, name) ? fields[name as keyof Group] : undefined
      const kept = field?.read(value)
      if (kept !== undefined) wanted[name as keyof Group] = kept
      else if (field) problems.add(`${path}.${name}`, "invalid", field.hint)
      else {
        const known = Object.keys(fields).join(", ")
        const hint = `There is no such ${called}. There are ${known}.`
        problems.add(`${path}.${name}`, "unknown_field", hint)
      }
    }
    return wanted
  }

const isWhole = (given: unknown, least: number, most: number): given is number =>
  Number.isInteger(given) && Number(given) >= least && Number(given) <= most

const orNull = <Schema extends TSchema>(schema: Schema) => t.Union([schema, t.Null()])

const MOST_NAME_CHARACTERS = 100
const MOST_URL_CHARACTERS = 2048

export const brandingAnswer = t.Object(
  {
    name: maybe(text("Acme")),
    logo_url: maybe(text("https://example.com/logo.png")),
    primary_color: maybe(text("#2457c5")),
    support_url: maybe(text("https://example.com/help")),
  },
  { description: "What pages for recipients show: name, logo, color of buttons, link to help." },
)

export const brandingPatch = t.Union([
  t.Object({
    name: t.Optional(orNull(t.String({ maxLength: MOST_NAME_CHARACTERS }))),
    logo_url: t.Optional(orNull(t.String({ description: "An https:// URL of an image." }))),
    primary_color: t.Optional(orNull(t.String({ description: "A color such as #2457c5." }))),
    support_url: t.Optional(orNull(t.String({ description: "An https:// URL." }))),
  }),
  t.Null(),
])

const textOrNull = (read: (given: string) => string | undefined, hint: string) => ({
  read: (given: unknown) =>
    given === null ? null : typeof given === "string" ? read(given) : undefined,
  hint,
})

const isLine = (given: string) =>
  given.trim() !== "" && isName(given) && !isLonger(given, MOST_NAME_CHARACTERS)

/** As a browser will read it. */
function httpsUrl(given: string): string | undefined {
  const url = given.length <= MOST_URL_CHARACTERS ? URL.parse(given) : null
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") return undefined
  return url.href.length <= MOST_URL_CHARACTERS ? url.href : undefined
}

const webAddress = textOrNull(httpsUrl, "The value must be an https:// URL without a password.")

export const readBranding = groupReader<Branding>(
  {
    name: textOrNull(
      (given) => (isLine(given) ? given.trim() : undefined),
      `The value must be one line of 1 to ${MOST_NAME_CHARACTERS} characters.`,
    ),
    logo_url: webAddress,
    primary_color: textOrNull(
      (given) => (/^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(given) ? given : undefined),
      "The value must be a color in hex, such as #2457c5.",
    ),
    support_url: webAddress,
  },
  "setting",
)

const LEAST_DAYS = 1
const MOST_DAYS = 3650

const ABOUT: Record<keyof Retention, string> = {
  messages_days: "Messages with their attempts.",
  bodies_days: "Contents, sent bytes and attachments of messages that are settled.",
  inbound_days: "Received mail.",
  webhook_deliveries_days: "Webhook deliveries that have ended.",
  events_days: "Events. With webhooks they are kept at least as long as webhook deliveries.",
}

const ofRetention = <Made>(make: (days: number, about: string) => Made) =>
  Object.fromEntries(
    Object.entries(PROJECT_DEFAULTS.retention).map(([name, days]) => [
      name,
      make(days, ABOUT[name as keyof Retention]),
    ]),
  ) as Record<keyof Retention, Made>

export const retentionAnswer = t.Object(ofRetention(count), {
  description: "For how many days what belongs to the project is kept.",
})

export const retentionPatch = t.Union([
  t.Object(
    ofRetention((_, description) => {
      const days = t.Integer({ minimum: LEAST_DAYS, maximum: MOST_DAYS, description })
      return t.Optional(orNull(days))
    }),
  ),
  t.Null(),
])

/** Null is the default. */
export const readRetention = groupReader<Retention>(
  ofRetention((days) => ({
    read: (given) => {
      if (given === null) return days
      return isWhole(given, LEAST_DAYS, MOST_DAYS) ? given : undefined
    },
    hint: `The value must be a whole number of days from ${LEAST_DAYS} to ${MOST_DAYS}.`,
  })),
  "setting",
)

const MOST_MESSAGES = 1000
/** A window is no longer than a month. */
const LONGEST_SECONDS = 30 * 24 * 3600

export const frequencyCapAnswer = rarely(
  t.Object(
    {
      count: count(3, "Messages to one subscriber by one channel in one category."),
      per_seconds: count(86_400, "The time within which they are counted."),
    },
    { title: "FrequencyCap", description: "A message beyond the cap is not sent." },
  ),
)

export const frequencyCapPatch = t.Union([
  t.Object({
    count: t.Optional(t.Integer({ minimum: 1, maximum: MOST_MESSAGES })),
    per_seconds: t.Optional(t.Integer({ minimum: 1, maximum: LONGEST_SECONDS })),
  }),
  t.Null(),
])

const wholeUpTo = (most: number): GroupField<number> => ({
  read: (given) => (isWhole(given, 1, most) ? given : undefined),
  hint: `The value must be a whole number from 1 to ${most}.`,
})

export const readFrequencyCap = groupReader<FrequencyCap>(
  { count: wholeUpTo(MOST_MESSAGES), per_seconds: wholeUpTo(LONGEST_SECONDS) },
  "field",
)

/** The cap after a change. Throws 422 where a number is missing. */
function changedFrequencyCap(
  before: FrequencyCap | null | undefined,
  change: Partial<FrequencyCap>,
): FrequencyCap {
  const { count, per_seconds } = { ...before, ...change }
  if (count !== undefined && per_seconds !== undefined) return { count, per_seconds }
  const missing = count === undefined ? "count" : "per_seconds"
  throw invalid(`frequency_cap.${missing}`, "required", "The field is required.")
}

/** What a change of quiet hours leaves out, where there were none before. */
const QUIET_DEFAULTS: QuietHours = {
  enabled: true,
  start: "22:00",
  end: "08:00",
  timezone: null,
  channels: ["push", "sms"],
}

const MOST_ZONE_CHARACTERS = 64

export const quietHoursAnswer = rarely(
  t.Object(
    {
      enabled: flag(true),
      start: text(QUIET_DEFAULTS.start, "The first quiet minute, by the clock of the time zone."),
      end: text(QUIET_DEFAULTS.end, "The first minute after them. It may be on the next day."),
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

const hour = (example: string) =>
  t.Optional(t.String({ pattern: "^\\d\\d:\\d\\d$", description: `As in ${example}.` }))

const zone = t.String({ maxLength: MOST_ZONE_CHARACTERS, description: "As in Europe/Vienna." })

const channel = t.Unsafe<QuietHours["channels"][number]>(
  t.Union(OUTGOING_CHANNELS.map((one) => t.Literal(one))),
)

export const quietHoursPatch = t.Union([
  t.Object({
    enabled: t.Optional(t.Boolean()),
    start: hour(QUIET_DEFAULTS.start),
    end: hour(QUIET_DEFAULTS.end),
    timezone: t.Optional(orNull(zone)),
    channels: t.Optional(t.Array(channel, { maxItems: OUTGOING_CHANNELS.length })),
  }),
  t.Null(),
])

/** Whether the value names a time zone of the IANA database. */
export const isZone = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MOST_ZONE_CHARACTERS && isTimeZone(value)

const areChannels = (value: unknown): value is QuietHours["channels"] =>
  Array.isArray(value) &&
  new Set(value).size === value.length &&
  value.every((one) => OUTGOING_CHANNELS.includes(one))

const timeOfDay: GroupField<string> = {
  read: (given) => (typeof given === "string" && isTimeOfDay(given) ? given : undefined),
  hint: "The value must be a time of day from 00:00 to 23:59.",
}

const QUIET_FIELDS: GroupFields<QuietHours> = {
  enabled: {
    read: (given) => (typeof given === "boolean" ? given : undefined),
    hint: "The value must be true or false.",
  },
  start: timeOfDay,
  end: timeOfDay,
  timezone: {
    read: (given) => (given === null || isZone(given) ? given : undefined),
    hint: "The value must be a time zone, such as Europe/Vienna, or null.",
  },
  channels: {
    read: (given) => (areChannels(given) ? given : undefined),
    hint: `The value must be a list of ${OUTGOING_CHANNELS.join(", ")}, each at most once.`,
  },
}

export const readQuietHours = groupReader(QUIET_FIELDS, "field")

/** Whether quiet hours have a field of this name. */
export const isQuietField = (name: string): name is keyof QuietHours =>
  Object.hasOwn(QUIET_FIELDS, name)

/** The quiet hours after a change. Throws 422 where they would have no length. */
export function changedQuietHours(
  before: QuietHours | null | undefined,
  change: Partial<QuietHours>,
): QuietHours {
  const { enabled, start, end, timezone, channels } = { ...QUIET_DEFAULTS, ...before, ...change }
  if (start !== end) return { enabled, start, end, timezone, channels }
  const text = `Quiet hours from ${start} to ${end} have no length. Give two different times.`
  throw invalid("quiet_hours.end", "invalid", text)
}
