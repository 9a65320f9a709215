import { expect, test } from "bun:test"
import { type TSchema, Type as t } from "@sinclair/typebox"
import { Problems } from "../../src/core/problems"
import { MONTH, nameText, oneOf, orNull, slugText } from "../../src/http/field-schemas"
import { check } from "../../src/http/validate"

function problemsOf(schema: TSchema, value: unknown) {
  const problems = new Problems()
  check(schema, value, problems)
  return problems.list.map(({ path, code, message }) => [path, code, message])
}

const named = t.Object({ name: nameText(3), note: t.Optional(orNull(nameText(3))) })

test("lengths of texts count characters, not UTF-16 units", () => {
  expect(problemsOf(named, { name: "🔔🔔🔔", note: "🔔🔔🔔" })).toEqual([])
  expect(problemsOf(named, { name: "🔔🔔🔔🔔" })).toEqual([
    ["name", "invalid", "The value must have at most 3 characters."],
  ])
  expect(problemsOf(t.String({ minLength: 2 }), "🔔")).toEqual([
    ["body", "invalid", "The value must have at least 2 characters."],
  ])
})

test("the other rules of a bounded text stay", () => {
  expect(problemsOf(named, {})).toEqual([["name", "required", "The field is required."]])
  expect(problemsOf(named, { name: 5 })).toEqual([
    ["name", "invalid", "The value must be a string."],
  ])
  expect(problemsOf(named, { name: "", note: null })).toHaveLength(1)
  expect(problemsOf(named, { name: "a\nb" })).toHaveLength(1)
  expect(problemsOf(named, { name: "ok", note: "long one" })).toEqual([
    ["note", "invalid", "The value must have at most 3 characters."],
  ])
})

test("half a character is refused, never cleaned", () => {
  expect(problemsOf(named, { name: "a\ud83d" })).toHaveLength(1)
})

test("the published schema keeps its ordinary strings", () => {
  problemsOf(named, { name: "x" })
  expect(JSON.parse(JSON.stringify(named)).properties.name).toMatchObject({
    type: "string",
    maxLength: 3,
  })
})

const month = t.Object({ month: t.String({ pattern: MONTH }) })
const rate = t.Union([t.Integer({ minimum: 1, maximum: 9 }), t.Null()])
const sender = t.Union([t.String(), t.Object({ email: t.String() })])

test.each<[string, TSchema, unknown, string]>([
  ["a choice", oneOf("held", "none"), "all", "The value must be one of held, none."],
  ["a number in text", rate, "5", "The value must be a whole number."],
  ["a number that is too large", rate, 10, "The value must be from 1 to 9."],
  ["a number that is too small", t.Number({ minimum: 1 }), 0, "The value must be at least 1."],
  ["a word for a yes", t.Boolean(), "yes", "The value must be true or false."],
  [
    "a list that is empty",
    t.Array(t.String(), { minItems: 1 }),
    [],
    "The value must have at least 1 item.",
  ],
  [
    "a list that is too long",
    t.Array(t.Null(), { maxItems: 2 }),
    [null, null, null],
    "The value must have at most 2 items.",
  ],
  ["another version", t.Literal("v1"), "v2", "The value must be v1."],
  ["one of two forms", sender, 5, "The value must be a string or an object."],
  ["an empty name", nameText(), "", "The value must not be empty."],
  [
    "a name of two lines",
    nameText(),
    "a\nb",
    "The value must be one line without control characters.",
  ],
  ["a broken text", nameText(), "a\ud83d", "The value must not contain half of a surrogate pair."],
  [
    "a slug in capitals",
    slugText(),
    "Acme",
    "The value must have 1 to 63 characters: a-z, 0-9, and hyphens between them.",
  ],
  [
    "a code of its own form",
    t.String({ pattern: "^x$" }),
    "y",
    "The value must match the pattern ^x$.",
  ],
])("%s is told with what it must be", (_, schema, value, words) => {
  expect(problemsOf(schema, value)).toEqual([["body", "invalid", words]])
})

test("a pattern with a meaning is told by it", () => {
  const words = "The value must be a month, such as 2026-11."
  expect(problemsOf(month, { month: "2026-13" })).toEqual([["month", "invalid", words]])
})

test("the name of a field that the caller made up is told in part", () => {
  const problems = new Problems("messages.0.")
  problems.add(`metadata.${"k".repeat(10_000)}`, "invalid", "No.")
  const [path] = problems.list.map((problem) => problem.path)
  expect(path).toStartWith("messages.0.metadata.kkk")
  expect(path?.length).toBeLessThan(1000)
})
