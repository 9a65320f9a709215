import { describe, expect, test } from "bun:test"
import { eventTypes, isPattern } from "../../src/events/registry"
import { complaints, refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

test("the registry has each type once, in its category, with a description", () => {
  const names = eventTypes.map(({ type }) => type)
  expect(new Set(names).size).toBe(names.length)
  expect(names).toHaveLength(53)
  expect(names).toContain("account.sending_status_changed")
  for (const { type, description } of eventTypes) {
    expect(type).toMatch(/^[a-z]+\.[a-z_]+$/)
    expect(description).toMatch(/^[A-Z].*\.$/)
  }
  const auth = eventTypes.filter(({ category }) => category === "auth")
  expect(auth.map(({ type }) => type)).toContain("user.login")
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
  }
  expect((await ask("email.quued")).body.error.message).toContain("email.queued")
  for (const types of ["", "*", "email.*", " email.queued , sms.*", "sms.sent,*"]) {
    expect((await ask(types)).body.data).toHaveLength(1)
  }
  expect((await ask("push.*")).body.data).toEqual([])
})
