import { shortened } from "../../table"
import { cleanLine, type Paint } from "../../terminal"
import { type Asked, RECEIVER_MILLISECONDS, type Trial } from "./trials"

const NAME_WIDTH = 9
const ABOUT_WIDTH = 32
const GAP = "  "

/** Where the lines are printed. */
interface Paper {
  width: number
  paint: Paint
}

/** Over the lines, which come one by one: the widths are known before any answer is. */
export const headLine = ({ paint }: Paper): string =>
  paint.dim(
    `   ${"DELIVERY".padEnd(NAME_WIDTH)}${GAP}${"WHAT".padEnd(ABOUT_WIDTH)}${GAP}EXPECTED → ANSWER`,
  )

/** `✓  tampered   body changed after signing    4xx → 401  3 ms`. */
export function trialLine(trial: Trial, paper: Paper): string {
  const { passed, response_status, error, duration_ms } = trial
  const { paint } = paper
  const answer = cleanLine(String(response_status ?? error))
  const mark = passed ? paint.green("✓") : paint.red("✗")
  const painted = passed ? answer : paint.red(answer)
  return `${mark}${begun(trial, paper, `${answer}  ${duration_ms} ms`)}${painted}${GAP}${duration_ms} ms`
}

/** The same of a delivery that is not answered yet, and how long it has been waited for. */
export function waitingLine(asked: Asked, milliseconds: number, paper: Paper): string {
  const seconds = Math.floor(milliseconds / 1000)
  const rest = `… ${seconds} of ${RECEIVER_MILLISECONDS / 1000} s`
  return paper.paint.dim(`·${begun(asked, paper, rest)}${rest}`)
}

/** Up to the answer; what it is about gives way to a long one. */
function begun({ name, about, expected }: Asked, { width }: Paper, rest: string): string {
  const fixed = 1 + GAP.length + NAME_WIDTH + 2 * GAP.length + `${expected} → `.length
  const room = Math.max(0, Math.min(ABOUT_WIDTH, width - fixed - Bun.stringWidth(rest)))
  const what = shortened(about, room).padEnd(room)
  return `${GAP}${name.padEnd(NAME_WIDTH)}${GAP}${what}${GAP}${expected} → `
}
