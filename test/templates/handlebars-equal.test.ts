import { expect, test } from "bun:test"
import Handlebars from "handlebars"
import { renderTemplates } from "../../src/templates/render-templates-task"
import { transformInThread } from "../../src/templates/transform-task"
import fc from "../harness/properties"

/** The blocks and the paths that both know, over data in which every name has a value. */
const DATA = {
  a: "x",
  b: { c: 1, d: '<i> & "q"' },
  yes: true,
  no: false,
  empty: [],
  list: [
    { n: 1, sub: [{ m: "<1>" }] },
    { n: 2, sub: [] },
  ],
  words: ["u", "v"],
}

const anywhere = fc.constantFrom(
  "{{@root.a}}",
  "{{{@root.b.d}}}",
  "{{@root.b.d}}",
  " \n ",
  "text",
  "{{! no }}",
)
const atRoot = fc.oneof(
  anywhere,
  fc.constantFrom("{{a}}", "{{{b.d}}}", "{{~b.c~}}", "{{this.a}}", "{{words}}"),
)
const inItem = fc.oneof(
  anywhere,
  fc.constantFrom(
    "{{n}}",
    "{{@index}}",
    "{{@first}}{{@last}}",
    "{{../a}}",
    "{{#each sub}}{{m}}{{../n}}{{../../a}}{{/each}}",
  ),
)
const inWord = fc.oneof(
  anywhere,
  fc.constantFrom("{{this}}", "{{.}}", "{{@key}}", "{{#if @last}}.{{/if}}"),
)

const some = (part: fc.Arbitrary<string>) =>
  fc.array(part, { maxLength: 4 }).map((parts) => parts.join(""))

const block = fc.oneof(
  fc
    .tuple(fc.constantFrom("yes", "no", "empty", "b.c", "b.nothing"), some(atRoot), some(atRoot))
    .map(
      ([name, inner, other]) => `{{#if ${name}}}${inner}{{else if list}}${other}{{else}}z{{/if}}`,
    ),
  fc
    .tuple(fc.constantFrom("no", "yes"), some(atRoot))
    .map(([name, inner]) => `{{#unless ${name}}}${inner}{{/unless}}`),
  fc
    .tuple(fc.constantFrom("^if", "^unless", "#unless"), some(atRoot), some(atRoot))
    .map(([name, inner, other]) => {
      const end = name.slice(1)
      return `{{~${name} no}} ${inner} {{^~}} ${other} {{/${end}}}{{${name} list}}${inner}\n{{/${end}}}`
    }),
  fc
    .tuple(fc.constantFrom("list", "empty", "b"), some(atRoot), some(anywhere))
    .map(([name, none, inner]) => `{{^each ${name}}}${none}{{else}}${inner}{{@key}}{{/each}}`),
  some(inItem).map((inner) => `{{^each list as |one|}}none{{else}}${inner}{{/each}}`),
  some(atRoot).map(
    (inner) => `{{^with b}}z{{else}}{{c}}{{/with}}{{^with no}}\n${inner}\n{{/with}}`,
  ),
  some(inItem).map((inner) => `{{#each list}}${inner}{{else}}none{{/each}}`),
  some(inItem).map(
    (inner) => `\n  {{#each list as |one at|}}\n${inner}{{one.n}}{{at}}\n  {{/each}}\n`,
  ),
  some(inWord).map((inner) => `{{#each words}}${inner}{{/each}}`),
  some(anywhere).map((inner) => `{{#with b}}${inner}{{c}}{{../a}}{{/with}}`),
  fc.constant("{{#each empty}}x{{else}}none{{/each}}"),
)

/** In both of our engines: of the templates, and of the transforms of webhooks. */
function rendered(source: string): unknown[] {
  const text = { field: "html", part: "html", mode: "html" as const, source }
  const sources = {
    texts: [text],
    layouts: [],
    partials: {},
    variables: [],
    locale: "en",
    timezone: "UTC",
  }
  const data = JSON.stringify(DATA)
  const made = transformInThread({ source, data })
  const [answer] = renderTemplates([{ key: source, sources, data }]) // and plain Handlebars escapes for html
  return [
    answer && "texts" in answer ? answer.texts.html : answer,
    "text" in made ? made.text : made,
  ]
}

// Plain Handlebars adds numbers up where it prints them side by side.
test.each([
  ["{{{b.c}}}{{{b.c}}}", "11"],
  ["{{&b.c}}{{{b.c}}}{{b.c}}", "111"],
  ["{{{yes}}}{{{no}}}", "truefalse"],
  ["{{#if yes}}{{{b.c}}}{{/if}}{{{b.c}}}", "11"],
  ["{{#each list}}{{{@index}}}{{{n}}}{{/each}}", "0112"],
  ["{{#each list as |one at|}}{{{one.n}}}{{{at}}}{{/each}}", "1021"],
  ["{{#with b}}{{{c}}}{{{../words}}}{{{c}}}{{/with}}", "1u,v1"],
  ["{{{b.d}}}{{{b.d}}}", '<i> & "q"<i> & "q"'],
  ["{{{json b.c}}}{{{json b.c}}}", "11"],
])("what %s prints stands side by side", (source, expected) => {
  expect(rendered(source)).toEqual([expected, expected])
})

const template = some(fc.oneof(atRoot, block))

test("what plain Handlebars can do, a template does alike", () => {
  fc.assert(
    fc.property(template, (source) => {
      const [made, transformed] = rendered(source)
      expect(made).toBe(Handlebars.compile(source)(DATA))
      // In JSON only the escaping is another one.
      if (!/[<&"\n]/.test(`${made}`)) expect(transformed).toBe(made)
    }),
    { numRuns: 500, seed: 14 },
  )
})
