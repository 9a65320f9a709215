import type { Components } from "../../src/client/components"
import { actionTable, spentLine } from "../lib/authoring-text"
import { byteSize, counted, fitted, number, wrapped } from "../lib/cells"
import type { Client } from "../lib/client"
import { HELD_QUEUE } from "../lib/email-text"
import { optionWords } from "../lib/flags"
import { ago, type Columns, table } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { age, span } from "../lib/time"
import type { ServerRun } from "../local/held"
import { action, scrolling } from "./keys"
import { PAGE, readable } from "./reading"
import { ask, type BoxFacts, change, type Screen, said, step } from "./state"

type DoctorCheck = Components["DoctorReport"]["checks"][number]
type Backup = Components["Backup"]

const LABEL = 12
const SHOWN_BACKUPS = 30

function boxText({ checks, backups, held, ai }: BoxFacts, paint: Paint, width: number): string {
  const kept = backups?.slice(0, SHOWN_BACKUPS) ?? []
  const newest =
    kept.length > 0
      ? table(kept, backupColumns, width, paint)
      : paint.yellow("no backup yet: b makes one")
  return [
    checks.flatMap((check) => checkLines(check, width, paint)).join("\n"),
    ...(held === undefined ? [] : [heldText(held, width, paint)]),
    ...(ai === undefined ? [] : [authoringText(ai, width, paint)]),
    backups === undefined ? labelled("", FOR_OPERATORS, width) : newest,
  ].join("\n\n")
}

const FOR_OPERATORS =
  "Only operators see disk, held work and backups. Sign in as an operator with `belfry login`, and start the monitor without an API key."

const MARKS = { pass: "✓", warn: "!", fail: "✗" } as const

function checkLines(check: DoctorCheck, width: number, paint: Paint): string[] {
  const { name, outcome, detail, fix } = check
  const brush = { pass: (text: string) => text, warn: paint.yellow, fail: paint.red }[outcome]
  const text = labelled(name, `${MARKS[outcome]} ${detail}`, width)
  const more = fix === null ? "" : `\n${labelled("", `  ${fix}`, width)}`
  return `${text}${more}`.split("\n").map(brush)
}

/** As many lines as the text needs, the label before the first. */
const labelled = (label: string, text: string, width: number): string =>
  wrapped(cleanLine(text), width - LABEL)
    .map((part, at) => fitted(at === 0 ? label : "", LABEL) + part)
    .join("\n")

function heldText(held: NonNullable<BoxFacts["held"]> | null, width: number, paint: Paint): string {
  if (held === null) return labelled("held", "nothing is held since a restore", width)
  const oldest = span(held.oldest_seconds)
  const text = `${number(held.depth)} wait since a restore, the oldest for ${oldest}`
  const keys = "r releases all of it; D drops all of it, on the machine of the server"
  return `${paint.yellow(labelled("held", text, width))}\n${labelled("", keys, width)}`
}

function authoringText(usage: NonNullable<BoxFacts["ai"]>, width: number, paint: Paint) {
  const is_included = usage.by_action.some(({ limit }) => limit !== 0)
  if (!is_included) return labelled("AI", "the plan does not include it", width)
  return `${labelled("AI", spentLine(usage), width)}\n${actionTable(usage, paint, width)}`
}

const backupColumns: Columns<Backup> = {
  BACKUP: "id",
  SIZE: { cell: ({ size }) => byteSize(size), right: true },
  CHECKED: {
    cell: ({ verified }) => (verified ? "✓" : "✗"),
    paint: (text, { verified }, paint) => (verified ? text : paint.red(text)),
  },
  AGE: ago(({ created_at }) => created_at),
  "": {
    cell: ({ missing = 0 }) => (missing === 0 ? "" : `lacks ${counted(missing, "file")}`),
    paint: (text, _, paint) => paint.yellow(text),
  },
}

const RELEASE = "send everything that is held since a restore (asks first)"

const release = action("r", "release", RELEASE, (state) => {
  const held = state.pages.box.found?.held
  if (!held) return said(state, "nothing is held")
  const text = `Send all ${number(held.depth)} held messages, deliveries and jobs?`
  const input = { params: { queue: HELD_QUEUE } }
  const done = () => "the held work is sent now"
  return ask(state, text, change("POST /v1/admin/queues/{queue}/resume", input, done))
})

const DROP =
  "drop everything that is held (asks first); elsewhere, copy the command for its machine"

const drop = action("D", "drop", DROP, (state) => {
  const { held, server } = state.pages.box.found ?? {}
  return held && server ? step(state, { do: "ask_drop", server }) : said(state, "nothing is held")
})

const backup = action("b", "backup", "make a backup now (asks first)", (state) => {
  if (!state.pages.box.found?.backups) return said(state, "only operators can make backups")
  const done = ({ data }: { data: { id: string } }) => `the backup runs as job ${data.id}`
  return ask(state, "Make a backup now?", change("POST /v1/admin/backups", undefined, done))
})

/** The command that drops the held work on the machine of the server. It asks by itself. */
export const dropCommand = ({ data_dir }: ServerRun): string =>
  `belfry queue purge ${HELD_QUEUE}${optionWords({ "data-dir": data_dir })}`

/** What operators may read; without their rights, the report of `/readyz`. */
async function boxFacts(client: Client): Promise<BoxFacts> {
  // Not every key and person may read it, and the rest is shown to all.
  const ai = (await readable(client.call("GET /v1/ai/usage"), () => true))?.data
  const all = await readable(
    Promise.all([
      client.call("GET /v1/admin/doctor"),
      client.call("GET /v1/admin/backups", { query: PAGE }),
      client.call("GET /v1/admin/queues", { query: PAGE }),
    ]),
  )
  if (!all) return { checks: await readiness(client), backups: undefined, held: undefined, ai }
  const [doctor, backups, queues] = all
  const held = queues.data.find(({ queue }) => queue === HELD_QUEUE) ?? null
  const { checks, data_dir, run_id } = doctor.data
  return { checks, backups: backups.data, held, ai, server: { data_dir, run_id } }
}

async function readiness(client: Client): Promise<BoxFacts["checks"]> {
  const { body } = await client.plain("/readyz")
  const { checks = {}, warnings = [] } = body as {
    checks?: Record<string, string>
    warnings?: string[]
  }
  const looked = Object.entries(checks).map(([name, detail]) => {
    const outcome = /^(ok|off)\b/.test(detail) ? ("pass" as const) : ("fail" as const)
    return { name, outcome, detail, fix: null }
  })
  const warned = { name: "warning", outcome: "warn" as const, fix: null }
  return [...looked, ...warnings.map((detail) => ({ ...warned, detail }))]
}

export const boxScreen: Screen = {
  info({ now, pages: { box } }) {
    if (box.found === null) return ""
    const { checks, backups = [] } = box.found
    const failed = checks.filter(({ outcome }) => outcome === "fail").length
    const warned = checks.filter(({ outcome }) => outcome === "warn").length
    const [newest] = backups
    return [
      failed > 0 ? `${number(failed)} failed` : "nothing failed",
      ...(warned > 0 ? [`${number(warned)} warn`] : []),
      ...(newest ? [`newest backup ${age(newest.created_at, now)} old`] : []),
    ].join("   ")
  },
  page: { read: boxFacts, text: boxText },
  keys: () => [scrolling, release, drop, backup],
  actions: [release, drop, backup],
}
