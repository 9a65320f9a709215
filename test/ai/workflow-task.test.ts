import { afterAll, describe, expect, test } from "bun:test"
import { workflowTask } from "../../src/ai/workflow-task"
import { openWorkers } from "../../src/core/workers"
import { projectCaller } from "../../src/identity/caller"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { sharedService } from "../harness/shared-service"
import { sampleWorkflows } from "../workflows/sample-workflows"

const { store, project: newProject } = await sharedService()
const workers = openWorkers({ size: 1 })
const model = await scriptedModel()
afterAll(() => workers.close())

const project = await newProject()
const ann = { external_id: "u-1", email: "ann@example.com", name: "Ann Huber" }
await project.post("/v1/subscribers", { ...ann, metadata: { plan: "CANARY-VALUE" } })
const caller = (await projectCaller(store.read, project.project_id)) ?? expect.unreachable()
const task = await workflowTask({ store, workers }, caller, { description: "Greet them." })

const email = (html: string) => ({
  ...{ step_key: "a", name: "Hello", type: "email", position: 0 },
  config: { subject: "Hello {{subscriber.nmae}}", html },
})
const workflow = (steps: unknown, more: object = {}) => ({
  workflow: { key: "hello", name: "Hello", steps, ...more },
})
const total = { type: "object", properties: { total: { type: "number" } } }

describe("A workflow of a model", () => {
  test("is asked for with the names of the project, and without a value of a person", () => {
    const { user, system } = task.prompt
    expect(user).toContain("| subscriber.name")
    expect(user).toContain("[begin description]\n| Greet them.\n[end description]")
    expect(user + system).not.toMatch(/ann|huber|CANARY/i)
  })

  test("is the result where it is right", async () => {
    for (const workflow of sampleWorkflows)
      expect((await task.read({ workflow })).complete).toEqual({ workflow })
  })

  test("has its near misses corrected, and tells what is unknown", async () => {
    const html = "<p>{{payload.totl}} {{payload.other}} {{coupon}} {{digest.count}}</p>"
    const { complete, variables } = await task.read(
      workflow([email(html)], { trigger_schema: total }),
    )
    const config = { subject: "Hello {{subscriber.name}}", html: html.replace("totl", "total") }
    expect(complete).toMatchObject({ workflow: { steps: [{ config }] } })
    expect(variables?.unknown).toEqual(["coupon", "payload.other"])
    expect(variables?.corrected).toEqual([
      { from: "payload.totl", to: "payload.total" },
      { from: "subscriber.nmae", to: "subscriber.name" },
    ])
    const free = await task.read(workflow([email("{{payload.anything}}")])) // without a schema
    expect(free.variables?.unknown).toEqual([])
  })

  test("is refused with the path of each mistake", async () => {
    const hostile = JSON.parse('{"key": "a", "name": "A", "steps": [], "__proto__": {"a": 1}}')
    const cases: [unknown, ...string[]][] = [
      ...[null, [], {}, { workflow: "x" }].map((one): [unknown, string] => [one, "body"]),
      [workflow([]), "steps"],
      [{ workflow: hostile }, "__proto__", "steps"],
      [workflow([email("x"), email("x")]), "steps.1.step_key"],
      [workflow([email("<script>alert(1)</script>")]), "steps.0.config.html"],
      [workflow([email("{{#with (lookup this 'constructor')}}{{/with}}")]), "steps.0.config.html"],
      [workflow([email("x")], { id: "1" }), "id"],
    ]
    for (const [output, ...paths] of cases) {
      const error = await task.read(output).catch((thrown) => thrown)
      const fields = expect.arrayContaining(paths.map((path) => expect.objectContaining({ path })))
      expect(error).toMatchObject({ code: "ai_workflow_invalid", status: 502, details: { fields } })
    }
  })

  test("is answered by the route in both modes, and a refusal has the path of each mistake", async () => {
    const path = "/v1/ai/workflows/generate"
    const body = { project_id: project.project_id, description: "Greet them." }
    const [right] = sampleWorkflows
    model.script = { pieces: ["```json\n", JSON.stringify({ workflow: right }), "\n```"] }
    const { status, body: said } = await project.post(path, body)
    expect([status, said.data.workflow, said.data.metadata.tier]).toEqual([200, right, "deep"])
    expect(said.variables.detected).toEqual(["payload.plan", "subscriber.name"])
    model.script = { pieces: [JSON.stringify(workflow([]))] }
    const headers = { accept: "text/event-stream" }
    const frames = framesOf((await project.call("POST", path, { body, headers })).text)
    expect(orderOf(frames)).toEqual(["token", "error", "done"])
    const details = { fields: [{ path: "steps" }] }
    expect(frames.at(-2)?.data).toMatchObject({ code: "ai_workflow_invalid", details })
    expect(model.problems).toEqual([])
  })
})
