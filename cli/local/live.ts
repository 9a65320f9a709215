import type { MessageActivity } from "../../src/messages/status-changes"
import { isBad, isFinal, isGood } from "../lib/email-text"
import { shortId } from "../lib/table"
import { cleanLine, type Paint } from "../lib/terminal"
import { clockTime } from "../lib/time"

interface MessageProgress {
  steps: MessageActivity[]
  touched: number
}

const MAX_STORIES = 1000
const LINES_A_SECOND = 40
const QUIET_MILLISECONDS = 700

interface Live {
  add(fact: MessageActivity): void
  /** Call a few times a second: tells the in_progress that stand still, and what was left out. */
  tick(): void
}

/**
 * On a terminal one line a message, when it is settled or stands still for a moment; elsewhere one
 * line a fact. The remembered messages and the lines per second are limited.
 */
export function liveLines(
  print: (line: string) => void,
  options: { one_line_each: boolean; paint: Paint; now: () => number },
): Live {
  const { one_line_each, paint, now } = options
  const in_progress = new Map<string, MessageProgress>()
  let budget = LINES_A_SECOND
  let left_out = 0
  let second = now()

  const say = (steps: MessageActivity[]) => {
    if (one_line_each && budget <= 0) left_out += 1
    else {
      budget -= 1
      print(progressLine(steps, paint))
    }
  }
  const refill = () => {
    if (now() - second < 1000) return
    if (left_out > 0) print(paint.dim(`  … and ${left_out} more`))
    second = now()
    budget = LINES_A_SECOND
    left_out = 0
  }
  const end = (id: string, progress: MessageProgress) => {
    in_progress.delete(id)
    say(progress.steps)
  }

  return {
    add(fact) {
      refill()
      if (!one_line_each) return say([fact])
      const progress = in_progress.get(fact.id) ?? { steps: [], touched: 0 }
      progress.steps.push(fact)
      progress.touched = now()
      in_progress.set(fact.id, progress)
      if (isFinal(fact.status) || fact.next_attempt_at !== null) end(fact.id, progress)
      const [oldest] = in_progress
      if (in_progress.size > MAX_STORIES && oldest) end(...oldest)
    },
    tick() {
      refill()
      for (const [id, progress] of in_progress) {
        if (now() - progress.touched >= QUIET_MILLISECONDS) end(id, progress)
      }
    },
  }
}

/** `12:00:01.102 98783dac queued → .104 sending → .131 sent → .140 delivered  38 ms`. */
export function progressLine(steps: readonly MessageActivity[], paint: Paint): string {
  const [first] = steps
  const last = steps.at(-1)
  if (!first || !last) return ""
  const begin = clockTime(first.at)
  const words = steps.map((step, index) => {
    const at = clockTime(step.at)
    const short = at.slice(0, 8) === begin.slice(0, 8) ? at.slice(8) : at
    return (index === 0 ? "" : `${paint.dim(short)} `) + statusWord(step, paint)
  })
  const took = last.status === "queued" ? "" : paint.dim(`  ${Math.round(last.elapsed_ms)} ms`)
  const id = shortId(first.id)
  const whom = paint.dim(`  ${cleanLine(last.recipient)}`)
  return `${paint.dim(begin)} ${paint.cyan(cleanLine(id))} ${words.join(" → ")}${took}${whom}${why(last)}`
}

function statusWord({ status }: MessageActivity, paint: Paint): string {
  const word = cleanLine(status)
  if (isGood(status)) return paint.green(word)
  return isBad(status) ? paint.red(`${word} ✗`) : paint.yellow(word)
}

function why({ status_reason, next_attempt_at }: MessageActivity): string {
  const again = next_attempt_at === null ? "" : `  again at ${clockTime(next_attempt_at)}`
  return again + (status_reason === null ? "" : `  (${cleanLine(status_reason)})`)
}
