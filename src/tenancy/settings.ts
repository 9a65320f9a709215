import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { fail, invalid } from "../core/errors"
import { now } from "../core/time"
import { type Caller, PROJECT_DEFAULTS, withDefaults } from "../identity/caller"
import { type ProjectSettings, projects } from "../identity/tables"
import { isTimeZone } from "../lib/locale"
import type { FrequencyCap, QuietHours } from "../lib/preferences"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"

/** Null is the default again. */
export type ProjectSettingsChange = Partial<{
  [Name in keyof ProjectSettings]: PatchOf<Name> | null
}>

/** Of a group, a change may name some of the settings. */
export type PatchOf<Name extends keyof ProjectSettings> = Name extends (typeof GROUPS)[number]
  ? Partial<NonNullable<ProjectSettings[Name]>>
  : ProjectSettings[Name]

/** Settings that are objects of settings. A change keeps those of their fields that it does not name. */
const GROUPS = ["branding", "retention", "quiet_hours", "frequency_cap", "ai"] as const

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
  { branding, retention, quiet_hours, frequency_cap, ai }: ProjectSettingsChange,
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
    ...(ai && { ai: { ...PROJECT_DEFAULTS.ai, ...stored.ai, ...ai } }),
  }
}

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
export const QUIET_DEFAULTS: QuietHours = {
  enabled: true,
  start: "22:00",
  end: "08:00",
  timezone: null,
  channels: ["push", "sms"],
}

export const MOST_ZONE_CHARACTERS = 64

/** The name of a time zone of the IANA database; undefined for another text. */
export const zoneOf = (text: string): string | undefined =>
  text.length <= MOST_ZONE_CHARACTERS && isTimeZone(text) ? text : undefined

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
