import { describe, expect, test } from "bun:test"
import { type AppParts, routeTable } from "../../src/app"
import { Problems } from "../../src/core/errors"
import { builtEventTypes } from "../../src/events/registry"
import type { Operation } from "../../src/http/openapi"
import { isDescribed } from "../../src/http/route"
import { refusing } from "../../src/http/unknown-fields"
import { readBody } from "../../src/http/validate"
import { type JsonSchema, judges } from "../harness/json-schema"
import { published } from "../harness/published"

const description = await published()
const validatorOf = judges(description)
const table = routeTable({} as AppParts).filter(isDescribed)

interface Content {
  schema: JsonSchema
  example?: unknown
}

interface Response {
  $ref?: string
  content?: Record<string, Content>
}

const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path}`,
    operation,
  })),
)

function faults({ schema, example }: Content): string[] {
  const out: string[] = []
  validatorOf(schema)(example, "example", out)
  return out
}

const answersOf = ({ responses }: Operation) =>
  Object.entries(responses as Record<string, Response>).flatMap(([status, { $ref, content }]) => {
    const shared = description.components.responses[$ref?.split("/").at(-1) ?? ""] as Response
    return Object.values(content ?? shared?.content ?? {}).map((one) => ({ status, ...one }))
  })

describe.each(operations.map(({ name, operation }) => [name, operation] as const))(
  "%s",
  (name, operation) => {
    test("is described in sentences, and has a request to copy", () => {
      expect(operation.description).toMatch(/^[`A-Z\d].{10,}[.`]$/)
      const [sample] = operation["x-codeSamples"]
      const path = name.slice(name.indexOf(" ") + 1)
      expect(sample?.source).toContain(path.split("{", 1)[0] as string)
      expect(sample?.source).not.toMatch(/(?<!\{)\{\w+\}(?!\})|undefined/) // Handlebars has two braces
    })

    test("has an example of each answer, which fits its schema", () => {
      for (const answer of answersOf(operation)) {
        expect(answer.example).toBeDefined()
        expect([answer.status, faults(answer)]).toEqual([answer.status, []])
      }
    })

    const { requestBody } = operation
    if (!requestBody) return
    test("has an example of its body, which is taken", () => {
      const content = requestBody.content["application/json"] as Content
      expect(content.example).toBeDefined()
      expect(faults(content)).toEqual([])
      const route = table.find(({ method, path }) => `${method} ${path}` === name)
      const problems = new Problems()
      if (route) readBody(route, content.example, refusing(problems), problems)
      expect(problems.list).toEqual([])
    })
  },
)

test("an example of a stream ends with its result, then done", () => {
  const texts = operations.flatMap(({ operation }) =>
    answersOf(operation).flatMap(({ example }) =>
      typeof example === "string" && example.startsWith("event: ") ? [example] : [],
    ),
  )
  expect(texts).toHaveLength(4)
  for (const text of texts) {
    const [last, result] = text.trimEnd().split("\n\n").reverse()
    expect(last).toBe("event: done\ndata: {}")
    const data = JSON.parse(result?.split("event: complete\ndata: ")[1] ?? "")
    expect(data.metadata).toBeDefined()
  }
})

test("every part of the interface says what it is about", () => {
  for (const tag of description.tags) expect(tag.description).toMatch(/^[A-Z].+\.$/)
})

test("every type of event is a webhook, whose example fits its schema", () => {
  expect(Object.keys(description.webhooks)).toEqual(builtEventTypes.map(({ type }) => type))
  for (const [type, webhook] of Object.entries(description.webhooks)) {
    const { post } = webhook as { post: Required<Operation> }
    const content = post.requestBody.content["application/json"] as Content
    expect([type, faults(content)]).toEqual([type, []])
    expect(content.example).toMatchObject({ type })
  }
})
