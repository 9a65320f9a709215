import { expect, test } from "bun:test"
import { parseFilter } from "../../../cli/tui/filter"
import { NOW, row } from "./rows"

function finds(text: string, more: Parameters<typeof row>[0] = {}): boolean {
  const filter = parseFilter(text)
  if ("problem" in filter) throw new Error(filter.problem)
  return filter.matches(row(more), NOW)
}

const problem = (text: string) => {
  const filter = parseFilter(text)
  return "problem" in filter ? filter.problem : undefined
}

test("every word must hold", () => {
  const bounced = { status: "bounced", to: "bob@nope.test", tags: ["billing"] }
  expect(finds("status:bounced to:*@nope.test tag:billing", bounced)).toBe(true)
  expect(finds("status:bounced to:*@nope.test tag:other", bounced)).toBe(false)
  expect(finds("", bounced)).toBe(true)
})

test("a word without a name is looked for in address and subject, whatever its case", () => {
  expect(finds("receipt", { subject: "Your RECEIPT" })).toBe(true)
  expect(finds("ANN@", { to: "ann@mailbox.test" })).toBe(true)
  expect(finds("receipt", { subject: "Reset" })).toBe(false)
})

test("a star stands for anything, and everything else for itself", () => {
  expect(finds("to:*@a.test", { to: "x@a.test" })).toBe(true)
  expect(finds("to:*@a.test", { to: "x@aXtest" })).toBe(false)
  expect(finds("to:a+b@c.test", { to: "a+b@c.test" })).toBe(true)
  expect(finds("to:(", { to: "(" })).toBe(true)
  expect(finds("tag:bill*", { tags: ["other", "billing"] })).toBe(true)
})

test("part of the text is enough behind a name, too", () => {
  expect(finds("to:ann", { to: "joann@mailbox.test" })).toBe(true)
  expect(finds("tag:bill", { tags: ["billing"] })).toBe(true)
  expect(finds("subject:CEIP", { subject: "Your receipt" })).toBe(true)
  expect(finds("to:ann*", { to: "joann@mailbox.test" })).toBe(false)
})

test("a template is found by its name and by its id", () => {
  const template = ["receipt", "019a0000-0000-7000-8000-000000000001"]
  for (const word of ["template:receipt", "template:rec*", "template:019a0000-0000-7000"]) {
    expect(finds(word, { template })).toBe(true)
    expect(finds(word, { template: ["welcome", "019b"] })).toBe(false)
    expect(finds(word, { template: [] })).toBe(false)
  }
  expect(parseFilter("template:receipt")).toMatchObject({ query: { template_id: "receipt" } })
  expect(parseFilter("template:rec*")).toMatchObject({ query: {} })
})

test("several statuses are one or the other, and a minus turns a word around", () => {
  expect(finds("status:failed,bounced", { status: "bounced" })).toBe(true)
  expect(finds("-status:delivered", { status: "bounced" })).toBe(true)
  expect(finds("-status:delivered", { status: "delivered" })).toBe(false)
  expect(finds("-receipt", { subject: "Your receipt" })).toBe(false)
})

test("since counts back from now", () => {
  expect(finds("since:1h", { created_at: NOW - 59 * 60_000 })).toBe(true)
  expect(finds("since:1h", { created_at: NOW - 61 * 60_000 })).toBe(false)
})

test("what cannot be understood is said, not guessed", () => {
  expect(problem("colour:red")).toContain("there is no filter colour")
  expect(problem("status:lost")).toContain("there is no status lost")
  expect(problem("since:yesterday")).toContain("not a time span")
  expect(problem("tag:")).toBe("tag: give a value")
  expect(problem("status:sent to:x@y.test")).toBeUndefined()
})

test("the server is asked only for what it understands in the same way", () => {
  const asked = (text: string) => {
    const filter = parseFilter(text)
    return "problem" in filter ? undefined : filter.query
  }
  expect(asked("status:bounced tag:y to:x@y.test since:1h")).toEqual({
    status: "bounced",
    tag: "y",
    to: "x@y.test",
    since: "1h",
  })
  expect(asked("status:bounced,failed to:*@y.test -tag:y word")).toEqual({})
})
