import { afterAll, describe, expect, test } from "bun:test"
import { ApiError } from "../../src/core/errors"
import { openWorkers } from "../../src/core/workers"
import type { TemplateProblem } from "../../src/templates/handlebars"
import { SOURCE_BYTES } from "../../src/templates/limits"
import { renderTemplates } from "../../src/templates/render-templates-task"
import { checkTransform, renderTransform, transform } from "../../src/templates/transform"
import { transformInThread } from "../../src/templates/transform-task"
import fc from "../harness/properties"
import { quietLog } from "../harness/quiet"

quietLog()

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())

const render = async (source: string, data: unknown) => {
  const rendered = await transform(workers, source, data)
  return "text" in rendered ? rendered.text : rendered.problem.reason
}

const problem = async (source: string, data: unknown = {}): Promise<TemplateProblem> => {
  const rendered = await transform(workers, source, data)
  if ("text" in rendered) throw new Error(`rendered to ${rendered.text}`)
  return rendered.problem
}

describe("renders", () => {
  test.each<[string, unknown, string]>([
    ["plain", {}, "plain"],
    ["Hello {{name}}!", { name: "Zoë" }, "Hello Zoë!"],
    ["{{a.b.[c d]}}", { a: { b: { "c d": 1 } } }, "1"],
    ["{{#if a}}yes{{else}}no{{/if}}", { a: false }, "no"],
    ["{{#unless a}}no{{/unless}}", {}, "no"],
    ["{{#each a}}{{@index}}{{this}}{{#unless @last}},{{/unless}}{{/each}}", { a: [7, 8] }, "07,18"],
    ["{{#each a}}{{@key}}={{this}};{{/each}}", { a: { x: 1, y: 2 } }, "x=1;y=2;"],
    ["{{#with a}}{{b}}{{/with}}", { a: { b: 1 } }, "1"],
    ["{{lookup a 1}}", { a: [5, 6] }, "6"],
    ["{{a.length}}", { a: [5, 6] }, "2"],
    ["{{#if missing}}x{{/if}}{{#each missing}}x{{/each}}", {}, ""],
    ["{{nothing}}", { nothing: null }, ""],
    ["{{@root.a}}", { a: 1 }, "1"],
    ["{{! a remark }}{{~a~}} ", { a: 1 }, "1"],
  ])("%j with %j", async (source, data, text) => expect(await render(source, data)).toBe(text))

  test("what could end a string of JSON is escaped, and nothing else", async () => {
    const data = { x: `<a href="x">'&` }
    expect(await render('"{{x}}"', data)).toBe(JSON.stringify(data.x))
    expect(await render("{{{x}}}", data)).toBe(data.x)
  })

  test("the escapes of transforms and templates do not mix, in whichever order they come", () => {
    const data = JSON.stringify({ x: '"' })
    const template = (mode: "html" | "text") => {
      const text = { field: mode, part: mode, mode, source: "{{x}}" }
      const around = { layouts: [], partials: {}, variables: [], locale: "en", timezone: "UTC" }
      const [made] = renderTemplates([
        { key: `escapes of ${mode}`, sources: { texts: [text], ...around }, data },
      ])
      return made && "texts" in made ? made.texts[mode] : undefined
    }
    const made = {
      html: () => template("html"),
      text: () => template("text"),
      json: () => Object.values(transformInThread({ source: "{{x}}", data }))[0],
    }
    for (const mode of ["json", "html", "text", "html", "json"] as const) {
      const escaped = { html: "&quot;", text: '"', json: '\\"' }[mode]
      expect(made[mode]()).toBe(escaped)
    }
  })
})

describe("a mistake has a reason and a place", () => {
  test.each<[string, string, number | null, number | null]>([
    ["{{#if a}}x", "syntax", 1, 11],
    ["a\nb {{ c d", "syntax", 2, 8],
    ["{{else}}", "syntax", 1, 1],
    ["\n{{#if a}}{{/each}}", "syntax", 2, 4],
    ["x {{upper name}}", "syntax", 1, 3],
    ["{{log 1}}", "syntax", 1, 1],
    ["{{> header}}", "syntax", 1, 1],
    ["{{#> layout}}x{{/layout}}", "syntax", 1, 1],
    ['{{#*inline "a"}}{{> a}}{{/inline}}', "syntax", 1, 1],
    ["{{* a}}", "syntax", 1, 1],
    ["{{a/../b}}", "syntax", 1, 3],
    ["\n  {{missing}}", "missing", 2, 5],
    ["{{a.b}}", "missing", 1, 3],
    ["{{#each}}{{/each}}", "failed", null, null],
    ["{{a}}", "failed", null, null],
    ["{{#helperMissing}}{{/helperMissing}}", "failed", null, null],
  ])("%j", async (source, reason, line, column) => {
    const found = await problem(source, { a: { x: 1 } })
    expect([found.reason, found.line, found.column]).toEqual([reason as never, line, column])
    expect(found.message).not.toContain("\n")
    expect(found.message).not.toContain(".ts")
  })

  test("of which those of syntax are found without data", async () => {
    const found = (source: string) =>
      checkTransform(workers, source).catch(({ details }: ApiError) => details)
    expect(await found("{{#if a}}")).toMatchObject({ reason: "syntax" })
    expect(await found("{{nope 1}}")).toMatchObject({ line: 1, column: 1 })
    expect(await found("{{missing}}")).toBeUndefined()
    expect(await found("{{json a}}")).toBeUndefined()
  })
})

describe("nothing but the data can be reached", () => {
  test.each([
    "{{constructor.name}}",
    "{{__proto__.x}}",
    "{{a.constructor}}",
    "{{a.__proto__}}",
    "{{a.toString}}",
    "{{lookup a 'constructor'}}",
    "{{lookup (lookup a 'constructor') 'constructor'}}",
    "{{#with (lookup a '__proto__')}}{{this}}!{{/with}}",
    "{{#each a}}{{constructor}}{{/each}}",
    "{{@root.constructor}}",
    "{{lookup 'text' 'constructor'}}",
    "{{#with 'text'}}{{constructor}}{{/with}}",
    "{{@partial-block}}",
  ])("%s", async (source) => {
    const text = await render(source, { a: { x: {} } })
    expect(["", "missing", "failed", "syntax"]).toContain(text)
  })

  test("a member called as what objects inherit is data all the same", async () => {
    const data = JSON.parse('{"__proto__": {"x": 1}, "constructor": "c"}')
    expect(["1", "missing"]).toContain(await render("{{__proto__.x}}", data))
    expect(await render("{{safe}}", JSON.parse('{"__proto__": {"safe": 1}}'))).toBe("missing")
  })

  test("a source that is no text is no template: a forged tree would be code", () => {
    const tree = { type: "Program", body: [] } as unknown as string
    expect(transformInThread({ source: tree, data: "{}" })).toMatchObject({
      problem: { reason: "syntax" },
    })
  })
})

describe("limits", () => {
  test("of the source", async () => {
    expect(await render("x".repeat(SOURCE_BYTES), {})).toHaveLength(SOURCE_BYTES)
    expect(await render("x".repeat(SOURCE_BYTES + 1), {})).toBe("too_large")
    expect(await render("ü".repeat(SOURCE_BYTES / 2 + 1), {})).toBe("too_large")
  })

  test("of the output", async () => {
    const data = { a: new Array(2048).fill(0), b: new Array(2049).fill(0) }
    const kibibyte = "x".repeat(1024)
    expect(await render(`{{#each a}}${kibibyte}{{/each}}`, data)).toHaveLength(2_097_152)
    expect(await render(`{{#each b}}${kibibyte}{{/each}}`, data)).toBe("too_large")
  })

  test("of time, after which the next one is rendered", async () => {
    const each = "{{#each @root.a}}"
    const source = each.repeat(8) + "{{/each}}".repeat(8)
    expect(await render(source, { a: new Array(100).fill(1) })).toBe("timeout")
    expect(await render("{{a}}", { a: 1 })).toBe("1")
  })

  test("of depth", async () => {
    const nested = (depth: number) => "{{#if a}}".repeat(depth) + "{{/if}}".repeat(depth)
    expect(await render(nested(50), { a: 1 })).toBe("")
    expect(await render(nested(200), { a: 1 })).toBe("syntax")
    expect(["syntax", "timeout"]).toContain(await render(nested(10_000), { a: 1 }))
    const brackets = `{{#if ${"(lookup ".repeat(200)}a${" 1)".repeat(200)}}}{{/if}}`
    expect(await render(brackets, { a: 1 })).toBe("syntax")
  })
})

describe("whatever comes", () => {
  const piece = fc.constantFrom(
    ...[
      "{{",
      "}}",
      "{{{",
      "}}}",
      "#if ",
      "/if",
      "#each ",
      "/each",
      "else",
      "this",
      "../",
      "a",
      ".",
    ],
    ...["(", ")", "|", "as", "=", '"', "'", "[", "]", "@root", "lookup ", "~", "!", "--", "^", "&"],
    ...["\n", "é", "\u0000", "\ud800", "<", "1", "null", "true"],
  )
  const source = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(""))

  test("renders or says why, without throwing, and in one line", () => {
    fc.assert(
      fc.property(source, (text) => {
        const rendered = transformInThread({ source: text, data: '{"a":{"a":[1,"x"]}}' })
        if ("problem" in rendered) expect(rendered.problem.message).not.toContain("\n")
        else expect(rendered.text).toBeString()
      }),
    )
  })

  test("a value inside of a JSON string cannot leave it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const data = JSON.stringify({ value })
        const inside = transformInThread({ data, source: '{"a": "{{value}}"}' })
        const whole = transformInThread({ data, source: '{"a": {{json value}} }' })
        for (const rendered of [inside, whole]) {
          if ("problem" in rendered) throw new Error(rendered.problem.message)
          expect(JSON.parse(rendered.text)).toEqual({ a: JSON.parse(data).value })
        }
      }),
    )
  })
})

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
