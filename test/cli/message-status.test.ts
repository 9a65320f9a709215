import { expect, test } from "bun:test"
import { isBad, isFinal, isGood } from "../../cli/lib/email-text"
import { isOpen, statusesOf } from "../../src/messages/status-changes"
import type { ChannelName } from "../../src/messages/tables"

const CHANNELS: ChannelName[] = ["email", "push", "sms", "in_app"]
const ALL = [...new Set(CHANNELS.flatMap(statusesOf))]

test("every status of every channel has one mark: it waits, it is good, it is bad, or it was cancelled", () => {
  for (const status of ALL) {
    const marks = [isOpen(status), isGood(status), isBad(status), status === "cancelled"]
    expect([status, marks.filter(Boolean).length]).toEqual([status, 1])
  }
})

test("what waits or was only sent may still change", () => {
  expect(ALL.filter((status) => !isFinal(status)).sort()).toEqual(["queued", "sending", "sent"])
})
