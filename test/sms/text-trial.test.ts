import { expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import type { TrialSubject } from "../../src/providers/try-provider"
import { type OutgoingText, type TextMeaning, textOutcome } from "../../src/sms/providers/provider"
import { textTrial } from "../../src/sms/text-trial"

/** What is found when the provider says this of the text. */
async function tried(meaning: TextMeaning) {
  const row = { provider: "http", name: "gateway" }
  const subject = { row, project_id: newId() } as TrialSubject
  const trial = await textTrial(undefined, subject, "+436601234567")
  const send = async (text: OutgoingText) => textOutcome("http", text, { meaning, said: "silence" })
  return trial({ name: "http", send } as never)
}

test("a text that a provider took is a success, and one that nobody answered for is none", async () => {
  expect(await tried("sent")).toStartWith("It accepted a text to +436601234567")
  expect(tried("unconfirmed")).rejects.toMatchObject({ fault: "connection", message: "silence" })
})
