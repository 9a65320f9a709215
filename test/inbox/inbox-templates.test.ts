import { expect, test } from "bun:test"
import { refusal } from "../harness/client"
import { sharedService } from "../harness/shared-service"
import { makeSubscribers } from "../topics/made-subscribers"
import { codesOf, onlyMessage } from "./inboxes"

const service = await sharedService()

const PEOPLE = [
  { external_id: "ann", name: "Ann", locale: "de" },
  { external_id: "bob", name: "Bob" },
]

const TEXTS = {
  title: "Hello {{subscriber.name}}",
  body: "{{what}} is ready",
  action_url: "{{link}}",
  action_label: "Show",
}

async function town(in_app: object = TEXTS, locales: object = {}) {
  const project = await service.project()
  await makeSubscribers(service, project, PEOPLE)
  const template = { name: "ready", channels: { in_app }, locales }
  const made = await project.post("/v1/templates", template)
  const send = (body: object) =>
    project.post("/v1/inbox", { subscriber_ids: ["ann", "bob"], template_id: "ready", ...body })
  return { project, template_id: made.body.data.id, send }
}

test("a template is rendered for each recipient, in the language of each", async () => {
  const german = { channels: { in_app: { ...TEXTS, title: "Hallo {{subscriber.name}}" } } }
  const { project, template_id, send } = await town(TEXTS, { de: german })
  const sent = await send({ variables: { what: "It", link: "/a" }, data: { a: 1 } })
  expect(sent.status).toBe(201)
  const said = { body: "It is ready", action_url: "/a", action_label: "Show", data: { a: 1 } }
  expect(await onlyMessage(project, "ann")).toMatchObject({ ...said, title: "Hallo Ann" })
  expect(await onlyMessage(project, "bob")).toMatchObject({ ...said, title: "Hello Bob" })
  const { last_sent_at } = (await project.get(`/v1/templates/${template_id}`)).body.data
  expect(last_sent_at).not.toBeNull()
})

test("what comes of a template has the limits of a message", async () => {
  const { send } = await town()
  const render = async (variables: object) => {
    const { error } = (await send({ variables: { what: "It", link: "/", ...variables } })).body
    return [error.code, error.details.field, error.details.reason.slice(0, 9)]
  }
  expect(await render({ link: "javascript:alert(1)" })).toEqual([
    "invalid_url",
    "action_url",
    "The value",
  ])
  expect(await render({ link: "//evil.test" })).toEqual(["invalid_url", "action_url", "The value"])
  const failed = "template_render_failed"
  expect(await render({ what: "x".repeat(5001) })).toEqual([failed, "body", "too_long"])
  expect(refusal(await send({}))).toEqual([422, failed])
  const titled = await town({ title: "{{a}}" })
  expect((await titled.send({ variables: { a: " " } })).body.error.details.reason).toBe("empty")
  const long = await titled.send({ variables: { a: "x".repeat(201) } })
  expect(long.body.error.details).toMatchObject({ field: "title", reason: "too_long" })
  const lines = await titled.send({ variables: { a: "a\nb" } })
  expect(lines.body.error.details).toMatchObject({ field: "title", reason: "invalid" })
  expect(refusal(await titled.send({ template_id: "other" }))).toEqual([404, "template_not_found"])
})

test("variables fill the texts of a request", async () => {
  const { project, send } = await town()
  const inline = {
    template_id: undefined,
    title: "{{a}} for {{subscriber.name}}",
    action_url: "{{l}}",
  }
  expect(codesOf(await send(inline))).toEqual({ action_url: "invalid_url" })
  const sent = await send({ ...inline, variables: { a: "Some", l: "/x" } })
  expect(sent.status).toBe(201)
  expect(await onlyMessage(project, "ann")).toMatchObject({
    title: "Some for Ann",
    action_url: "/x",
  })
})
