import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { auditLog } from "../../src/audit-log/tables"
import { templates, templateVersions } from "../../src/templates/tables"
import { complaints, refusal } from "../harness/client"
import { NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { store } = service

const ALL = "/v1/templates"

async function made(project: TestProject, fields: object = {}) {
  const { status, body, text } = await project.post(ALL, {
    name: "receipt",
    subject: "Receipt {{number}}",
    html: "<p>Hello {{name}}</p>",
    ...fields,
  })
  if (status !== 201) throw new Error(text)
  return body.data
}

const patch = (project: TestProject, id: string, body: object) =>
  project.call("PATCH", `${ALL}/${id}`, { body })

describe("a new template", () => {
  test("is published at once, and shows the email both ways", async () => {
    const project = await service.project()
    const data = await made(project)
    expect(data).toMatchObject({
      project_id: project.project_id,
      name: "receipt",
      description: null,
      status: "published",
      version: 1,
      published_version: 1,
      subject: "Receipt {{number}}",
      html: "<p>Hello {{name}}</p>",
      text: null,
      channels: {
        email: { subject: "Receipt {{number}}", html: "<p>Hello {{name}}</p>", text: null },
      },
      variables: [],
      detected_variables: ["name", "number"],
      layout_id: null,
      locale: null,
      locales: [],
      tags: [],
      used_by: { workflows: [], broadcasts: [] },
      last_sent_at: null,
    })
    expect(data.published_at).toBe(data.created_at)
    expect((await project.get(`${ALL}/${data.id}`)).body.data).toEqual(data)
  })

  test("is a draft where that is asked for, and published later", async () => {
    const project = await service.project()
    const draft = await made(project, { draft: true })
    expect(draft).toMatchObject({ status: "draft", published_version: null, published_at: null })
    const { status, body } = await project.post(`${ALL}/${draft.id}/publish`, {})
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ status: "published", published_version: 1 })
    expect((await project.post(`${ALL}/${draft.id}/publish`, {})).body.data).toEqual(body.data)
  })

  test("keeps every channel, language and variable", async () => {
    const project = await service.project()
    const fields = {
      description: "All of it",
      tags: ["orders", "shop", "orders"],
      locale: "en",
      locales: { "de-at": { subject: "Beleg", html: "<p>{{vorname}}</p>" } },
      channels: {
        email: { preheader: "{{teaser}}" },
        push: { title: "{{a}}", body: "b", data: { order: "{{number}}" } },
        sms: { body: "{{code}}" },
        in_app: { title: "t", action_url: "{{url}}" },
      },
      variables: [
        { key: "name", type: "string", required: true, description: "First name" },
        { key: "number", type: "number", fallback_value: 7 },
        { key: "order.total", type: "number", fallback: "9.50" },
      ],
    }
    const data = await made(project, fields)
    expect(data.tags).toEqual(["orders", "shop"])
    expect(data.channels).toEqual({
      email: {
        subject: "Receipt {{number}}",
        html: "<p>Hello {{name}}</p>",
        text: null,
        preheader: "{{teaser}}",
      },
      push: {
        title: "{{a}}",
        body: "b",
        image_url: null,
        data: { order: "{{number}}" },
        url: null,
      },
      sms: { body: "{{code}}" },
      in_app: { title: "t", body: null, action_url: "{{url}}", action_label: null },
    })
    expect(data.locales).toMatchObject([{ locale: "de-AT", subject: "Beleg", text: null }])
    expect(data.variables).toEqual([
      { key: "name", type: "string", required: true, fallback: null, description: "First name" },
      { key: "number", type: "number", required: false, fallback: 7, description: null },
      { key: "order.total", type: "number", required: false, fallback: "9.50", description: null },
    ])
    expect(data.detected_variables).toEqual(
      ["a", "code", "name", "number", "teaser", "url", "vorname"].sort(),
    )
  })

  test("needs a name of the pattern that no other template of the project has", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const again = await project.post(ALL, { name: "receipt", text: "x" })
    expect(refusal(again)).toEqual([409, "conflict"])
    expect(again.body.error.details).toEqual({ reason: "name_taken", id })
    await made(await service.project())
    for (const name of ["Receipt", "-a", "a b", "", "a".repeat(101)]) {
      expect(refusal(await project.post(ALL, { name, text: "x" }))).toEqual([
        422,
        "validation_error",
      ])
    }
    await made(project, { name: "a".repeat(100) })
  })

  test.each<[string, object, string[]]>([
    ["no text at all", { html: undefined, subject: undefined }, ["html"]],
    ["a language that is none", { locale: "e_n" }, ["locale"]],
    ["a layout that is no id", { layout_id: "main" }, ["layout_id"]],
    ["a variable declared twice", { variables: [v("a"), v("a")] }, ["variables.1.key"]],
    ["a key that no name is", { variables: [v("a b")] }, ["variables.0.key"]],
    [
      "a fallback of another type",
      { variables: [{ ...v("a"), type: "number", fallback: "x" }] },
      ["variables.0.fallback"],
    ],
    [
      "two fallbacks that differ",
      { variables: [{ ...v("a"), fallback: "x", fallback_value: "y" }] },
      ["fallback_value"],
    ],
    ["one text given twice, differently", { channels: { email: { html: "other" } } }, ["html"]],
    ["fields of another service", { alias: "r" }, ["alias"]],
    ["NUL", { html: "a\0b" }, ["html"]],
  ])("with %s is refused", async (_, fields, paths) => {
    const project = await service.project()
    const answer = await project.post(ALL, { name: "x", subject: "s", html: "h", ...fields })
    expect(answer.status).toBe(422)
    expect(complaints(answer)).toEqual(paths)
  })
})

function v(key: string) {
  return { key, type: "string" }
}

describe("a mistake in a text", () => {
  test.each<[object, string, number, number, string]>([
    [{ html: "<p>\n  {{#if a}}" }, "html", 2, 12, "  {{#if a}}\n           ^"],
    [{ subject: "{{shout name}}" }, "subject", 1, 3, "{{shout name}}\n  ^"],
    [{ text: "{{lookup a b}}" }, "text", 1, 3, "{{lookup a b}}\n  ^"],
    [
      { channels: { sms: { body: "x {{log a}}" } } },
      "channels.sms.body",
      1,
      5,
      "x {{log a}}\n    ^",
    ],
    [
      { text: "x", locales: { de: { html: "{{#items}}{{/items}}" } } },
      "locales.de.html",
      1,
      1,
      "{{#items}}{{/items}}\n^",
    ],
  ])(
    "%j is invalid_template, with its place and a caret",
    async (fields, field, line, column, excerpt) => {
      const project = await service.project()
      const answer = await project.post(ALL, { name: "x", ...fields })
      expect(refusal(answer)).toEqual([422, "invalid_template"])
      const { details, message } = answer.body.error
      expect(details).toMatchObject({ field, line, column, excerpt })
      expect(message).toContain(details.message)
      expect((await project.get(ALL)).body.meta.total).toBe(0)
    },
  )

  test("a text of more than 256 KiB is one, too", async () => {
    const project = await service.project()
    const answer = await project.post(ALL, { name: "x", html: "ä".repeat(131_073) })
    expect(refusal(answer)).toEqual([422, "invalid_template"])
    expect(answer.body.error.details).toMatchObject({ field: "html", reason: "too_large" })
    await made(project, { html: "ä".repeat(131_072) })
  })
})

describe("every write is a version", () => {
  test("a change is published where sends use the newest version, and not for a draft", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const second = (await patch(project, id, { subject: "Two" })).body.data
    expect(second).toMatchObject({ version: 2, published_version: 2, subject: "Two" })
    expect(second.html).toBe("<p>Hello {{name}}</p>")
    const third = (await patch(project, id, { subject: "Three", draft: true })).body.data
    expect(third).toMatchObject({ version: 3, published_version: 2, status: "published" })
    const fourth = (await patch(project, id, { tags: ["t"] })).body.data
    expect(fourth).toMatchObject({ version: 4, published_version: 2, subject: "Three" })
    const old = (await project.get(`${ALL}/${id}/versions/2`)).body.data
    expect(old).toMatchObject({ version: 2, subject: "Two", tags: ["t"] })
  })

  test("a replacement forgets what it does not say, and is published unless it is a draft", async () => {
    const project = await service.project()
    const { id } = await made(project, { tags: ["t"], description: "d", draft: true })
    const put = (body: object) => project.call("PUT", `${ALL}/${id}`, { body })
    const { body } = await put({ name: "other", text: "only" })
    expect(body.data).toMatchObject({
      name: "other",
      html: null,
      subject: null,
      text: "only",
      tags: [],
      description: null,
      version: 2,
      published_version: 2,
    })
    expect((await put({ name: "other", text: "x", draft: true })).body.data.published_version).toBe(
      2,
    )
  })

  test("a channel that is null goes away, but not the last text", async () => {
    const project = await service.project()
    const { id } = await made(project, { channels: { sms: { body: "x" } } })
    const { data } = (await patch(project, id, { channels: { email: null } })).body
    expect([Object.keys(data.channels), data.html]).toEqual([["sms"], null])
    const last = await patch(project, id, { channels: { sms: null } })
    expect(refusal(last)).toEqual([422, "missing_required_field"])
  })

  test("the list of versions is newest first, and pages", async () => {
    const project = await service.project()
    const { id } = await made(project)
    for (const subject of ["2", "3", "4"]) await patch(project, id, { subject, draft: true })
    const whole = (await project.get(`${ALL}/${id}/versions`)).body
    expect(whole.data.map((one: { version: number }) => one.version)).toEqual([4, 3, 2, 1])
    expect(whole.data.map((one: { published: boolean }) => one.published)).toEqual([
      false,
      false,
      false,
      true,
    ])
    expect(whole.data[0]).toMatchObject({
      created_by: { type: "key", id: project.key_id },
      note: null,
    })
    const first = (await project.get(`${ALL}/${id}/versions?limit=3`)).body
    const rest = await project.get(`${ALL}/${id}/versions?cursor=${first.meta.next_cursor}`)
    expect(rest.body.data.map((one: { version: number }) => one.version)).toEqual([1])
    const around = await project.get(`${ALL}/${id}/versions?before=1&limit=2`)
    expect(around.body.data.map((one: { version: number }) => one.version)).toEqual([3, 2])
    for (const version of ["9", "x", "0"]) {
      expect(refusal(await project.get(`${ALL}/${id}/versions/${version}`))).toEqual([
        404,
        "not_found",
      ])
    }
  })

  test("going back makes a new version with the old texts, and publishes it", async () => {
    const project = await service.project()
    const { id } = await made(project)
    await patch(project, id, { subject: "Two", name: "renamed" })
    const { status, body } = await project.post(`${ALL}/${id}/rollback`, { version: 1 })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({
      version: 3,
      published_version: 3,
      subject: "Receipt {{number}}",
      name: "renamed",
    })
    const [newest] = (await project.get(`${ALL}/${id}/versions`)).body.data
    expect(newest.note).toBe("Rolled back to version 1.")
    const lost = await project.post(`${ALL}/${id}/rollback`, { version: 9 })
    expect(refusal(lost)).toEqual([404, "not_found"])
  })

  test("an older version is published by its number", async () => {
    const project = await service.project()
    const { id } = await made(project)
    await patch(project, id, { subject: "Two" })
    const { data } = (await project.post(`${ALL}/${id}/publish`, { version: 1 })).body
    expect([data.version, data.published_version]).toEqual([2, 1])
    const next = (await patch(project, id, { subject: "Three" })).body.data
    expect([next.version, next.published_version]).toEqual([3, 1])
    expect(refusal(await project.post(`${ALL}/${id}/publish`, { version: 7 }))).toEqual([
      404,
      "not_found",
    ])
  })

  test("changes that come together each make one", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const subjects = ["a", "b", "c", "d"]
    const answers = await Promise.all(subjects.map((subject) => patch(project, id, { subject })))
    const versions = answers
      .filter(({ status }) => status === 200)
      .map(({ body }) => body.data.version)
    expect(new Set(versions).size).toBe(versions.length)
    const rows = await store.read
      .select()
      .from(templateVersions)
      .where(eq(templateVersions.template_id, id))
    expect(rows.length).toBe(versions.length + 1)
  })
})

describe("templates that include others", () => {
  test("must find them published, and drafts need not", async () => {
    const project = await service.project()
    const page = { name: "page", html: "a\n {{> footer}}" }
    const refused = await project.post(ALL, page)
    expect(refusal(refused)).toEqual([422, "invalid_template"])
    expect(refused.body.error.details).toMatchObject({ field: "html", line: 2, column: 2 })
    const draft = await made(project, { ...page, draft: true })
    const early = await project.post(`${ALL}/${draft.id}/publish`, {})
    expect(refusal(early)).toEqual([409, "conflict"])
    const footer = await made(project, { name: "footer", html: "bye" })
    expect((await project.post(`${ALL}/${draft.id}/publish`, {})).status).toBe(200)

    for (const [verb, answer] of [
      ["archive", await project.post(`${ALL}/${footer.id}/archive`)],
      ["delete", await project.call("DELETE", `${ALL}/${footer.id}`)],
      ["rename", await patch(project, footer.id, { name: "foot" })],
    ] as const) {
      expect([verb, ...refusal(answer)]).toEqual([verb, 409, "conflict"])
      const { used_by } = answer.body.error.details
      expect(used_by).toEqual({
        workflows: [],
        broadcasts: [],
        templates: [{ id: draft.id, name: "page" }],
      })
    }
    const forced = await project.call("DELETE", `${ALL}/${footer.id}?force=true`)
    expect(forced.body.data).toEqual({ id: footer.id, deleted: true })
  })

  test("may be five levels deep, and no circle", async () => {
    const project = await service.project()
    await made(project, { name: "p5", html: "end" })
    for (const n of [4, 3, 2, 1, 0]) await made(project, { name: `p${n}`, html: `{{> p${n + 1}}}` })
    const sixth = await project.post(ALL, { name: "top", html: "{{> p0}}" })
    expect(refusal(sixth)).toEqual([422, "invalid_template"])
    const list = (await project.get(`${ALL}?search=p5`)).body.data
    const circle = await patch(project, list[0].id, { html: "{{> p3}}" })
    expect(circle.body.error.message).toContain("circle")
  })

  test("a layout must have a place for the text", async () => {
    const project = await service.project()
    const plain = await made(project, { name: "plain", html: "nothing" })
    const refused = await project.post(ALL, { name: "x", html: "y", layout_id: plain.id })
    expect(refused.body.error.details).toMatchObject({ field: "layout_id" })
    const layout = await made(project, { name: "layout", html: "<main>{{{content}}}</main>" })
    const data = await made(project, { layout_id: layout.id })
    expect(data.layout_id).toBe(layout.id)
    expect(refusal(await project.post(`${ALL}/${layout.id}/archive`))).toEqual([409, "conflict"])
    const places = {
      html: { html: "<main>nothing</main>" },
      text: { text: "nothing" },
      "locales.de.html": { locales: { de: { html: "<main>nichts</main>" } } },
    }
    for (const [field, change] of Object.entries(places)) {
      const { error } = (await patch(project, layout.id, change)).body
      expect([error.code, error.details.field]).toEqual(["invalid_template", field])
    }
    expect((await patch(project, layout.id, { text: "-- {{{content}}}" })).status).toBe(200)
    const strange = await made(await service.project(), { name: "layout", html: "{{{content}}}" })
    const foreign = await project.post(ALL, { name: "y", html: "y", layout_id: strange.id })
    expect(refusal(foreign)).toEqual([422, "invalid_template"])
  })
})

describe("lists", () => {
  test("filter by text, channel, status and tag, without texts", async () => {
    const project = await service.project()
    await made(project, { name: "order-paid", tags: ["shop"], description: "Große Freude" })
    const sms = await made(project, {
      name: "code",
      html: undefined,
      subject: undefined,
      channels: { sms: { body: "{{code}}" } },
      tags: ["Auth"],
    })
    await made(project, { name: "later", draft: true })
    await project.post(`${ALL}/${sms.id}/archive`)
    const named = async (query: string) => {
      const { body } = await project.get(`${ALL}?${query}`)
      expect(body.meta.total).toBe(body.data.length)
      return body.data.map(({ name }: { name: string }) => name)
    }
    expect(await named("")).toEqual(["later", "code", "order-paid"])
    expect(await named("search=PAID")).toEqual(["order-paid"])
    expect(await named("search=große")).toEqual(["order-paid"])
    expect(await named("search=100%25")).toEqual([])
    expect(await named("channel=sms")).toEqual(["code"])
    expect(await named("status=archived")).toEqual(["code"])
    expect(await named("status=draft")).toEqual(["later"])
    expect(await named("tag=shop")).toEqual(["order-paid"])
    expect(await named("tag=sho")).toEqual([])
    expect(refusal(await project.get(`${ALL}?status=gone`))).toEqual([422, "validation_error"])
    const [first] = (await project.get(ALL)).body.data
    for (const field of ["html", "text", "channels"]) expect(first).not.toHaveProperty(field)
  })
})

describe("a copy", () => {
  test("has the texts, and a name that is free", async () => {
    const project = await service.project()
    const source = await made(project, { tags: ["t"], description: "d" })
    const copy = async (body: object) => project.post(`${ALL}/${source.id}/duplicate`, body)
    const first = await copy({})
    expect(first.status).toBe(201)
    expect(first.body.data).toMatchObject({
      name: "receipt-copy",
      html: source.html,
      tags: ["t"],
      description: "d",
      version: 1,
      status: "published",
    })
    expect((await copy({})).body.data.name).toBe("receipt-copy-2")
    expect((await copy({})).body.data.name).toBe("receipt-copy-3")
    expect((await copy({ name: "mine" })).body.data.name).toBe("mine")
    expect(refusal(await copy({ name: "mine" }))).toEqual([409, "conflict"])
    expect(refusal(await copy({ name: "Not A Name" }))).toEqual([422, "validation_error"])
  })
})

describe("what is gone, and what is another's", () => {
  test("a name is no id, and a template of another project is as absent as one that never was", async () => {
    const project = await service.project()
    const stranger = await service.project()
    const { id, name } = await made(project)
    for (const [whose, which] of [
      [project, name],
      [project, NOBODY],
      [stranger, id],
    ] as const) {
      const path = `${ALL}/${which}`
      const answers = [
        await whose.get(path),
        await patch(whose, which, { subject: "x" }),
        await whose.call("PUT", path, { body: { name: "n", text: "x" } }),
        await whose.call("DELETE", path),
        await whose.post(`${path}/publish`, {}),
        await whose.post(`${path}/archive`),
        await whose.post(`${path}/duplicate`, {}),
        await whose.get(`${path}/versions`),
        await whose.get(`${path}/versions/1`),
        await whose.post(`${path}/rollback`, { version: 1 }),
      ]
      for (const answer of answers) expect(refusal(answer)).toEqual([404, "template_not_found"])
    }
  })

  test("a deleted template is gone with its versions, and its name is free", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const { body } = await project.call("DELETE", `${ALL}/${id}`)
    expect(body.data).toEqual({ id, deleted: true })
    expect(refusal(await project.call("DELETE", `${ALL}/${id}`))).toEqual([
      404,
      "template_not_found",
    ])
    const left = await store.read
      .select()
      .from(templateVersions)
      .where(eq(templateVersions.template_id, id))
    expect(left).toEqual([])
    await made(project)
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })

  test("an archived template comes back by publishing", async () => {
    const project = await service.project()
    const { id } = await made(project)
    const { data } = (await project.post(`${ALL}/${id}/archive`)).body
    expect(data).toMatchObject({ status: "archived", published_version: 1 })
    expect((await project.post(`${ALL}/${id}/archive`)).body.data.status).toBe("archived")
    expect((await project.post(`${ALL}/${id}/publish`, {})).body.data.status).toBe("published")
  })

  test("the audit log tells each change, without the texts", async () => {
    const project = await service.project()
    const { id } = await made(project)
    await patch(project, id, { subject: "Two" })
    await project.post(`${ALL}/${id}/archive`)
    await project.post(`${ALL}/${id}/publish`, {})
    await project.call("DELETE", `${ALL}/${id}`)
    const about = and(eq(auditLog.target_id, id), eq(auditLog.target_type, "template"))
    const rows = await store.read.select().from(auditLog).where(about).orderBy(auditLog.id)
    expect(rows.map(({ action }) => action)).toEqual([
      "template.created",
      "template.updated",
      "template.archived",
      "template.published",
      "template.deleted",
    ])
    expect(JSON.stringify(rows)).not.toContain("Hello")
    const known = await store.read.select().from(templates).where(eq(templates.id, id))
    expect(known).toEqual([])
  })

  test("a repeated request with the same key makes one template", async () => {
    const project = await service.project()
    const key = { "idempotency-key": "once" }
    const body = { name: "once", text: "x" }
    const first = await project.post(ALL, body, key)
    const second = await project.post(ALL, body, key)
    expect(second.body.data).toEqual(first.body.data)
    expect((await project.get(ALL)).body.meta.total).toBe(1)
  })
})
