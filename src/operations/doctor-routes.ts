import { resolve } from "node:path"
import { Type as t } from "@sinclair/typebox"
import { settings } from "../core/config"
import type { Disk } from "../core/disk"
import { type AnyRoute, consoleRow, route } from "../http/route"
import type { ServerHealth } from "../http/server-health"
import { flag, maybe, text, word } from "../lib/record-fields"
import type { Reader, Store } from "../store/store"
import { RUN_ID } from "./admin"
import { diskForecast } from "./disk-forecast"
import { invariantWarnings, lastCheck } from "./nightly-check"
import { TIGHT_FLOORS } from "./tight-disk"

const DoctorReport = t.Object(
  {
    ok: flag(true, "No check failed."),
    data_dir: text("/var/lib/belfry", "The data folder on the server's machine."),
    run_id: text("01a219c4-cc8e-7715-a2f6-4e7f069eba59", "Another one after each start."),
    checks: t.Array(
      t.Object({
        name: text("disk"),
        outcome: word(["pass", "warn", "fail"]),
        detail: text("61.2 GB free, the database has 840 MB, growing by 12 MB a day"),
        fix: maybe(text("Free space on the disk, or shorten `retention` of the projects.")),
      }),
    ),
  },
  { title: "DoctorReport" },
)

export interface DoctorRouteParts extends Omit<DoctorParts, "min_free_mb"> {
  store: Store
}

export const doctorRoutes = ({ store, health, disk }: DoctorRouteParts): AnyRoute[] => [
  route({
    ...consoleRow("GET", "/v1/admin/doctor", "role:operator"),
    response: DoctorReport,
    summary: "Check the instance: database, jobs, mail servers, disk with its forecast, invariants",
    description:
      "Only for operators. The forecast of the disk needs a server that has run for six hours.",
    handle: async () => {
      const { data_dir, "storage.min_free_mb": min_free_mb } = settings()
      const checks = await examine(store.read, { health, disk, min_free_mb })
      const ok = checks.every(({ outcome }) => outcome !== "fail")
      return { data: { ok, data_dir: resolve(data_dir), run_id: RUN_ID, checks } }
    },
  }),
]

/** Fewer days than this are a reason to act. */
const SHORT_DAYS = 14

const MB = 1024 * 1024
const GB = 1024 * MB

export interface DoctorParts {
  health: ServerHealth
  disk: Pick<Disk, "free_bytes">
  /** `storage.min_free_mb`. */
  min_free_mb: number
}

interface DoctorCheck {
  name: string
  outcome: "pass" | "warn" | "fail"
  detail: string
  /** What to do; null where nothing is wrong. */
  fix: string | null
}

/**
 * Looks at the box as its operator does: what readiness looks at, the disk with its forecast, the
 * invariants, and warnings.
 */
export async function examine(db: Reader, parts: DoctorParts): Promise<DoctorCheck[]> {
  await parts.health.look()
  const { disk: _, ...others } = parts.health.checks()
  const checks = Object.entries(others).map(([name, state]) => checkOf(name, state))
  const broken = await invariantWarnings(db)
  const warnings = parts.health.warnings.filter((text) => !broken.includes(text))
  return [
    ...checks,
    await checkDisk(db, parts),
    await checkInvariants(db, broken),
    ...warnings.map((detail) => ({ name: "warning", outcome: "warn" as const, detail, fix: null })),
  ]
}

function checkOf(name: string, state: string): DoctorCheck {
  const is_fine = /^(ok|off)\b/.test(state)
  if (is_fine) return { name, outcome: "pass", detail: state, fix: null }
  return { name, outcome: "fail", detail: state, fix: "Look into the log of the server." }
}

/** What the nightly check of any node found last. */
async function checkInvariants(db: Reader, broken: string[]): Promise<DoctorCheck> {
  const name = "invariants"
  if (broken.length > 0) return { name, outcome: "warn", detail: broken.join(" "), fix: null }
  const last = await lastCheck(db)
  const detail = last ? `hold, checked at ${last.at}` : "not checked yet: once a day"
  return { name, outcome: "pass", detail, fix: null }
}

async function checkDisk(db: Reader, { disk, min_free_mb }: DoctorParts): Promise<DoctorCheck> {
  const free_bytes = disk.free_bytes()
  const forecast = await diskForecast(db, { free_bytes, min_free_mb })
  const { database_bytes, grows_by_a_day, days_left } = forecast
  const free = Number.isFinite(free_bytes) ? `${sizeOf(free_bytes)} free` : "free space not known"
  const growth = grows_by_a_day === null ? "" : `, growing by ${sizeOf(grows_by_a_day)} a day`
  const left = days_left === null ? "" : `, enough for ${days_left} days`
  const detail = `${free}, the database has ${sizeOf(database_bytes)}${growth}${left}`
  const floor = min_free_mb * MB
  if (free_bytes < floor) return { name: "disk", outcome: "fail", detail, fix: FREE_NOW }
  const is_short =
    free_bytes < TIGHT_FLOORS * floor || (days_left !== null && days_left < SHORT_DAYS)
  if (is_short) return { name: "disk", outcome: "warn", detail, fix: FREE_SOON }
  return { name: "disk", outcome: "pass", detail, fix: null }
}

const FREE_NOW =
  "Free space on the disk now: sends are refused. `belfry db stats` shows what fills it."
const FREE_SOON =
  "Free space on the disk, or shorten `retention` of the projects. `belfry db stats` shows what fills it."

function sizeOf(bytes: number): string {
  if (Math.abs(bytes) >= GB) return `${(bytes / GB).toFixed(1)} GB`
  return `${(bytes / MB).toFixed(Math.abs(bytes) >= 10 * MB ? 0 : 1)} MB`
}
