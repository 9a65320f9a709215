import { describe, expect, test } from "bun:test"
import { matches, parseRule, type Rule } from "../../src/lib/filter-rule"
import fc from "../harness/properties"

const subject = {
  id: "evt_1",
  type: "email.bounced",
  data: {
    recipient_email: "ann@example.com",
    bounce_type: null,
    total: 12.5,
    first: true,
    tags: ["vip", 7, null],
    items: [{ sku: "a" }, { sku: "b" }],
    "10": "ten",
    empty: "",
  },
}

const holds = (field: string, op: string, value?: unknown) => {
  const rule = parseRule(value === undefined ? { field, op } : { field, op, value })
  if ("problem" in rule) throw new Error(JSON.stringify(rule.problem))
  return matches(rule, subject)
}

const problemOf = (value: unknown) => {
  const rule = parseRule(value)
  return "problem" in rule ? rule.problem : undefined
}

describe("a comparison holds", () => {
  test.each([
    ["type", "eq", "email.bounced"],
    ["data.total", "eq", 12.5],
    ["data.first", "eq", true],
    ["data.bounce_type", "eq", null],
    ["data.items.1.sku", "eq", "b"],
    ["data.10", "eq", "ten"],
    ["type", "ne", "email.sent"],
    ["data.total", "gt", 12],
    ["data.total", "gte", 12.5],
    ["data.total", "lt", 13],
    ["data.total", "lte", 12.5],
    ["id", "gt", "evt_0"],
    ["type", "in", [1, "email.bounced"]],
    ["data.bounce_type", "in", [null]],
    ["type", "nin", ["email.sent", 5]],
    ["data.recipient_email", "contains", "@example.com"],
    ["data.empty", "contains", ""],
    ["data.tags", "contains", "vip"],
    ["data.tags", "contains", 7],
    ["data.tags", "contains", null],
    ["type", "starts_with", "email."],
    ["data.total", "exists", true],
    ["data.total", "exists", undefined],
    ["data.empty", "exists", true],
    ["data.bounce_type", "exists", false],
    ["data.none", "exists", false],
  ])("%s %s %j", (field, op, value) => expect(holds(field, op, value)).toBe(true))
})

describe("a comparison does not hold", () => {
  test.each([
    ["type", "eq", "email.sent"],
    ["type", "ne", "email.bounced"],
    ["data.total", "gt", 12.5],
    ["data.total", "lt", 12.5],
    ["type", "in", ["email.sent"]],
    ["type", "nin", ["email.bounced"]],
    ["type", "starts_with", "mail"],
    ["type", "contains", "x"],
    ["data.tags", "contains", "vi"],
    ["data.total", "exists", false],
    ["data.bounce_type", "exists", true],
  ])("%s %s %j", (field, op, value) => expect(holds(field, op, value)).toBe(false))

  test.each([
    ["data.total", "eq", "12.5"],
    ["data.total", "ne", "12.5"],
    ["data.first", "eq", "true"],
    ["data.first", "eq", 1],
    ["data.bounce_type", "eq", false],
    ["data.bounce_type", "ne", "Permanent"],
    ["data.total", "gt", "1"],
    ["type", "lt", 5],
    ["data.first", "gte", 0],
    ["data.bounce_type", "lte", 0],
    ["data.total", "in", ["12.5"]],
    ["data.total", "nin", ["12.5"]],
    ["data.total", "contains", "2"],
    ["type", "contains", 7],
    ["data.items", "contains", "a"],
    ["data.tags", "starts_with", "vip"],
    ["data", "eq", "[object Object]"],
  ])("between different types: %s %s %j", (field, op, value) =>
    expect(holds(field, op, value)).toBe(false),
  )

  test.each([
    ["data.none", "eq", null],
    ["data.none", "ne", "x"],
    ["data.none", "nin", ["x"]],
    ["data.total.more", "ne", "x"],
    ["type.length", "gt", 0],
    ["data.tags.length", "gt", 0],
    ["data.tags.-1", "exists", true],
    ["constructor.name", "eq", "Object"],
    ["__proto__.toString", "exists", true],
    ["data.__proto__", "exists", true],
  ])("with what is not there: %s %s %j", (field, op, value) =>
    expect(holds(field, op, value)).toBe(false),
  )
})

describe("rules of rules", () => {
  const yes = { field: "type", op: "exists" } as const
  const no = { field: "none", op: "exists" } as const

  test.each<[Rule, boolean]>([
    [{ all: [yes, yes] }, true],
    [{ all: [yes, no] }, false],
    [{ any: [no, yes] }, true],
    [{ any: [no, no] }, false],
    [{ not: no }, true],
    [{ not: yes }, false],
    [{ all: [{ any: [no, { not: no }] }, yes] }, true],
  ])("%j is %p", (rule, truth) => {
    expect(parseRule(rule)).toEqual(rule)
    expect(matches(rule, subject)).toBe(truth)
  })
})

describe("what is no rule says where", () => {
  const leaf = { field: "a", op: "eq", value: 1 }

  test.each<[unknown, string]>([
    [null, ""],
    ["x", ""],
    [[leaf], ""],
    [{}, "field"],
    [{ all: [] }, "all"],
    [{ any: leaf }, "any"],
    [{ not: [leaf] }, "not"],
    [{ all: [leaf], any: [leaf] }, "any"],
    [{ all: [leaf, { field: "a", op: "is", value: 1 }] }, "all.1.op"],
    [{ any: [{ not: { op: "eq", value: 1 } }] }, "any.0.not.field"],
    [{ ...leaf, field: "" }, "field"],
    [{ ...leaf, field: "a..b" }, "field"],
    [{ ...leaf, field: "a.".repeat(200).slice(0, -1) }, "field"],
    [{ ...leaf, op: "constructor" }, "op"],
    [{ ...leaf, op: ["eq"] }, "op"],
    [{ field: "a", op: "eq" }, "value"],
    [{ ...leaf, value: { a: 1 } }, "value"],
    [{ ...leaf, value: [1] }, "value"],
    [{ ...leaf, op: "gt", value: true }, "value"],
    [{ ...leaf, op: "in", value: 1 }, "value"],
    [{ ...leaf, op: "in", value: [] }, "value"],
    [{ ...leaf, op: "nin", value: [[1]] }, "value"],
    [{ ...leaf, op: "in", value: new Array(101).fill(1) }, "value"],
    [{ ...leaf, op: "starts_with", value: 1 }, "value"],
    [{ ...leaf, op: "exists", value: "yes" }, "value"],
    [{ ...leaf, extra: 1 }, "extra"],
  ])("%j", (value, path) => {
    const problem = problemOf(value)
    expect(problem?.path).toBe(path)
    expect(problem?.message).toMatch(/^[A-Z].*\.$/)
  })

  test("five levels are a rule, six are none", () => {
    const nested = (levels: number): unknown => (levels === 1 ? leaf : { not: nested(levels - 1) })
    expect(problemOf(nested(5))).toBeUndefined()
    expect(problemOf(nested(6))).toMatchObject({ path: "not.not.not.not.not" })
    expect(problemOf(nested(5000))).toMatchObject({ path: "not.not.not.not.not" })
  })

  test("fifty comparisons are a rule, however they are spread, and fifty-one none", () => {
    const leaves = (count: number) => Array.from({ length: count }, () => leaf)
    expect(problemOf({ any: [{ all: leaves(25) }, { all: leaves(25) }] })).toBeUndefined()
    const many = { any: [{ all: leaves(25) }, { all: leaves(26) }] }
    expect(problemOf(many)).toMatchObject({ path: "any.1.all.25" })
  })
})

describe("whatever comes", () => {
  const scalar = fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null))
  const field = fc.constantFrom("a", "b", "a.b", "a.0", "b.a.c", "0")
  const comparison = fc.oneof(
    fc.record({ field, op: fc.constantFrom("eq", "ne", "contains"), value: scalar }),
    fc.record({
      field,
      op: fc.constantFrom("gt", "gte", "lt", "lte"),
      value: fc.oneof(fc.string(), fc.double({ noNaN: true })),
    }),
    fc.record({
      field,
      op: fc.constantFrom("in", "nin"),
      value: fc.array(scalar, { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ field, op: fc.constant("exists"), value: fc.boolean() }),
  )
  const value = fc.oneof(scalar, fc.jsonValue(), fc.record({ a: fc.jsonValue(), b: scalar }))

  test("no value from outside makes the parser throw anything", () => {
    fc.assert(fc.property(fc.anything({ withNullPrototype: true }), (any) => void parseRule(any)))
  })

  test("a rule that was read answers true or false, and its negation the opposite", () => {
    fc.assert(
      fc.property(comparison, value, (leaf, any) => {
        const rule = parseRule(leaf)
        if ("problem" in rule) throw new Error(rule.problem.message)
        expect(matches({ not: rule }, any)).toBe(!matches(rule, any))
      }),
    )
  })

  test("all and any obey De Morgan", () => {
    fc.assert(
      fc.property(fc.array(comparison, { minLength: 1, maxLength: 4 }), value, (leaves, any) => {
        const rules = leaves as Rule[]
        const nots = rules.map((rule) => ({ not: rule }))
        expect(matches({ not: { all: rules } }, any)).toBe(matches({ any: nots }, any))
        expect(matches({ not: { any: rules } }, any)).toBe(matches({ all: nots }, any))
      }),
    )
  })

  test("of eq and ne exactly one holds between values of one type, and none between two", () => {
    fc.assert(
      fc.property(scalar, scalar, (found, wanted) => {
        const kind = (one: unknown) => (one === null ? "null" : typeof one)
        const eq = matches({ field: "a", op: "eq", value: wanted }, { a: found })
        const ne = matches({ field: "a", op: "ne", value: wanted }, { a: found })
        expect(Number(eq) + Number(ne)).toBe(kind(found) === kind(wanted) ? 1 : 0)
      }),
    )
  })

  test("order is that of numbers and of texts", () => {
    const pair = fc.oneof(
      fc.tuple(fc.double({ noNaN: true }), fc.double({ noNaN: true })),
      fc.tuple(fc.string(), fc.string()),
    )
    fc.assert(
      fc.property(pair, ([found, wanted]) => {
        const is = (op: "gt" | "gte" | "lt" | "lte") =>
          matches({ field: "a", op, value: wanted }, { a: found })
        expect([is("gt"), is("gte"), is("lt"), is("lte")]).toEqual([
          found > wanted,
          found >= wanted,
          found < wanted,
          found <= wanted,
        ])
      }),
    )
  })
})
