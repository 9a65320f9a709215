import { expect, test } from "bun:test"
import { signInOutcome } from "../../src/messages/short-lived"
import { AUTH_SOURCE, type Message } from "../../src/messages/status-changes"
import { NO_REPLY, type Outcome } from "../../src/providers/provider"

const QUOTED = `550 no: https://b.test/a/belfry_magic_${"x".repeat(43)} and 492039`

const outcome: Outcome = {
  ...{ address: "ann@example.test", status: "bounced", reason: QUOTED, bounce_subtype: null },
  ...{ code: null, provider: "smtp", others: [], transcript: [`S: ${QUOTED}`] },
  reply: { ...NO_REPLY, smtp_code: 550, response: QUOTED },
  schedule: () => 3600,
}

test("an answer that quotes a sign-in message shows neither its link nor its code", () => {
  const { transcript: _, ...other } = outcome
  const whole = { ...outcome, others: [{ ...other, text: QUOTED }] }
  const shown = signInOutcome({ source: AUTH_SOURCE } as Message, whole)
  expect(JSON.stringify(shown)).not.toMatch(/belfry_magic|492039/)
  expect(shown.reply.response).toBe("550 no: https://b.test/a/•••• and ••••")
  expect(shown.schedule(1, 0)).toBe(600)
  expect(shown.schedule(2, 1)).toBeUndefined()
})

test("the outcome of any other message stays as it is", () => {
  expect(signInOutcome({ source: "api" } as Message, outcome)).toBe(outcome)
})
