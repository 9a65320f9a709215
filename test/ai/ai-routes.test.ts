import { expect, test } from "bun:test"
import { messages } from "../../src/messages/tables"
import { templates } from "../../src/templates/tables"
import { framesOf, orderOf, scriptedModel } from "../harness/ai-service"
import { refusal } from "../harness/client"
import { goodModel } from "../harness/model-answers"
import { sharedService } from "../harness/shared-service"

const model = await scriptedModel()
const service = await sharedService()
const project = await service.project()
model.script = goodModel

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
    const metadata = { source: "model", degraded: false }
    const data = { [part]: expect.anything(), metadata }
    expect(once).toMatchObject({ status: 200, body: { data } })

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
  const answers = CALLS.map(([name, body]) =>
    project.post(`/v1/ai/${name}`, { ...body, project_id }),
  )
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses).toEqual([503, 503, 503, 503, 200])
})
