import { expect, test } from "bun:test"
import { programsText } from "../../src/console/mail/describe-programs"

test("the systems of a program stand in one bracket", () => {
  const names = ["Gmail (webmail)", "Outlook.com", "Gmail (iOS)", "Outlook (Windows)"]
  expect(programsText(names)).toBe("Gmail (webmail, iOS), Outlook.com, Outlook (Windows)")
  expect(programsText([])).toBe("")
})
