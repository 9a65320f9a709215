import { afterAll, expect, test } from "bun:test"
import { openWorkers } from "../../src/core/workers"
import { checkWorkflow } from "../../src/workflows/check-workflow"

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())

/** A position, a parent with its path as "r yes", or other fields. */
type Place = number | string | object
const step = (step_key: string, type: string, config: object, place: Place = 0) => {
  const [parent_step_key, branch_path] = String(place).split(" ")
  const more = typeof place === "string" ? { parent_step_key, branch_path } : Object(place)
  return { step_key, name: "A step", type, config, position: Number(place) || 0, ...more }
}
const sms = (key: string, place?: Place) => step(key, "sms", { body: "Hi" }, place)
const email = (config: object) => step("email", "email", config)
const push = (config: object) => step("push", "push", { title: "a", body: "b", ...config })
const event = (data: object) => step("event", "event", { name: "e", data })
const delay = (config: object) => step("delay", "delay", config)
const branch = (key: string, config: object, place?: Place) => step(key, "branch", config, place)
const rule = (key: string, place?: Place) =>
  branch(key, { rule: { field: "payload.a", op: "exists" } }, place)
/** A branch by whether a message was read. */
const read = (step_key: string, place?: Place) =>
  branch("q", { step_key, condition: "read" }, place)

const deep = (levels: number): object =>
  levels === 0 ? { field: "a", op: "exists" } : { not: deep(levels - 1) }
const many = (leaves: number) => ({ any: Array(leaves).fill({ field: "a", op: "exists" }) })
const window = { amount: 8761, unit: "hours" }

/** Steps, and the paths of what is wrong with them. */
const CASES: [string, object[], ...string[]][] = [
  ["two steps with one key", [sms("a"), sms("a", 1)], "1.step_key"],
  ["an unknown parent", [sms("a", "b yes")], "0.parent_step_key"],
  ["a parent that is no branch", [sms("a"), sms("b", "a no")], "1.parent_step_key"],
  ["no path", [rule("r"), sms("a", { parent_step_key: "r" })], "1.branch_path"],
  ["a path without a parent", [sms("a", { branch_path: "yes" })], "0.branch_path"],
  ["a branch below itself", [sms("a"), rule("r", "r yes")], "1.parent_step_key"],
  ["a circle", [rule("r", "q no"), rule("q", "r yes")], "0.parent_step_key", "1.parent_step_key"],
  ["the fact of an earlier step", [read("a", 1), sms("a")]],
  ["the fact of an unknown step", [read("a")], "0.config.step_key"],
  ["the fact of a later step", [read("a"), sms("a", 1)], "0.config.step_key"],
  ["the fact of no message", [rule("a"), read("a", 1)], "1.config.step_key"],
  ["the other path's fact", [rule("r"), sms("a", "r yes"), read("a", "r no")], "2.config.step_key"],
  ["a fact in a branch", [rule("r"), sms("a", "r yes"), read("a", 1), sms("b", "q yes")]],
  ["more than a year", [delay({ amount: 366, unit: "days" })], "0.config.amount"],
  ["a year", [delay({ amount: 8760, unit: "hours" })]],
  ["a long window", [step("a", "throttle", { limit: 1, window })], "0.config.window.amount"],
  ["a rule of 5 levels", [sms("a", { conditions: deep(4) })]],
  ["a rule of 6 levels", [sms("a", { conditions: deep(5) })], "0.conditions.not.not.not.not.not"],
  ["50 comparisons", [sms("a", { conditions: many(50) })]],
  ["51 comparisons", [sms("a"), branch("b", { rule: many(51) })], "1.config.rule.any.50"],
  ["an SMS without content", [step("a", "sms", {})], "0.config"],
  ["an email without content", [email({ subject: "Hi", from: "a@b.test" })], "0.config"],
  ["what is too large to compile", [event({ a: `{{${"x".repeat(16_384)}` })], "0.config.data"],
  ["a subject of two lines", [email({ subject: "a\nb", html: "a\nb" })], "0.config.subject"],
  ["a title of two lines", [push({ title: "a\nb", body: "a\nb" })], "0.config.title"],
  ["no sender", [email({ template_id: "t", from: "a@b@c" })], "0.config.from"],
  [
    "wrong values in the form that was meant",
    [push({ data: { a: 1, b: 2, c: 3, d: 4 } }), email({ html: "a" })],
    ..."a b c d".split(" ").map((name) => `0.config.data.${name}`),
    "1.config.subject",
  ],
  [
    "texts that do not compile, of each step the first",
    [
      email({ subject: "{{#if a}}", html: "{{", text: "fine" }),
      delay({ until: "{{lookup a b}}" }),
      event({ list: ["{{a}}", { deep: "{{/if}}" }] }),
      push({ data: { key: "{{{" } }),
    ],
    "0.config.subject",
    ...["1.config.until", "2.config.data.list.1.deep", "3.config.data.key"],
  ],
]

test.each(CASES)(
  "each mistake in a workflow is told, and nothing else: %s",
  async (_, steps, ...paths) => {
    const { problems } = await checkWorkflow(workers, { key: "a", name: "A", steps })
    expect(problems.map(({ path }) => path).sort()).toEqual(paths.map((path) => `steps.${path}`))
  },
)

test("a workflow cannot have a key that is a part of other paths", async () => {
  const { problems } = await checkWorkflow(workers, { key: "bulk", name: "A", steps: [sms("a")] })
  expect(problems).toMatchObject([{ path: "key", code: "reserved" }])
})
