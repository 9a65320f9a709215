import { expect, test } from "bun:test"
import { painter } from "../../../cli/lib/terminal"
import { messageText } from "../../../cli/tui/messages-screen"
import type { Components } from "../../../src/client/components"

const ID = "0199a1c2-0000-7000-8000-000000000001"

const copy = (email: string, status: string, status_reason: string | null) => ({
  ...{ email, kind: "cc", status, status_reason },
})

const linesOf = (fields: object) => {
  const email = {
    ...{ id: ID, from: { email: "me@acme.test", name: null }, timeline: [] },
    to: { email: "ann@acme.test", name: null },
    ...fields,
  } as unknown as Components["Email"]
  const text = messageText({ email, attempts: [] }, painter(false), 110, "Timeline") ?? ""
  return text.split("\n").map((line) => line.trim())
}

test("a message to a suppressed address shows why it is suppressed, and since when", () => {
  const message =
    "ann@acme.test is suppressed since 2026-11-20 (complaint). DELETE /v1/suppressions/x ends that."
  const error = { code: "suppressed_recipient", message, smtp_code: null, enhanced_code: null }
  const lines = linesOf({ status: "failed", status_reason: "suppressed_recipient", error })
  expect(lines[0]).toContain("(suppressed_recipient)")
  expect(lines.join(" ")).toContain("is suppressed since 2026-11-20 (complaint)")
})

test("a copy that was left out is named with its reason, and no other copy is", () => {
  const recipients = [
    { ...copy("ann@acme.test", "delivered", null), kind: "to" },
    copy("ben@acme.test", "delivered", null),
    copy("cay@acme.test", "failed", "suppressed_recipient"),
  ]
  const lines = linesOf({ status: "delivered", status_reason: null, recipients }).join("\n")
  expect(lines).toContain("cay@acme.test failed (suppressed_recipient)")
  expect(lines).not.toContain("ben@acme.test")
})
