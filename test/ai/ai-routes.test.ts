import { afterAll, expect, test } from "bun:test"
import { messages } from "../../src/messages/tables"
import { templates } from "../../src/templates/tables"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { refusal } from "../harness/client"
import { goodModel } from "../harness/model-answers"
import { testService } from "../harness/service"

const model = await scriptedModel()
const service = await testService()
const project = await service.project()
model.script = goodModel
afterAll(() => service[Symbol.asyncDispose]())

const { project_id } = project
const channel = "email"
const CALLS: [name: string, body: object, part: string][] = [
  ["subjects/suggest", { channel, template_body: "<p>Hello</p>" }, "suggestions"],
  ["templates/draft", { channel, brief: "Welcome people." }, "template"],
  [
    "templates/rewrite",
    { channel, block: { type: "paragraph", content: "Hi" }, instruction: "Longer." },
    "block",
  ],
  ["workflows/generate", { description: "Stop at once." }, "workflow"],
  ["broadcasts/analyze", { draft: { channel, subject: "Hello", body: "<p>Hi</p>" } }, "advisory"],
]

const stored = async () => {
  const { read } = service.store
  return [...(await read.select().from(templates)), ...(await read.select().from(messages))]
}

test.each(CALLS)(
  "%s answers once and as a stream, for its own project alone, and stores nothing",
  async (name, body, part) => {
    const path = `/v1/ai/${name}`
    const once = await project.post(path, { ...body, project_id })
    expect([once.text.slice(0, 300), once.status]).toEqual([expect.anything(), 200])
    expect(Object.keys(once.body.data)).toContain(part)
    expect(once.body.data.metadata).toMatchObject({ source: "model", degraded: false })

    const accept = "text/event-stream"
    const streamed = await project.post(path, { ...body, project_id }, { accept })
    if (name !== "subjects/suggest") {
      const frames = framesOf(streamed.text)
      expect(orderOf(frames).join(" ")).toMatch(/^token (variables_validated )?complete done$/)
      expect(frames.at(-2)?.data[part]).toEqual(once.body.data[part])
    }
    const other = await project.post(path, { ...body, project_id: service.parts.base_url() })
    expect(refusal(other)).toEqual([403, "forbidden"])
    expect(await stored()).toEqual([])
    expect(model.problems).toEqual([])
  },
)

test("only an analysis works without a gateway", async () => {
  model.configure({})
  for (const [name, body] of CALLS) {
    const answer = await project.post(`/v1/ai/${name}`, { ...body, project_id })
    const by_rules = name === "broadcasts/analyze"
    expect([name, answer.status]).toEqual([name, by_rules ? 200 : 503])
    if (by_rules)
      expect(answer.body.data.metadata).toMatchObject({ source: "rules", degraded: true })
  }
})
