import type { Components } from "../../src/client/components"
import { byteSize } from "../lib/byte-size"
import { cleanLine, type Paint } from "../lib/terminal"
import { age } from "../lib/time"
import { ageText, fitted, number, wrapped } from "./cells"
import { layoutOf } from "./layout"
import { type BoxFacts, type State, type StateStep, scrolled, step, whether } from "./state"
import type { Brush } from "./table-lines"
import { told } from "./webhooks-screen"

type DoctorCheck = Components["DoctorReport"]["checks"][number]
type Backup = Components["Backup"]
type Queue = Components["Queue"]

const LABEL = 12
const SHOWN_BACKUPS = 30

interface ScreenLine {
  text: string
  brush?: Brush | undefined
}

/** The checks with the forecast of the disk, the held work, and the backups. */
export function boxLines(state: State, width: number, paint: Paint): string[] {
  const { found, problem, top } = state.box
  const { height } = layoutOf(state)
  if (found === null) return told(problem ?? "loading…", width, height)
  const lines = contentOf(found, width, state.now).slice(top, top + height)
  const shown = lines.map(({ text, brush }) => {
    const line = fitted(cleanLine(text), width)
    return brush ? paint[brush](line) : line
  })
  const blank = Array.from({ length: height - shown.length }, () => " ".repeat(width))
  return [...shown, ...blank]
}

function contentOf({ checks, backups, held }: BoxFacts, width: number, now: number): ScreenLine[] {
  const operators =
    backups === undefined ? [{ text: "" }, ...labelled("", FOR_OPERATORS, width)] : []
  return [
    ...checks.flatMap((check) => checkLines(check, width)),
    ...(held === undefined ? [] : [{ text: "" }, ...heldLines(held, width)]),
    ...(backups === undefined ? [] : [{ text: "" }, ...backupLines(backups, now)]),
    ...operators,
  ]
}

const FOR_OPERATORS =
  "Disk, held work and backups are for operators: sign in with belfry login, and open the monitor without a key."

const MARKS = { pass: "✓", warn: "!", fail: "✗" } as const
const BRUSHES = { pass: undefined, warn: "yellow", fail: "red" } as const

function checkLines({ name, outcome, detail, fix }: DoctorCheck, width: number): ScreenLine[] {
  const brush = BRUSHES[outcome]
  const lines = labelled(name, `${MARKS[outcome]} ${detail}`, width, brush)
  return fix === null ? lines : [...lines, ...labelled("", `  ${fix}`, width, brush)]
}

/** As many lines as the text needs, the label before the first. */
function labelled(label: string, text: string, width: number, brush?: Brush): ScreenLine[] {
  return wrapped(cleanLine(text), width - LABEL).map((part, at) => ({
    text: `${fitted(at === 0 ? label : "", LABEL)}${part}`,
    brush,
  }))
}

function heldLines(held: Queue | null, width: number): ScreenLine[] {
  if (held === null) return labelled("held", "nothing is held since a restore", width)
  const { depth, oldest_seconds } = held
  const text = `${number(depth)} wait since a restore, the oldest for ${ageText(oldest_seconds)}`
  return [
    ...labelled("held", text, width, "yellow"),
    ...labelled("", "r releases all of it; D drops all of it, on the machine of the server", width),
  ]
}

function backupLines(backups: readonly Backup[], now: number): ScreenLine[] {
  if (backups.length === 0) return [{ text: "no backup yet: b makes one", brush: "yellow" }]
  const line = (id: string, size: string, checked: string, made: string) =>
    `${fitted(id, 36)} ${size.padStart(10)}  ${fitted(checked, 7)} ${made.padStart(8)}`
  return [
    { text: line("BACKUP", "SIZE", "CHECKED", "AGE"), brush: "dim" },
    ...backups.slice(0, SHOWN_BACKUPS).map(({ id, size, verified, missing = 0, created_at }) => ({
      text: `${line(id, byteSize(size), verified ? "✓" : "✗", age(created_at, now))}${lacks(missing)}`,
      brush: !verified ? ("red" as const) : missing > 0 ? ("yellow" as const) : undefined,
    })),
  ]
}

const lacks = (missing: number): string =>
  missing === 0 ? "" : `  lacks ${missing === 1 ? "1 file" : `${number(missing)} files`}`

/** The newest backup and the worst check, in one line; empty before it was read. */
export function boxInfo({ now, box: { found, problem } }: State): string {
  if (problem !== null) return problem
  if (found === null) return ""
  const failed = found.checks.filter(({ outcome }) => outcome === "fail").length
  const warned = found.checks.filter(({ outcome }) => outcome === "warn").length
  const [newest] = found.backups ?? []
  const parts = [
    failed > 0 ? `${number(failed)} failed` : "nothing failed",
    ...(warned > 0 ? [`${number(warned)} warn`] : []),
    ...(newest ? [`newest backup ${age(newest.created_at, now)} old`] : []),
  ]
  return parts.join("   ")
}

export function pressOnBox(state: State, key: string): StateStep {
  const { found, top } = state.box
  switch (key) {
    case "r": {
      if (!found?.held) return step(notice(state, "nothing is held"))
      const question = `Send all ${number(found.held.depth)} held messages, deliveries and jobs?`
      return step({ ...state, question: whether(question, { do: "release_held" }) })
    }
    case "D":
      if (!found?.held || !found.server) return step(notice(state, "nothing is held"))
      return step(state, { do: "ask_drop", server: found.server })
    case "b": {
      if (found?.backups === undefined) return step(notice(state, "backups are for operators"))
      return step({ ...state, question: whether("Make a backup now?", { do: "make_backup" }) })
    }
    default: {
      const length = found === null ? 0 : contentOf(found, layoutOf(state).width, state.now).length
      return step({ ...state, box: { ...state.box, top: scrolled(top, length, key) } })
    }
  }
}

const notice = (state: State, text: string): State => ({
  ...state,
  notice: { text, at: state.now },
})
