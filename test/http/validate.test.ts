import { describe, expect, test } from "bun:test"
import { type TSchema, Type as t } from "@sinclair/typebox"
import { type AppParts, routeTable } from "../../src/app"
import { Problems } from "../../src/core/errors"
import { MONTH, nameText, oneOf, orNull, slugText } from "../../src/http/field-schemas"
import type { AnyRoute } from "../../src/http/route"
import { check } from "../../src/http/validate"
import { CATEGORY_SLUG, TOPIC_KEY } from "../../src/lib/text"
import { complaints, type Reply, refusal } from "../harness/client"
import { mail, NOBODY } from "../harness/mail"
import { person, type Team, team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { addSubscriber, bearer } from "../inbox/subscriber-app"
import { hook } from "../webhooks/endpoints"

function problemsOf(schema: TSchema, value: unknown) {
  const problems = new Problems()
  check(schema, value, problems)
  return problems.list.map(({ path, code, message }) => [path, code, message])
}

const named = t.Object({ name: nameText(3), note: t.Optional(orNull(nameText(3))) })

test("lengths of texts count characters, not UTF-16 units", () => {
  expect(problemsOf(named, { name: "🔔🔔🔔", note: "🔔🔔🔔" })).toEqual([])
  expect(problemsOf(named, { name: "🔔🔔🔔🔔" })).toEqual([
    ["name", "invalid", "The value must have at most 3 characters."],
  ])
  expect(problemsOf(t.String({ minLength: 2 }), "🔔")).toEqual([
    ["body", "invalid", "The value must have at least 2 characters."],
  ])
})

test("the other rules of a bounded text stay", () => {
  expect(problemsOf(named, {})).toEqual([["name", "required", "The field is required."]])
  expect(problemsOf(named, { name: 5 })).toEqual([
    ["name", "invalid", "The value must be a string."],
  ])
  expect(problemsOf(named, { name: "", note: null })).toHaveLength(1)
  expect(problemsOf(named, { name: "a\nb" })).toHaveLength(1)
  expect(problemsOf(named, { name: "ok", note: "long one" })).toEqual([
    ["note", "invalid", "The value must have at most 3 characters."],
  ])
})

test("half a character is refused, never cleaned", () => {
  expect(problemsOf(named, { name: "a\ud83d" })).toHaveLength(1)
})

test("the published schema keeps its ordinary strings", () => {
  problemsOf(named, { name: "x" })
  expect(JSON.parse(JSON.stringify(named)).properties.name).toMatchObject({
    type: "string",
    maxLength: 3,
  })
})

const month = t.Object({ month: t.String({ pattern: MONTH }) })
const rate = t.Union([t.Integer({ minimum: 1, maximum: 9 }), t.Null()])
const sender = t.Union([t.String(), t.Object({ email: t.String() })])

test.each<[string, TSchema, unknown, string]>([
  ["a choice", oneOf("held", "none"), "all", "The value must be one of held, none."],
  ["a number in text", rate, "5", "The value must be a whole number."],
  ["a number that is too large", rate, 10, "The value must be from 1 to 9."],
  ["a number that is too small", t.Number({ minimum: 1 }), 0, "The value must be at least 1."],
  ["a word for a yes", t.Boolean(), "yes", "The value must be true or false."],
  [
    "a list that is empty",
    t.Array(t.String(), { minItems: 1 }),
    [],
    "The value must have at least 1 item.",
  ],
  [
    "a list that is too long",
    t.Array(t.Null(), { maxItems: 2 }),
    [null, null, null],
    "The value must have at most 2 items.",
  ],
  ["another version", t.Literal("v1"), "v2", "The value must be v1."],
  ["one of two forms", sender, 5, "The value must be a string or an object."],
  ["an empty name", nameText(), "", "The value must not be empty."],
  [
    "a name of two lines",
    nameText(),
    "a\nb",
    "The value must be one line without control characters.",
  ],
  ["a broken text", nameText(), "a\ud83d", "The value must not contain half of a surrogate pair."],
  [
    "a slug in capitals",
    slugText(),
    "Acme",
    "The value must have 1 to 63 characters: a-z, 0-9, and hyphens between them.",
  ],
  [
    "a category with a space",
    t.String({ pattern: CATEGORY_SLUG }),
    "my news",
    "The value must have 1 to 64 characters: a-z, 0-9, and behind the first one also - and _.",
  ],
  [
    "a topic key that begins with a dot",
    t.String({ pattern: TOPIC_KEY }),
    ".news",
    "The value must have 1 to 64 characters: a-z, 0-9, and behind the first one also a dot, - and _.",
  ],
  [
    "a code of its own form",
    t.String({ pattern: "^x$" }),
    "y",
    "The value must match the pattern ^x$.",
  ],
])("%s is told with what it must be", (_, schema, value, words) => {
  expect(problemsOf(schema, value)).toEqual([["body", "invalid", words]])
})

test("a pattern with a meaning is told by it", () => {
  const words = "The value must be a month, such as 2026-11."
  expect(problemsOf(month, { month: "2026-13" })).toEqual([["month", "invalid", words]])
})

test("the name of a field that the caller made up is told in part", () => {
  const problems = new Problems("messages.0.")
  problems.add(`metadata.${"k".repeat(10_000)}`, "invalid", "No.")
  const [path] = problems.list.map((problem) => problem.path)
  expect(path).toStartWith("messages.0.metadata.kkk")
  expect(path?.length).toBeLessThan(1000)
})

const service = await sharedService()

/** The paths and codes of what is wrong. */
const told = ({ body }: Reply): string[][] =>
  body.error.details.fields.map(({ path, code }: Record<string, string>) => [path, code])

describe("a change that names no field that can change is refused", () => {
  // A user changes themselves with a token of their own: test/auth/user-sessions.test.ts.
  const patches = routeTable({} as AppParts).filter(({ method, changes, callers }) => {
    return (method === "PATCH" && !callers.every((kind) => kind === "user")) || changes
  })

  /** With the token of a subscriber where the route is theirs. */
  async function tokenFor({ owner, project_id }: Team, { callers }: AnyRoute) {
    if (!callers.includes("subscriber")) return {}
    const subscriber_id = await addSubscriber(service, { project_id })
    const here = { "x-project-id": project_id }
    const made = await owner.post("/v1/subscriber-inbox/token", { subscriber_id }, here)
    return bearer(made.body.data.token)
  }

  test.each(patches.map((row) => [row.method, row.path, row] as const))(
    "%s %s",
    async (...given) => {
      const [method, path, row] = given
      const home = await team(service)
      const { owner, project_id } = home
      const headers = await tokenFor(home, row)
      const { id } = owner
      const words = { kind: "email_provider", environment: "live" }
      const known: Record<string, string> = { project_id, user_id: id, ...words }
      const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? NOBODY)
      for (const body of [{}, { colour: "red" }]) {
        const refused = await owner.call(method, place, { body, headers })
        expect(refusal(refused)).toEqual([422, "validation_error"])
        const codes = told(refused).map(([, code]) => code)
        const isSetting = path === "/v1/settings" && "colour" in body
        expect(codes).toContain(isSetting ? "unknown_field" : "nothing_to_change")
      }
    },
  )

  test("there are such routes", () => expect(patches.length).toBeGreaterThan(8))

  test("and the answer names the fields that can", async () => {
    const somebody = await person(service)
    const refused = await somebody.patch("/v1/users/me", { nmae: "Pat" })
    expect(told(refused)).toEqual([["body", "nothing_to_change"]])
    expect(refused.body.error.message).toContain("name, locale, timezone")
    const strict = await somebody.patch("/v1/users/me", { nmae: "Pat" }, { "x-strict": "1" })
    expect(told(strict)).toEqual([["nmae", "unknown_field"]])
  })
})

describe("a field under its second name", () => {
  test("is the same field", async () => {
    const project = await service.project()
    const { url, events } = hook()
    const made = await project.post("/v1/webhooks", { endpoint: url, events })
    expect([made.status, made.body.data.url]).toEqual([201, url])
    const path = `/v1/webhooks/${made.body.data.id}`
    const other = `${url}/other`
    for (const method of ["PATCH", "PUT"]) {
      const changed = await project.call(method, path, { body: { endpoint: other + method } })
      expect([changed.status, changed.body.data.url]).toEqual([200, other + method])
    }
    const domain = await project.post("/v1/domains", { name: "Second.Name.TEST" })
    expect([domain.status, domain.body.data.domain]).toEqual([201, "second.name.test"])
  })

  test("may stand beside the first with the same value, but not with another", async () => {
    const project = await service.project()
    const { url } = hook()
    const both = await project.post("/v1/webhooks", hook({ endpoint: url }))
    expect(both.status).toBe(201)
    expect((await project.post("/v1/webhooks", hook({ endpoint: null }))).status).toBe(201)
    const refused = await project.post("/v1/webhooks", hook({ endpoint: `${url}/other` }))
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(complaints(refused)).toEqual(["endpoint"])
    const domain = { domain: "one.name.test", name: "two.name.test" }
    expect(complaints(await project.post("/v1/domains", domain))).toEqual(["name"])
  })

  test("is known where strictness is asked for", async () => {
    const project = await service.project()
    const { url, events } = hook()
    const strict = { "x-strict": "1" }
    const made = await project.post("/v1/webhooks", { endpoint: url, events }, strict)
    expect(made.status).toBe(201)
  })
})

describe("a field that nothing acts upon is refused by its name, unless it is null", () => {
  const DOMAIN = {
    region: "eu-west-1",
    tls: "enforced",
    capabilities: { sending: "enabled" },
    custom_return_path: "outbound",
    open_tracking: true,
    click_tracking: false,
  }

  test.each(Object.entries(DOMAIN))("%s of a domain", async (name, value) => {
    const project = await service.project()
    const domain = `${name.replaceAll("_", "-")}.refused.test`
    const refused = await project.post("/v1/domains", { domain, [name]: value })
    expect(refusal(refused)).toEqual([422, "validation_error"])
    expect(told(refused)).toEqual([[name, "not_available"]])
    const made = await project.post("/v1/domains", { domain, [name]: null })
    expect(made.status).toBe(201)

    const path = `/v1/domains/${made.body.data.id}`
    const body = { [name]: value, return_path: "bounces" }
    expect(told(await project.call("PATCH", path, { body }))).toEqual([[name, "not_available"]])
    const nothing = await project.call("PATCH", path, { body: { [name]: null } })
    expect(told(nothing)).toEqual([["body", "nothing_to_change"]])
  })

  test.each(["topic_id", "topicId", "region"])("%s of an email", async (name) => {
    const project = await service.project()
    const strict = { "x-strict": "1" }
    for (const headers of [{}, strict]) {
      const wrong = mail({ [name]: "x" })
      const refused = await project.post("/v1/emails", wrong, headers)
      expect(refusal(refused)).toEqual([422, "validation_error"])
      expect(told(refused)).toEqual([[name, "not_available"]])
      expect((await project.post("/v1/emails", mail({ [name]: null }), headers)).status).toBe(201)
      const batch = await project.post("/v1/emails/batch", [mail(), wrong], headers)
      expect(told(batch)).toEqual([[`messages.1.${name}`, "not_available"]])
    }
  })

  test("another status of a webhook than its own", async () => {
    const project = await service.project()
    const refused = await project.post("/v1/webhooks", hook({ status: "disabled" }))
    expect(told(refused)).toEqual([["status", "not_available"]])
    const { id } = (await project.post("/v1/webhooks", hook({ status: "active" }))).body.data
    const patch = (body: object) => project.call("PATCH", `/v1/webhooks/${id}`, { body })
    for (const status of ["enabled", "disabled", 1]) {
      expect(told(await patch({ status, description: "x" }))).toEqual([["status", "not_available"]])
    }
    expect((await patch({ status: "active" })).status).toBe(200)
    expect((await patch({ enabled: false })).body.data.status).toBe("disabled")
    expect((await patch({ status: "disabled" })).status).toBe(200)
    const { data } = (await project.get(`/v1/webhooks/${id}`)).body
    expect([data.status, data.description]).toEqual(["disabled", null])
  })
})

test("email.delivery_delayed is another name of email.soft_bounced", async () => {
  const project = await service.project()
  const events = ["email.delivery_delayed", "email.sent", "email.soft_bounced"]
  const made = await project.post("/v1/webhooks", hook({ events }))
  expect(made.body.data.events).toEqual(["email.soft_bounced", "email.sent"])
  const path = `/v1/webhooks/${made.body.data.id}`
  const changed = await project.call("PATCH", path, { body: { events: events.slice(0, 1) } })
  expect(changed.body.data.events).toEqual(["email.soft_bounced"])
})
