import { afterAll, describe, expect, test } from "bun:test"
import { openWorkers } from "../../src/core/workers"
import { renderTemplates } from "../../src/templates/render-templates-task"
import { TemplateRenderer } from "../../src/templates/template-renderer"
import { keyed } from "../../src/templates/usable-template"
import { refusal } from "../harness/client"
import { mail } from "../harness/mail"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()

const each = (depth: number, inner: string) =>
  `${"{{#each @root.l}}".repeat(depth)}${inner}${"{{/each}}".repeat(depth)}`
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at)

/** Attacks on Handlebars: the fields of a send, and the code and reason of its refusal. */
const ATTACKS: [string, Record<string, unknown>, string, string | undefined][] = [
  [
    "a block without a helper",
    { html: "{{#helperMissing}}{{/helperMissing}}" },
    "invalid_template",
    "syntax",
  ],
  [
    "the function that makes functions",
    { html: "{{a.constructor.constructor}}" },
    "template_render_failed",
    undefined,
  ],
  [
    "the prototype of everything",
    { html: "{{__proto__.polluted}} {{a.__proto__.x}}" },
    "template_render_failed",
    undefined,
  ],
  [
    "a look-up of what is hidden",
    { html: "{{lookup a 'constructor'}}" },
    "invalid_template",
    "syntax",
  ],
  [
    "loops in loops",
    { html: each(4, "x"), variables: { a: {}, l: numbers(100) } },
    "template_render_failed",
    "timeout",
  ],
  [
    "a result that grows",
    { html: each(3, "x".repeat(100)), variables: { a: {}, l: numbers(40) } },
    "template_render_failed",
    "failed",
  ],
  [
    "blocks 5,000 deep",
    { html: `${"{{#if a}}".repeat(5000)}${"{{/if}}".repeat(5000)}` },
    "invalid_template",
    "syntax",
  ],
  [
    "a partial that includes itself",
    { html: '{{#*inline "a"}}{{> a}}{{/inline}}{{> a}}' },
    "invalid_template",
    "syntax",
  ],
]

describe("an attack", () => {
  test.each(ATTACKS)(
    "by %s is refused, in a send and in a template",
    async (_, fields, code, reason) => {
      const project = await service.project()
      const send = { variables: { a: {} }, ...mail(fields) }
      const answer = await project.post("/v1/emails", send)
      expect(refusal(answer)).toEqual([422, code])
      if (reason) expect(answer.body.error.details.reason).toBe(reason)
      const { html } = fields as { html: string }
      const stored = await project.post("/v1/templates", { name: "attack", subject: "s", html })
      const later = await project.post("/v1/emails", {
        ...send,
        html: undefined,
        template_id: "attack",
      })
      expect(stored.status === 201 ? refusal(later) : refusal(stored)).toEqual([422, code])
      expect((await project.get("/v1/emails")).body.meta.total).toBe(0)
      const harmless = { subject: "{{a}}", html: "{{a}}", variables: { a: "x" } }
      expect((await project.post("/v1/emails", mail(harmless))).status).toBe(201)
    },
  )

  test.each([
    { html: { type: "Program", body: [] } },
    { html: [{ type: "Program" }] },
    { subject: { type: "Program", body: [] } },
  ])("by a forged tree in %j is no text", async (fields) => {
    const project = await service.project()
    const sent = await project.post("/v1/emails", mail({ ...fields, variables: {} }))
    expect(refusal(sent)).toEqual([422, "validation_error"])
    const stored = await project.post("/v1/templates", { name: "forged", ...fields })
    expect(refusal(stored)).toEqual([422, "validation_error"])
  })
})

describe("a template that hangs", () => {
  const text = (source: string) =>
    keyed({
      texts: [{ field: "html", part: "html", mode: "html", source }],
      ...{ layouts: [], partials: {}, variables: [], locale: "en", timezone: "UTC" },
    })
  const HANG = text(each(4, "x"))
  const QUICK = text("{{n}}")
  const many = JSON.stringify({ l: numbers(100) })
  const open = (size: number) => {
    const workers = openWorkers({ size })
    const renderer = new TemplateRenderer(workers)
    afterAll(() => Promise.all([workers.close(), renderer.close()]))
    return { renderer }
  }

  test("delays what shares its task only, and that is rendered after it", async () => {
    const { renderer } = open(2)
    const ended: string[] = []
    const told = async (name: string, rendering: Promise<object>) => {
      const answer = await rendering
      ended.push(name)
      return answer
    }
    await renderer.render("warm", QUICK, '{"n":0}')
    const hanging = told("hanging", renderer.render("one", HANG, many))
    const shared = told("shared", renderer.render("one", text("{{n}}!"), '{"n":1}'))
    const known = await told("known", renderer.render("one", QUICK, '{"n":1}'))
    expect(known).toEqual({ texts: { html: "1" }, without_value: [] })
    for (const n of numbers(5)) {
      const answer = await told("other", renderer.render("two", QUICK, JSON.stringify({ n })))
      expect(answer).toEqual({ texts: { html: String(n) }, without_value: [] })
    }
    expect(await hanging).toMatchObject({ problem: { reason: "timeout" } })
    expect(await shared).toEqual({ texts: { html: "1!" }, without_value: [] })
    expect(ended).toEqual(["known", ...numbers(5).map(() => "other"), "hanging", "shared"])
  })

  test("holds no thread of the pool once it took too long, in however many projects", async () => {
    const { renderer } = open(1)
    for (const project of ["one", "two"]) {
      const answer = await renderer.render(project, text(`${project} ${each(4, "x")}`), many)
      expect(answer).toMatchObject({ problem: { reason: "timeout" } })
    }
    await renderer.render("three", QUICK, '{"n":0}')
    const ended: string[] = []
    const hanging = ["one", "two"].map(async (project) => {
      await renderer.render(project, text(`${project} ${each(4, "x")}`), many)
      ended.push(project)
    })
    const fresh = renderer.render("one", text("{{n}} of a project with trouble"), '{"n":1}')
    for (const n of numbers(5)) {
      const answer = await renderer.render("three", QUICK, JSON.stringify({ n }))
      expect(answer).toEqual({ texts: { html: String(n) }, without_value: [] })
    }
    expect(ended).toEqual([])
    await fresh
    expect(ended).toEqual(["one", "two"])
    await Promise.all(hanging)
  })

  test("does not stop what a thread has rendered before in its project", async () => {
    const { renderer } = open(1)
    await renderer.render("one", QUICK, '{"n":0}')
    await renderer.render("one", HANG, many)
    let has_ended = false
    const hanging = renderer.render("one", HANG, many).then(() => {
      has_ended = true
    })
    for (const n of numbers(5)) {
      const answer = await renderer.render("one", QUICK, JSON.stringify({ n }))
      expect(answer).toEqual({ texts: { html: String(n) }, without_value: [] })
    }
    expect(has_ended).toBe(false)
    await hanging
  })

  test("in its loops ends alone, and its thread goes on", () => {
    const job = ({ key, sources }: ReturnType<typeof text>, l: number[]) => ({
      ...{ key, sources, data: JSON.stringify({ l, n: 1 }) },
    })
    const [hung, quick] = renderTemplates([job(HANG, numbers(100)), job(QUICK, [])])
    const message = "Rendering took longer than 500 ms."
    expect(hung).toMatchObject({ problem: { reason: "timeout", message }, took_long: true })
    expect(quick).toEqual({ texts: { html: "1" }, without_value: [] })
  })

  test("is told from one that is quick by the processor time that it takes", () => {
    const job = ({ key, sources }: ReturnType<typeof text>, l: number[]) => ({
      ...{ key, sources, data: JSON.stringify({ l, n: 1 }) },
    })
    const long = job(text(each(3, "x")), numbers(125))
    const answers = renderTemplates([job(QUICK, []), long, job(QUICK, [])])
    expect(answers.map(({ took_long }) => took_long)).toEqual([undefined, true, undefined])
  })

  test("just not holds no thread of the pool either, once it was seen", async () => {
    const { renderer } = open(1)
    const heavy = () => renderer.render("one", text(each(3, "x")), many)
    await renderer.render("one", QUICK, '{"n":0}')
    await heavy()
    let has_ended = false
    const beside = heavy().then((answer) => {
      has_ended = true
      expect(answer).not.toHaveProperty("took_long")
    })
    for (const n of numbers(5)) {
      const answer = await renderer.render("one", QUICK, JSON.stringify({ n }))
      expect(answer).toEqual({ texts: { html: String(n) }, without_value: [] })
    }
    expect(has_ended).toBe(false)
    await beside
  })
})
