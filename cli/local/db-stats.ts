import { statfs } from "node:fs/promises"
import type { DatabaseStats } from "../../src/operations/database-stats"
import { byteSize } from "../lib/cells"
import type { Action, Context } from "../lib/context"
import { usage } from "../lib/errors"
import { fields, table, wide } from "../lib/table"
import { requireSchema } from "./db-check"
import { dataSettings, type LocalOptions } from "./settings"
import { startFailure } from "./start-errors"

/** Tables and projects that people see; JSON has all of them. */
const MOST_SHOWN = 12

/** Ten years. Beyond it a forecast means nothing. */
const MOST_DAYS = 3650

const MB = 1024 * 1024

type Stats = DatabaseStats & {
  engine: "sqlite" | "postgres"
  /** Free bytes on the disk of the data folder. */
  disk_free_bytes: number
  /**
   * Days until the disk has less than `storage.min_free_mb`, at the growth of the last week. Null: ten
   * years or more.
   */
  days_left: number | null
}

/** Shows the bytes of the database, and the bytes that retention will free. It changes nothing. */
export const stats: Action<LocalOptions> = async (context, options) => {
  if (context.flags.dryRun) throw usage("--dry-run is not possible with this command")
  const { values } = dataSettings(context.flags, options, "error")
  const { output } = context
  try {
    await requireSchema(values)
    const { readDatabase } = await import("../../src/store/open")
    const { databaseStats } = await import("../../src/operations/database-stats")
    const found = await readDatabase(values, (db) =>
      databaseStats(db, values, (name) => output.passing(`counting: ${name}`)),
    )
    const { bavail, bsize } = await statfs(values.data_dir)
    const disk_free_bytes = bavail * bsize
    const engine = values.database_url ? "postgres" : "sqlite"
    const floor = values["storage.min_free_mb"] * MB
    const days_left = engine === "sqlite" ? daysLeft(found, disk_free_bytes - floor) : null
    const record: Stats = { engine, ...found, disk_free_bytes, days_left }
    output.passing("")
    await output.record({ ...record }, () => shown(record, context))
  } catch (error) {
    output.passing("")
    const { explained } = await import("../../src/store/open")
    throw startFailure(explained(values, error), values)
  }
}

/** Days until the disk is full. New rows fill the free pages before the file grows. */
function daysLeft({ grows_by_a_day, frees, free_bytes }: DatabaseStats, room: number) {
  const week = frees.find(({ within_days }) => within_days === 7)
  const net = grows_by_a_day - (week?.bytes ?? 0) / 7
  const days = Math.max(0, Math.floor((room + free_bytes) / Math.max(net, 1)))
  return net <= 0 || days > MOST_DAYS ? null : days
}

function shown(stats: Stats, { paint, terminal }: Context): string {
  const width = terminal.width
  const { bytes, free_bytes, disk_free_bytes, days_left, grows_by_a_day, engine } = stats
  const head = fields(
    [
      [engine, `${byteSize(bytes)}, of which ${byteSize(free_bytes)} are free for new rows`],
      ["disk", `${byteSize(disk_free_bytes)} free${leftOf(days_left)}`],
      ["growth", `${byteSize(grows_by_a_day)} a day (mean of the last 7 days)`],
      ["retention", stats.frees.map(freed).join(", ")],
    ],
    paint,
  )
  const tables = stats.tables.filter(({ rows }) => rows > 0).slice(0, MOST_SHOWN)
  const by_table = {
    TABLE: "table",
    SIZE: ({ bytes: size }: { bytes: number }) => byteSize(size),
    ROWS: ({ rows }: { rows: number }) => rows.toLocaleString("en-US"),
    "KEPT FOR": wide(({ kept }: { kept: string }) => kept),
  } as const
  const by_project = {
    PROJECT: wide(({ name }: { name: string }) => name),
    SIZE: by_table.SIZE,
    ROWS: by_table.ROWS,
  } as const
  const projects = stats.projects.slice(0, MOST_SHOWN)
  return [
    head,
    table(tables, by_table, width, paint),
    table(projects, by_project, width, paint),
  ].join("\n\n")
}

const leftOf = (days: number | null) =>
  days === null ? "" : `, enough for ${days.toLocaleString("en-US")} days at this growth`

const freed = ({ within_days, bytes }: { within_days: number; bytes: number }) =>
  `${byteSize(bytes)} within ${within_days === 1 ? "a day" : `${within_days} days`}`
