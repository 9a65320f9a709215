import { expect, test } from "bun:test"
import { isoFrom, millisFrom } from "../../../src/core/time"
import { dueAt } from "../../../src/operations/backup/backup-state"

const state = {
  since: "2026-11-20T10:00:00.000Z",
  job_id: null,
  started_at: null,
  succeeded_at: null,
  failing_since: null,
  told_at: null,
}
const ran = { ...state, started_at: "2026-11-23T02:00:00.000Z" }

const due = (schedule: string, of: typeof state | typeof ran) => {
  const at = dueAt(schedule, of)
  return at === undefined ? undefined : isoFrom(at).slice(0, 16)
}

test("periods count from the last backup, and from an hour after the beginning", () => {
  expect(due("hourly", state)).toBe("2026-11-20T11:00")
  expect(due("weekly", state)).toBe("2026-11-20T11:00")
  expect(due("hourly", ran)).toBe("2026-11-23T03:00")
  expect(due("daily", ran)).toBe("2026-11-24T02:00")
  expect(due("weekly", ran)).toBe("2026-11-30T02:00")
  expect(due("off", ran)).toBeUndefined()
})

test("a time of day is its next one after the last backup", () => {
  expect(due("03:30", ran)).toBe("2026-11-23T03:30")
  expect(due("02:00", ran)).toBe("2026-11-24T02:00")
  expect(due("01:59", ran)).toBe("2026-11-24T01:59")
  expect(due("09:00", state)).toBe("2026-11-21T09:00")
})

test("after a failure the next try is an hour later, or on the schedule if that is sooner", () => {
  const failing = { ...ran, failing_since: "2026-11-22T02:00:00.000Z" }
  expect(due("daily", failing as never)).toBe("2026-11-23T03:00")
  expect(due("02:30", failing as never)).toBe("2026-11-23T02:30")
  expect(millisFrom(failing.failing_since)).toBeLessThan(millisFrom(failing.started_at))
})
