import { describe, expect, test } from "bun:test"
import type { EventField } from "../../src/events/event-fields"
import { eventTypes, isPattern } from "../../src/events/registry"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

test("the registry has each type once, in its category, with a description", () => {
  const names = eventTypes.map(({ type }) => type)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toContain("account.sending_status_changed")
  for (const { type, description } of eventTypes) {
    expect(type).toMatch(/^[a-z]+\.[a-z_]+$/)
    expect(description).toMatch(/^[A-Z].*\.$/)
  }
  const auth = eventTypes.filter(({ category }) => category === "auth")
  expect(auth.map(({ type }) => type)).toContain("user.login")
})

describe.each(eventTypes.map((entry) => [entry.type, entry] as const))("%s", (type, entry) => {
  const { fields, example } = entry

  test("has an example that matches its fields", () => {
    expect(example).toMatchObject({ type, api_version: "2026-02-01" })
    expect(example.id).toMatch(/^evt_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(fields.length).toBeGreaterThan(2)
    for (const field of fields) {
      expect(field.description).toMatch(/\.$/)
      const [found, known] = valueAt(example.data, field.name.split("."))
      if (field.name.includes(".") && !known) continue // absent where it does not apply
      expect([field.name, known, fits(field, found)]).toEqual([field.name, true, true])
    }
  })

  test("has no member in its example that no field describes", () => {
    const names = fields.map(({ name }) => name)
    expect(Object.keys(example.data).filter((name) => !names.includes(name))).toEqual([])
    const parents = new Set(names.flatMap((name) => name.split(".").slice(0, -1)))
    for (const parent of parents) {
      const members = Object.keys(example.data[parent] as object)
      expect(members.filter((name) => !names.includes(`${parent}.${name}`))).toEqual([])
    }
  })
})

function valueAt(data: unknown, path: string[]): [unknown, boolean] {
  let value = data
  for (const step of path) {
    if (!Object.hasOwn(value as object, step)) return [undefined, false]
    value = (value as Record<string, unknown>)[step]
  }
  return [value, true]
}

function fits({ type, nullable }: EventField, value: unknown): boolean {
  if (value === null) return nullable
  if (type === "array") return Array.isArray(value)
  if (type === "integer") return Number.isInteger(value)
  return typeof value === type && !Array.isArray(value)
}

test("no two examples share an id, and each run makes the same ones", () => {
  const ids = eventTypes.map(({ example }) => example.id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(eventTypes[0]?.example.id).toBe("evt_0199a1c2-0000-7000-8000-a32cec936fa4")
})

describe("the list of types", () => {
  test("has them all, or those of one of three categories", async () => {
    const project = await service.project()
    const list = async (query = "") => (await project.get(`/v1/webhooks/events${query}`)).body.data
    expect(await list()).toEqual(JSON.parse(JSON.stringify(eventTypes)))
    const counts = { email: 10, push: 4, auth: 12 }
    for (const [category, count] of Object.entries(counts)) {
      const some = await list(`?category=${category}`)
      expect(some).toHaveLength(count)
      expect(new Set(some.map((one: { category: string }) => one.category))).toEqual(
        new Set([category]),
      )
    }
  })

  test.each(["sms", "nothing", "", "Email"])("does not know the category %j", async (category) => {
    const project = await service.project()
    const refused = await project.get(`/v1/webhooks/events?category=${category}`)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["category"])
  })
})

describe("what may be asked for", () => {
  test.each(["*", "email.*", "inbox.*", "email.sent", "webhook.test"])("%s", (text) => {
    expect(isPattern(text)).toBe(true)
  })

  test.each(["", "email", "email.", "emial.*", "EMAIL.*", "e%.*", "email._ent", "email.s*", "**"])(
    "not %j",
    (text) => expect(isPattern(text)).toBe(false),
  )
})

test("the feed refuses types that nobody emits", async () => {
  const project = await service.project()
  await project.post("/v1/emails", mail())
  const ask = (types: string) => project.get(`/v1/events?types=${encodeURIComponent(types)}`)
  for (const types of ["emial.*", "email.sent,nonsense", "EMAIL.*", "email.%"]) {
    const refused = await ask(types)
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["types"])
    expect(refused.body.error.details.fields[0].code).toBe("unknown_type")
  }
  expect((await ask("email.quued")).body.error.message).toContain("email.queued")
  for (const types of ["", "*", "email.*", " email.queued , sms.*", "sms.sent,*"]) {
    expect((await ask(types)).body.data).toHaveLength(1)
  }
  expect((await ask("push.*")).body.data).toEqual([])
})
