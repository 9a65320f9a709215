import { expect, test } from "bun:test"
import { painter } from "../../cli/lib/terminal"
import { liveLines, progressLine } from "../../cli/local/live"
import type { MessageActivity } from "../../src/messages/status-changes"

const paint = painter(false)
const begin = new Date(2026, 10, 21, 12, 0, 1, 102).getTime()

const fact = (
  status: MessageActivity["status"],
  after: number,
  more: Partial<MessageActivity> = {},
): MessageActivity => ({
  id: "0199a1c2-0000-7000-8000-000000003f9e",
  project_id: "p",
  channel: "email",
  status,
  status_reason: null,
  recipient: "ann@mailbox.test",
  at: new Date(begin + after).toISOString(),
  event_type: `email.${status}`,
  elapsed_ms: after,
  next_attempt_at: null,
  ...more,
})

const journey = [fact("queued", 0), fact("sending", 2), fact("sent", 29), fact("delivered", 38)]

test("the way of a message is one line, with times that are read at a glance", () => {
  expect(progressLine(journey, paint)).toBe(
    "12:00:01.102 00003f9e queued → .104 sending → .131 sent → .140 delivered  38 ms" +
      "  ann@mailbox.test",
  )
})

function watched(one_line_each: boolean) {
  const lines: string[] = []
  let now = 0
  const live = liveLines((line) => lines.push(line), { one_line_each, paint, now: () => now })
  return { lines, live, wait: (milliseconds: number) => (now += milliseconds) }
}

test("on a terminal a message is told once, when it is settled", () => {
  const { lines, live } = watched(true)
  for (const step of journey.slice(0, 3)) live.add(step)
  expect(lines).toEqual([])
  live.add(journey[3]!)
  expect(lines).toEqual([progressLine(journey, paint)])
})

test("elsewhere every step is a line", () => {
  const { lines, live } = watched(false)
  for (const step of journey) live.add(step)
  expect(lines).toHaveLength(4)
})

test("a message that stands still is told as far as it is, a deferred one with its next try", () => {
  const { lines, live, wait } = watched(true)
  live.add(fact("queued", 0))
  live.add(fact("sending", 1))
  wait(800)
  live.tick()
  expect(lines.at(-1)).toContain("queued → .103 sending")
  const next_attempt_at = new Date(begin + 1000).toISOString()
  live.add(fact("queued", 5, { next_attempt_at, status_reason: "451 4.2.0" }))
  expect(lines.at(-1)).toContain("again at 12:00:02.102  (451 4.2.0)")
})

test("a flood is counted instead of shown, and remembered only so far", () => {
  const { lines, live, wait } = watched(true)
  for (let n = 0; n < 5000; n++) live.add({ ...fact("delivered", 1), id: `id-${n}` })
  expect(lines.length).toBeLessThan(100)
  wait(1000)
  live.tick()
  expect(lines.at(-1)).toContain("… and 4960 more")
})

test("a reason cannot carry terminal escapes", () => {
  const line = progressLine([fact("failed", 1, { status_reason: "\u001b[2Jno" })], paint)
  expect(line).toContain("(no)")
  expect(line).not.toContain("\u001b")
})
