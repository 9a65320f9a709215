import { describe, expect, test } from "bun:test"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import { mail, NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()

const ALL = "/v1/templates"

const RECEIPT = {
  name: "receipt",
  subject: "Receipt {{number}}",
  html: "<p>Hello {{name}}</p>",
  variables: [{ key: "number", type: "number", fallback: 7 }],
}

async function made(project: TestProject, fields: object = {}) {
  const { status, body, text } = await project.post(ALL, { ...RECEIPT, ...fields })
  if (status !== 201) throw new Error(text)
  return body.data
}

const envelope = { from: "Bell <bell@example.test>", to: "ann@example.test" }

const send = (project: TestProject, fields: object) =>
  project.post("/v1/emails", { ...envelope, ...fields })

const read = async (project: TestProject, id: string) =>
  (await project.get(`/v1/emails/${id}`)).body.data

describe("a send with a template", () => {
  test.each<[string, (id: string) => object]>([
    ["its id", (template_id) => ({ template_id, variables: { name: "Ann", number: 12 } })],
    ["its name", () => ({ template_id: "receipt", variables: { name: "Ann", number: 12 } })],
    ["an object", (id) => ({ template: { id, variables: { name: "Ann", number: 12 } } })],
    [
      "the other name of the variables",
      (template_id) => ({ template_id, template_data: { name: "Ann", number: 12 } }),
    ],
    [
      "both names, of which variables wins",
      (template_id) => ({
        template_id,
        template_data: { name: "Ben", number: 12 },
        variables: { name: "Ann" },
      }),
    ],
    [
      "texts that are ignored",
      () => ({
        template_id: "receipt",
        subject: "x\ny",
        html: 7,
        variables: { name: "Ann", number: 12 },
      }),
    ],
  ])("by %s is rendered once, and says which version it was", async (_, fieldsFor) => {
    const project = await service.project()
    const { id, version } = await made(project)
    const sent = await send(project, fieldsFor(id))
    expect(sent.status).toBe(201)
    await deliverAll(service)
    const email = await read(project, sent.body.id)
    expect(email).toMatchObject({
      status: "delivered",
      subject: "Receipt 12",
      html: "<p>Hello Ann</p>",
      text: "Hello Ann",
      template: { id, name: "receipt", version },
    })
    expect((await project.get(`${ALL}/${id}`)).body.data.last_sent_at).toBe(email.created_at)
    expect((await project.get(ALL)).body.data[0].last_sent_at).toBe(email.created_at)
  })

  test("uses the published version, also right after another one was published", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const subjectOf = async () => {
      const sent = await send(project, { template_id: "receipt", variables: { name: "A" } })
      const { subject, template } = await read(project, sent.body.id)
      return [subject, template.version]
    }
    expect(await subjectOf()).toEqual(["Receipt 7", 1])
    await project.call("PATCH", `${ALL}/${id}`, { body: { subject: "New {{number}}" } })
    expect(await subjectOf()).toEqual(["New 7", 2])
    await project.call("PATCH", `${ALL}/${id}`, { body: { subject: "Draft", draft: true } })
    expect(await subjectOf()).toEqual(["New 7", 2])
    await project.post(`${ALL}/${id}/publish`, { version: 1 })
    expect(await subjectOf()).toEqual(["Receipt 7", 1])
  })

  test("is refused where the template is absent, foreign, a draft or archived", async () => {
    const project = await service.project()
    const draft = await made(project, { name: "later", draft: true })
    const old = await made(project, { name: "old" })
    await project.post(`${ALL}/${old.id}/archive`)
    const strange = await made(await service.project())
    for (const template_id of [
      draft.id,
      "later",
      old.id,
      strange.id,
      NOBODY,
      "nothing",
      "no\u0000name",
    ]) {
      const answer = await send(project, { template_id, variables: { name: "A" } })
      expect([template_id, ...refusal(answer)]).toEqual([template_id, 404, "template_not_found"])
    }
    expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
  })

  test("names every missing value", async () => {
    const project = await service.project()
    await made(project, {
      html: "{{a}} {{b.c}}",
      text: "{{d}}",
      channels: { email: { preheader: "{{e}}" } },
    })
    const answer = await send(project, { template_id: "receipt" })
    expect(refusal(answer)).toEqual([422, "template_render_failed"])
    expect(answer.body.error.details).toEqual({ missing: ["a", "b.c", "d", "e"] })
    expect(answer.body.error.message).toContain("a, b.c, d, e")
  })

  test.each<[string, object, object, string]>([
    [
      "a line break in the subject",
      { subject: "{{a}}" },
      { a: "x\r\nBcc: eve@example.test" },
      "subject",
    ],
    ["an empty subject", { subject: "{{a}}" }, { a: " " }, "subject"],
    ["a subject that is too long", { subject: "{{a}}" }, { a: "x".repeat(999) }, "subject"],
    ["no text that is left", { html: "{{a}}" }, { a: "" }, "html"],
    ["no channel email", { html: null, subject: null, channels: { sms: { body: "x" } } }, {}, ""],
    ["a value of another type", {}, { name: "A", number: "many" }, ""],
  ])("with %s fails", async (_, fields, variables, field) => {
    const project = await service.project()
    await made(project, { html: "x", ...fields })
    const answer = await send(project, { template_id: "receipt", variables })
    expect(refusal(answer)).toEqual([422, "template_render_failed"])
    if (field) expect(answer.body.error.details.field).toBe(field)
  })

  test("may have a layout, partials, a preheader and a text of its own", async () => {
    const project = await service.project()
    const layout = await made(project, {
      name: "layout",
      subject: null,
      html: "<html><body class='x'><main>{{{content}}}</main>{{company}}</body></html>",
      text: "{{{content}}}\n-- {{company}}",
      variables: [{ key: "company", type: "string", fallback: "Acme & Co" }],
    })
    await made(project, { name: "greeting", html: "Hello <b>{{name}}</b>", text: "Hello {{name}}" })
    await made(project, {
      name: "page",
      layout_id: layout.id,
      html: "{{> greeting}}",
      text: "{{> greeting}}",
      channels: { email: { preheader: "For {{name}} <3" } },
    })
    const sent = await send(project, { template_id: "page", variables: { name: "A&B" } })
    const email = await read(project, sent.body.id)
    expect(email.text).toBe("Hello A&B\n-- Acme & Co")
    expect(email.html).toContain("<main>Hello <b>A&amp;B</b></main>Acme &amp; Co</body>")
    expect(email.html).toMatch(
      /^<html><body class='x'><div style="display:none;[^"]*">For A&#38;B &#60;3<\/div><main>/,
    )
    const changed = await project.call("PATCH", `${ALL}/${layout.id}`, {
      body: { variables: [{ key: "company", type: "string", fallback: "New" }] },
    })
    expect(changed.status).toBe(200)
    const next = await send(project, { template_id: "page", variables: { name: "A" } })
    expect((await read(project, next.body.id)).text).toBe("Hello A\n-- New")
  })
})

describe("what every template is given", () => {
  test("the project, the time, nobody, and the pages of a recipient with a category", async () => {
    const project = await service.project()
    const html =
      "{{project.id}} {{date now 'yyyy'}} {{#if subscriber}}s{{else}}n{{/if}} [{{unsubscribe_url}}] [{{preferences_url}}]"
    await made(project, { html })
    const bare = await send(project, { template_id: "receipt" })
    const year = new Date().getUTCFullYear()
    expect((await read(project, bare.body.id)).html).toBe(`${project.project_id} ${year} n [] []`)
    const variables = {
      project: { id: "mine" },
      unsubscribe_url: "https://evil.test",
      now: "2001-02-03T00:00:00Z",
    }
    const full = await send(project, { template_id: "receipt", category: "news", variables })
    const shown = (await read(project, full.body.id)).html
    expect(shown).toMatch(
      /^mine 2001 n \[http:\/\/belfry\.test\/u\/[a-z2-7]+\] \[http:\/\/belfry\.test\/p\/[a-z2-7]+\]$/i,
    )
  })
})

describe("inline Handlebars", () => {
  test("is rendered where variables are given, and only there", async () => {
    const project = await service.project()
    const texts = { subject: "Hi {{name}}", html: "<p>{{name}}</p>", text: "{{name}}" }
    const plain = await send(project, texts)
    expect(await read(project, plain.body.id)).toMatchObject({ ...texts, template: null })
    for (const fields of [{ variables: { name: "A&B" } }, { template_data: { name: "A&B" } }]) {
      const sent = await send(project, { ...texts, ...fields })
      expect(await read(project, sent.body.id)).toMatchObject({
        subject: "Hi A&B",
        html: "<p>A&amp;B</p>",
        text: "A&B",
        template: null,
      })
    }
    const none = await send(project, { ...texts, variables: {} })
    expect(none.body.error.details).toEqual({ missing: ["name"] })
  })

  test("has its mistakes told with their place", async () => {
    const project = await service.project()
    const answer = await send(project, { subject: "s", html: "a\n{{#if b}}", variables: {} })
    expect(refusal(answer)).toEqual([422, "invalid_template"])
    expect(answer.body.error.details).toMatchObject({ field: "html", line: 2, column: 10 })
    const partial = await send(project, { subject: "s", html: "{{> receipt}}", variables: {} })
    expect(refusal(partial)).toEqual([422, "invalid_template"])
  })
})

test.each<[object, string]>([
  [{ template_id: 7 }, "template_id"],
  [{ template_id: "" }, "template_id"],
  [{ template: "x" }, "template"],
  [{ template: {} }, "template.id"],
  [{ template: { id: "a" }, template_id: "b" }, "template_id"],
  [{ template_id: "a", variables: [] }, "variables"],
  [{ template_id: "a", template_data: "x" }, "template_data"],
  [{ template: { id: "a", variables: 1 } }, "template.variables"],
])("the fields %j are refused at %s", async (fields, path) => {
  const project = await service.project()
  const answer = await send(project, fields)
  expect(answer.status).toBe(422)
  expect(complaints(answer)).toContain(path)
})

test("a batch renders each of its emails, and tells each mistake at its place", async () => {
  const project = await service.project()
  await made(project)
  const items = ["Ann", "Ben"].map((name) => ({
    ...envelope,
    template_id: "receipt",
    variables: { name },
  }))
  const sent = await project.post("/v1/emails/batch", {
    messages: [...items, { ...envelope, template_id: "receipt" }],
  })
  expect(sent.body.data).toMatchObject({ succeeded: 2, failed: 1 })
  const [first, second, third] = sent.body.data.results
  expect((await read(project, first.id)).html).toBe("<p>Hello Ann</p>")
  expect((await read(project, second.id)).html).toBe("<p>Hello Ben</p>")
  expect(third.error).toMatchObject({
    code: "template_render_failed",
    details: { missing: ["name"] },
  })
  const strict = await project.post("/v1/emails/batch", [
    items[0],
    { ...envelope, template_id: "nothing" },
  ])
  expect(refusal(strict)).toEqual([404, "template_not_found"])
  expect(strict.body.error.details.field).toStartWith("messages.1")
  expect(strict.body.error.message).toContain("There is no template nothing in this project.")
})

test("a list of emails is filtered by the template, by id and by name", async () => {
  const project = await service.project()
  const { id } = await made(project)
  await made(project, { name: "other" })
  const first = await send(project, { template_id: "receipt", variables: { name: "A" } })
  await send(project, { template_id: "other", variables: { name: "A" } })
  await project.post("/v1/emails", mail())
  for (const asked of [id, "receipt"]) {
    const { data, meta } = (await project.get(`/v1/emails?template_id=${asked}`)).body
    expect([data.map((one: { id: string }) => one.id), meta.total]).toEqual([[first.body.id], 1])
  }
  for (const asked of [NOBODY, "nothing"]) {
    expect((await project.get(`/v1/emails?template_id=${asked}`)).body.data).toEqual([])
  }
})

test("sent again, an email keeps its content and its version", async () => {
  const project = await service.project()
  const { id } = await made(project)
  const sent = await send(project, { template_id: id, variables: { name: "Ann" } })
  await project.call("PATCH", `${ALL}/${id}`, { body: { html: "changed" } })
  const again = await project.post(`/v1/emails/${sent.body.id}/resend`, { to: "ben@example.test" })
  expect(await read(project, again.body.id)).toMatchObject({
    html: "<p>Hello Ann</p>",
    template: { id, name: "receipt", version: 1 },
  })
  expect((await project.get(`/v1/emails?template_id=${id}`)).body.meta.total).toBe(2)
})

describe("rendering without sending", () => {
  test("by id or name, in a version, a channel and a language", async () => {
    const project = await service.project()
    const { id } = await made(project, {
      locale: "en",
      locales: { de: { subject: "Beleg {{number}}", html: "<p>Hallo {{name}}</p>" } },
      channels: {
        sms: { body: "Code {{code}} €" },
        push: { title: "T {{name}}", body: "B", data: { a: "{{name}}" } },
      },
    })
    await project.call("PATCH", `${ALL}/${id}`, {
      body: { subject: "Two {{number}}", draft: true },
    })
    const render = async (query: string, variables: object, which = id) =>
      (await project.post(`${ALL}/${which}/render${query}`, variables)).body.data
    const plain = await render("", { name: "A", nmae: "x", number: 3 })
    expect(plain).toEqual({
      template_id: id,
      version: 1,
      channel: "email",
      subject: "Receipt 3",
      html: "<p>Hello A</p>",
      text: "Hello A",
      preheader: null,
      title: null,
      body: null,
      missing_variables: [],
      unknown_variables: ["nmae"],
      size_bytes: 9 + 14 + 7,
      sms: null,
    })
    expect(await render("", { name: "A", number: 3, nmae: "x" }, "receipt")).toEqual(plain)
    expect(await render("?version=2", { name: "A" })).toMatchObject({
      version: 2,
      subject: "Two 7",
      missing_variables: ["number"],
    })
    for (const locale of ["de", "de-AT", "DE-ch"]) {
      expect(await render(`?locale=${locale}`, { name: "A" })).toMatchObject({
        subject: "Beleg 7",
        html: "<p>Hallo A</p>",
      })
    }
    for (const locale of ["fr", "en", "d"]) {
      const answer = await project.post(`${ALL}/${id}/render?locale=${locale}`, { name: "A" })
      if (locale === "d") expect(answer.status).toBe(422)
      else expect(answer.body.data.subject).toBe("Receipt 7")
    }
    expect(await render("?channel=sms", { code: 1 })).toMatchObject({
      channel: "sms",
      body: "Code 1 €",
      subject: null,
      sms: { encoding: "gsm7", segments: 1 },
    })
    expect(await render("?channel=push", { name: "A" })).toMatchObject({ title: "T A", body: "B" })
    const absent = await project.post(`${ALL}/${id}/render?channel=in_app`, {})
    expect(refusal(absent)).toEqual([422, "template_render_failed"])
    expect(refusal(await project.post(`${ALL}/${id}/render?version=9`, {}))).toEqual([
      404,
      "not_found",
    ])
    expect(refusal(await project.post(`${ALL}/nothing/render`, {}))).toEqual([
      404,
      "template_not_found",
    ])
    const missing = await project.post(`${ALL}/${id}/render`, {})
    expect(missing.body.error.details).toEqual({ missing: ["name"] })
  })

  test("of a draft in the request", async () => {
    const project = await service.project()
    await made(project, { name: "foot", html: "[{{n}}]" })
    const draft = {
      subject: "S {{n}}",
      html: "{{> foot}}",
      variables: [{ key: "n", type: "number", fallback: 1 }],
    }
    const { body } = await project.post(`${ALL}/render`, { template: draft, variables: {} })
    expect(body.data).toMatchObject({
      template_id: null,
      version: null,
      subject: "S 1",
      html: "[1]",
      missing_variables: ["n", "number"],
    })
    const preview = await project.post(`${ALL}/render`, {
      template: { html: "{{unsubscribe_url}}" },
    })
    expect(preview.body.data.html).toBe("https://preview.invalid/u/preview")
    const broken = await project.post(`${ALL}/render`, { template: { html: "{{#if}}" } })
    expect(refusal(broken)).toEqual([422, "invalid_template"])
    const lost = await project.post(`${ALL}/render`, { template: { html: "{{> nothing}}" } })
    expect(refusal(lost)).toEqual([422, "invalid_template"])
    const empty = await project.post(`${ALL}/render`, { template: {} })
    expect(complaints(empty)).toEqual(["template.html"])
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })

  test("at most 60 times a minute for each project", async () => {
    clock.freeze() // no minute ends while we count
    const project = await service.project({ plan: "enterprise" })
    const other = await service.project()
    const { id } = await made(project, { html: "x", subject: "y" })
    const draft = { template: { text: "x" } }
    const statuses: number[] = []
    for (let count = 0; count < 61; count++) {
      const answer =
        count % 2
          ? await project.post(`${ALL}/${id}/render`, {})
          : await project.post(`${ALL}/render`, draft)
      statuses.push(answer.status)
      if (answer.status === 429)
        expect(answer.body.error.details).toMatchObject({ limit: 60, scope: "template_render" })
    }
    expect(statuses).toEqual([...Array(60).fill(200), 429])
    expect((await other.post(`${ALL}/render`, draft)).status).toBe(200)
  })
})

describe("a test of a template", () => {
  test("is an email from the default sender, also of a draft", async () => {
    const project = await service.project()
    const { id } = await made(project, { draft: true })
    const path = `${ALL}/${id}/test-send`
    const body = { to: "Ann <ann@example.test>", variables: { name: "Ann" } }
    expect(refusal(await project.post(path, body))).toEqual([400, "sender_not_configured"])
    await project.call("PATCH", "/v1/settings", {
      body: { default_from: "Bell <bell@example.test>" },
    })
    const sent = await project.post(path, body)
    expect([sent.status, sent.body.data]).toEqual([201, { id: sent.body.id, status: "queued" }])
    expect(await read(project, sent.body.id)).toMatchObject({
      to: { email: "ann@example.test", name: "Ann" },
      from: { email: "bell@example.test" },
      html: "<p>Hello Ann</p>",
      template: { id, version: 1 },
    })
    expect(refusal(await project.post(path, { to: "nobody" }))).toEqual([422, "invalid_email"])
    expect(refusal(await project.post(path, { ...body, version: 9 }))).toEqual([404, "not_found"])
    expect(refusal(await project.post(`${ALL}/receipt/test-send`, body))).toEqual([
      404,
      "template_not_found",
    ])
    const missing = await project.post(path, { to: "ann@example.test" })
    expect(missing.body.error.details).toEqual({ missing: ["name"] })
  })
})
