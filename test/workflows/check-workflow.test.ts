import { afterAll, describe, expect, test } from "bun:test"
import { openWorkers } from "../../src/core/workers"
import { checkWorkflow } from "../../src/workflows/check-workflow"
import { sampleWorkflows } from "./sample-workflows"

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())

const at = (position: number) => ({ position })
const under = (parent_step_key: string, branch_path: string) => ({ parent_step_key, branch_path })
const step = (step_key: string, type: string, config: object, more: object = {}) => ({
  ...{ step_key, name: "A step", type, config, position: 0 },
  ...more,
})
const sms = (key: string, more: object = {}) => step(key, "sms", { body: "Hi" }, more)
const read = (key: string, step_key: string, more: object = {}) =>
  step(key, "branch", { step_key, condition: "read" }, more)
const rule = (key: string, more: object = {}) =>
  step(key, "branch", { rule: { field: "payload.a", op: "exists" } }, more)

const deep = (levels: number): object =>
  levels === 0 ? { field: "a", op: "exists" } : { not: deep(levels - 1) }
const many = (leaves: number) => ({ any: Array(leaves).fill({ field: "a", op: "exists" }) })

/** Steps, and the paths of what is wrong with them. */
const CASES: [string, object[], ...string[]][] = [
  ["two steps with one key", [sms("a"), sms("a", at(1))], "steps.1.step_key"],
  ["an unknown parent", [sms("a", under("b", "yes"))], "steps.0.parent_step_key"],
  ["a parent that is no branch", [sms("a"), sms("b", under("a", "no"))], "steps.1.parent_step_key"],
  ["no path", [rule("r"), sms("a", { parent_step_key: "r" })], "steps.1.branch_path"],
  ["a path without a parent", [sms("a", { branch_path: "yes" })], "steps.0.branch_path"],
  ["a branch below itself", [sms("a"), rule("r", under("r", "yes"))], "steps.1.parent_step_key"],
  [
    "a circle of two branches",
    [rule("r", under("q", "no")), rule("q", under("r", "yes"))],
    ...["steps.0.parent_step_key", "steps.1.parent_step_key"],
  ],
  ["the fact of an earlier step", [read("r", "a", at(1)), sms("a")]],
  ["the fact of an unknown step", [read("r", "a")], "steps.0.config.step_key"],
  ["the fact of a later step", [read("r", "a"), sms("a", at(1))], "steps.0.config.step_key"],
  ["the fact of no message", [rule("a"), read("r", "a", at(1))], "steps.1.config.step_key"],
  [
    "the fact of a step on the other path",
    [rule("r"), sms("a", under("r", "yes")), read("q", "a", under("r", "no"))],
    "steps.2.config.step_key",
  ],
  [
    "the fact of a step within an earlier branch",
    [rule("r"), sms("a", under("r", "yes")), read("q", "a", at(1)), sms("b", under("q", "yes"))],
  ],
  [
    "a delay of more than a year, and of a year",
    [
      step("a", "delay", { amount: 366, unit: "days" }),
      step("b", "delay", { amount: 8760, unit: "hours" }),
      step("c", "throttle", { limit: 1, window: { amount: 8761, unit: "hours" } }),
    ],
    ...["steps.0.config.amount", "steps.2.config.window.amount"],
  ],
  [
    "a rule of 5 levels and 50 comparisons",
    [sms("a", { conditions: deep(4) }), sms("b", { conditions: many(50) })],
  ],
  [
    "a rule of 6 levels, and one of 51 comparisons",
    [sms("a", { conditions: deep(5) }), step("b", "branch", { rule: many(51) })],
    ...["steps.0.conditions.not.not.not.not.not", "steps.1.config.rule.any.50"],
  ],
  [
    "no content",
    [step("a", "sms", {}), step("b", "email", { subject: "Hi", from: "a@b.test" })],
    "steps.0.config",
    "steps.1.config",
  ],
  [
    "wrong values in the form that was meant",
    [
      step("a", "push", { title: "a", body: "b", data: { a: 1, b: 2, c: 3, d: 4 } }),
      step("b", "email", { html: "a" }),
    ],
    ..."a b c d".split(" ").map((name) => `steps.0.config.data.${name}`),
    "steps.1.config.subject",
  ],
  [
    "texts that are too large, which are not compiled",
    [step("a", "event", { name: "e", data: { text: `{{${"x".repeat(16_384)}` } })],
    "steps.0.config.data",
  ],
  [
    "a subject and a title of two lines",
    [
      step("a", "email", { subject: "a\nb", html: "a\nb" }),
      step("b", "push", { title: "a\nb", body: "a\nb" }),
    ],
    ...["steps.0.config.subject", "steps.1.config.title"],
  ],
  ["no sender", [step("a", "email", { template_id: "t", from: "a@b@c" })], "steps.0.config.from"],
  [
    "texts that do not compile, of each step the first",
    [
      step("a", "email", { subject: "{{#if a}}", html: "{{", text: "fine" }),
      step("b", "delay", { until: "{{lookup a b}}" }),
      step("c", "event", { name: "e", data: { list: ["{{a}}", { deep: "{{/if}}" }] } }),
      step("d", "push", { title: "a", body: "b", data: { key: "{{{" } }),
    ],
    "steps.0.config.subject",
    ...["steps.1.config.until", "steps.2.config.data.list.1.deep", "steps.3.config.data.key"],
  ],
]

describe("A workflow", () => {
  test("that is right has no problems, and tells the names that its texts use", async () => {
    const checked = await Promise.all(sampleWorkflows.map((one) => checkWorkflow(workers, one)))
    expect(checked.flatMap(({ problems }) => problems)).toEqual([])
    expect(checked[0]?.names).toEqual(["payload.plan", "subscriber.name"])
  })

  for (const [name, steps, ...paths] of CASES) {
    test(`with ${name} has ${paths.length === 0 ? "no problem" : paths.join(", ")}`, async () => {
      const { problems } = await checkWorkflow(workers, { key: "a", name: "A", steps })
      expect(problems.map(({ path }) => path).sort()).toEqual(paths.sort())
    })
  }

  test("cannot have a key that is a part of other paths", async () => {
    const { problems } = await checkWorkflow(workers, { key: "bulk", name: "A", steps: [sms("a")] })
    expect(problems).toMatchObject([{ path: "key", code: "reserved" }])
  })
})
