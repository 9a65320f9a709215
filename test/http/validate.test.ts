import { expect, test } from "bun:test"
import { type TSchema, Type as t } from "@sinclair/typebox"
import { Problems } from "../../src/http/problems"
import { nameText, orNull } from "../../src/http/texts"
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
    ["name", "invalid", "Expected string length less or equal to 3."],
  ])
  expect(problemsOf(t.String({ minLength: 2 }), "🔔")).toEqual([
    ["body", "invalid", "Expected string length greater or equal to 2."],
  ])
})

test("the other rules of a bounded text stay", () => {
  expect(problemsOf(named, {})).toEqual([["name", "required", "The field is required."]])
  expect(problemsOf(named, { name: 5 })).toEqual([["name", "invalid", "Expected string."]])
  expect(problemsOf(named, { name: "", note: null })).toHaveLength(1)
  expect(problemsOf(named, { name: "a\nb" })).toHaveLength(1)
  expect(problemsOf(named, { name: "ok", note: "long one" })).toEqual([
    ["note", "invalid", "Expected string length less or equal to 3."],
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
