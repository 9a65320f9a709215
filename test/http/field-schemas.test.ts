import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const project = await service.project()

/** As text, because a number of these can only be written in JSON. */
const withMetadata = (body: object, metadata: string) =>
  JSON.stringify({ ...body, metadata: "HERE" }).replace('"HERE"', metadata)

const hook = { url: "http://127.0.0.1:65000/", events: ["*"] }

const TAKERS: [string, (metadata: string) => Promise<Awaited<ReturnType<typeof project.post>>>][] =
  [
    ["an email", (metadata) => project.post("/v1/emails", withMetadata(mail(), metadata))],
    ["a webhook", (metadata) => project.post("/v1/webhooks", withMetadata(hook, metadata))],
    [
      "a change of a webhook",
      async (metadata) => {
        const { id } = (await project.post("/v1/webhooks", hook)).body.data
        const body = withMetadata({}, metadata)
        return project.call("PATCH", `/v1/webhooks/${id}`, { body })
      },
    ],
  ]

describe.each(TAKERS)("the metadata of %s", (_, take) => {
  test.each([
    "9007199254740993",
    "-9007199254740993",
    "9007199254740994",
    "12345678901234567890",
    "1e16",
    "1e999",
    "-1e999",
    '{"deep":[1,{"deeper":1e400}]}',
    "[9007199254740993]",
  ])("holds no number that JSON does not carry exactly: %s", async (number) => {
    const refused = await take(`{"fine":1,"order":${number}}`)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["metadata.order"])
  })

  test.each([
    "9007199254740992",
    "-9007199254740992",
    "9007199254740991",
    "1e15",
    "0.1",
    "-0.5e-300",
    '"9007199254740993"',
    '{"deep":[null,true,2]}',
  ])("keeps %s as it is", async (number) => {
    const made = await take(`{"order":${number}}`)
    expect(made.status).toBeLessThan(300)
    const path = made.body.data.url ? "webhooks" : "emails"
    const { body } = await project.get(`/v1/${path}/${made.body.data.id}`)
    expect(body.data.metadata).toEqual({ order: JSON.parse(number) })
  })
})

test("one item of a batch is refused for its numbers, and the others are sent", async () => {
  const bad = withMetadata(mail(), '{"order":9007199254740993}')
  const body = `{"messages":[${JSON.stringify(mail())},${bad}]}`
  const { data } = (await project.post("/v1/emails/batch", body)).body
  expect(data).toMatchObject({ succeeded: 1, failed: 1 })
  const [field] = data.results[1].error.details.fields
  expect(field.path).toMatch(/metadata\.order$/)
})
