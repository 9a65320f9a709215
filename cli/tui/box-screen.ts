import type { Components } from "../../src/client/components"
import { byteSize } from "../lib/byte-size"
import { counted, fitted, number, wrapped } from "../lib/cells"
import { ago, type Columns, table } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { age, span } from "../lib/time"
import { key, scrolling } from "./keys"
import { ask, type BoxFacts, type Key, type Screen, said, step } from "./state"

type DoctorCheck = Components["DoctorReport"]["checks"][number]
type Backup = Components["Backup"]

const LABEL = 12
const SHOWN_BACKUPS = 30

/** The checks with the forecast of the disk, the held work, and the backups. */
function boxText({ checks, backups, held }: BoxFacts, paint: Paint, width: number): string {
  const kept = backups?.slice(0, SHOWN_BACKUPS) ?? []
  const newest =
    kept.length > 0
      ? table(kept, backupColumns, width, paint)
      : paint.yellow("no backup yet: b makes one")
  return [
    checks.flatMap((check) => checkLines(check, width, paint)).join("\n"),
    ...(held === undefined ? [] : [heldText(held, width, paint)]),
    backups === undefined ? labelled("", FOR_OPERATORS, width) : newest,
  ].join("\n\n")
}

const FOR_OPERATORS =
  "Disk, held work and backups are for operators: sign in with belfry login, and open the monitor without a key."

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

const release: Key = {
  ...key("r", "release", "send everything that is held since a restore (asks first)"),
  word: "release",
  press(state) {
    const held = state.pages.box.found?.held
    if (!held) return said(state, "nothing is held")
    const text = `Send all ${number(held.depth)} held messages, deliveries and jobs?`
    return ask(state, text, { do: "release_held" })
  },
}

const DROP =
  "drop everything that is held (asks first); elsewhere, copy the command for its machine"

const drop: Key = {
  ...key("D", "drop", DROP),
  word: "drop",
  press(state) {
    const { held, server } = state.pages.box.found ?? {}
    return held && server ? step(state, { do: "ask_drop", server }) : said(state, "nothing is held")
  },
}

const backup: Key = {
  ...key("b", "backup", "make a backup now (asks first)"),
  word: "backup",
  press: (state) =>
    state.pages.box.found?.backups === undefined
      ? said(state, "backups are for operators")
      : ask(state, "Make a backup now?", { do: "make_backup" }),
}

export const boxScreen: Screen = {
  load: () => [{ do: "load_box" }],
  /** The newest backup and the worst check. */
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
  page: boxText,
  keys: () => [scrolling, release, drop, backup],
  actions: [release, drop, backup],
}
