import { afterAll, describe, expect, test } from "bun:test"
import { ApiError } from "../../src/core/errors"
import { openWorkers } from "../../src/core/workers"
import { checkTransform, renderTransform } from "../../src/webhooks/delivery-body"
import { quietLog } from "../harness/quiet"

quietLog()

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())

const envelope = {
  id: "evt_1",
  type: "email.bounced",
  data: { subject: 'He said "hi"\n\\o/', bounce_type: null, tags: ["a", 1], nested: { a: [true] } },
}

describe("a transform", () => {
  test.each([
    ['{"text": "{{type}}: {{data.subject}}"}', { text: 'email.bounced: He said "hi"\n\\o/' }],
    ['{"all": {{json this}} }', { all: envelope }],
    ['{"tags": {{json data.tags}}, "n": {{json data.bounce_type}} }', { tags: ["a", 1], n: null }],
    ["  [1]\n", [1]],
    ['"{{id}}"', "evt_1"],
    ['{{#if data.tags}}{"tagged": true}{{else}}{}{{/if}}', { tagged: true }],
  ])("%s gives a JSON body", async (source, body) => {
    await checkTransform(workers, source)
    const text = await renderTransform(workers, source, envelope)
    expect(text?.trim()).toBe(text)
    expect(JSON.parse(text ?? "")).toEqual(body)
  })

  test.each([
    ["plain words"],
    [""],
    ['{"a": {{type}} }'],
    ['{"a": "{{{data.subject}}}"}'],
    ['{"a": "{{missing}}"}'],
    ['{"a": {{json}} }'],
    ['{"a": "{{data.nested}}"}'],
    ["{{#each @root.data.tags}}".repeat(40) + "{{/each}}".repeat(40)],
  ])("%s gives none", async (source) => {
    expect(await renderTransform(workers, source, envelope)).toBeUndefined()
  })

  test("that the pool could not take is no failed one", async () => {
    const closed = openWorkers({ size: 1 })
    await closed.close()
    const work = renderTransform(closed, "{}", envelope)
    expect(await work.catch((error: unknown) => error)).toMatchObject({
      code: "service_unavailable",
    })
  })
})

test.each([
  ['{"a": {{#if b}} }', "syntax", 1],
  ['{\n"a": "{{shout b}}"}', "syntax", 2],
  ["x".repeat(262_145), "too_large", null],
])("what can never render is refused with its place", async (source, reason, line) => {
  const error = await checkTransform(workers, source).catch((thrown: unknown) => thrown)
  if (!(error instanceof ApiError)) throw new Error("was not refused")
  expect([error.code, error.status]).toEqual(["invalid_template", 422])
  expect(error.details).toMatchObject({ field: "transform", reason, line })
})
