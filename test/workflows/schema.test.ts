import { expect, test } from "bun:test"
import Ajv from "ajv/dist/2020"
import { Problems } from "../../src/core/errors"
import { checkForm, workflowSchema } from "../../src/workflows/schema"
import { DEBIAN_PYTHON, missingModules } from "../harness/peers"
import fc from "../harness/properties"
import { sizes } from "../harness/sizes"
import { sampleWorkflows } from "./sample-workflows"

type Node = Record<string, unknown>

const RULE = { field: "payload.a", op: "eq", value: 1 }
const VALUES = [
  ...[null, true, 0, 1, -1, 0.5, 51, 1000, 1001, 10_000, 10_001, "", "a", "A", "-a", "a.b", "a..b"],
  ..."mon yes stop email sms replied days hours 24:00 09:00 9:00 in high batch".split(" "),
  ...["\u0000", "a\tb", "😀".repeat(100), "x".repeat(64), "x".repeat(65), "x".repeat(101)],
  ...[[], ["a"], [null], Array(11).fill("a"), {}, { a: 1 }, { type: "object" }, { at: "09:00" }],
  ...[{ amount: 1, unit: "days" }, { email: "a@b.test" }, RULE, { not: RULE }, { all: [] }],
  ...[{ any: [RULE, RULE] }, { ...RULE, op: "in" }, { ...RULE, op: "gt", value: "b" }],
]
const NAMES = "extra rule value within branch_path conditions text days __proto__".split(" ")

const mistake = fc.record({
  kind: fc.constantFrom("drop", "replace", "replace", "add", "swap", "repeat"),
  place: fc.nat(),
  other: fc.nat(),
  value: fc.constantFrom(...VALUES),
  name: fc.constantFrom(...NAMES),
})
type Mistake = typeof mistake extends fc.Arbitrary<infer One> ? One : never
const mutated = fc
  .tuple(fc.constantFrom(...sampleWorkflows), fc.array(mistake, { minLength: 1, maxLength: 2 }))
  .map(([workflow, mistakes]) => {
    const changed = structuredClone({ workflow }) as Node
    for (const one of mistakes) make(changed, one)
    return JSON.parse(JSON.stringify(changed)).workflow as unknown
  })

/** Every member of every object and list, as what holds it and its name. */
const placesIn = (node: unknown): [Node, string][] =>
  typeof node !== "object" || node === null
    ? []
    : Object.entries(node).flatMap(([name, inner]) => [[node as Node, name], ...placesIn(inner)])

const FREE = { enumerable: true, configurable: true, writable: true }

function make(root: Node, { kind, place, other, value, name }: Mistake) {
  const places = placesIn(root)
  const [holder, at] = places[place % places.length] ?? [root, "workflow"]
  const [otherHolder, otherAt] = places[other % places.length] ?? [root, "workflow"]
  const set = (key: string, given: unknown) =>
    Object.defineProperty(holder, key, { ...FREE, value: structuredClone(given) })
  if (kind === "drop" && Array.isArray(holder)) holder.splice(Number(at), 1)
  else if (kind === "drop") delete holder[at]
  else if (kind === "replace") set(at, value)
  else if (kind === "swap") set(at, otherHolder[otherAt])
  else if (kind === "repeat" && Array.isArray(holder))
    holder.push(...Array(50).fill(holder[Number(at)]))
  else if (!Array.isArray(holder)) set(name, value)
}

const PYTHON = `
import json, sys, warnings
warnings.simplefilter("ignore")
import jsonschema
given = json.load(sys.stdin)
judge = jsonschema.Draft202012Validator(given["schema"])
json.dump([judge.is_valid(one) for one in given["cases"]], sys.stdout)
`

const ajv = new Ajv({ allowUnionTypes: true }).compile(workflowSchema)
const ours = (workflow: unknown) => {
  const problems = new Problems()
  checkForm(workflow, problems)
  return problems.list
}

test("the schema finds nothing wrong in right workflows", () => {
  for (const one of sampleWorkflows)
    expect([ours(one), ajv(one), ajv.errors]).toEqual([[], true, null])
})

const cannotCompare = missingModules("jsonschema")
test.skipIf(cannotCompare)("the schema judges as two other judges of JSON Schema do", () => {
  const cases = fc.sample(mutated, { numRuns: sizes.workflows, seed: 33 })
  const stdin = Buffer.from(JSON.stringify({ schema: workflowSchema, cases }))
  const { stdout } = Bun.spawnSync([DEBIAN_PYTHON, "-c", PYTHON], { stdin, stderr: "inherit" })
  const python: boolean[] = JSON.parse(stdout.toString())
  const verdicts = cases.map((one) => ours(one).length === 0)
  const unlike = cases.filter((one, at) => verdicts[at] !== ajv(one) || ajv(one) !== python[at])
  expect(unlike).toEqual([])
  const right = verdicts.filter(Boolean).length
  expect(right).toBeGreaterThan(cases.length / 20)
  expect(right).toBeLessThan(cases.length / 2)
})
