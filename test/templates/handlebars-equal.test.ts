import { expect, test } from "bun:test"
import Handlebars from "handlebars"
import { renderTemplates } from "../../src/templates/render-templates-task"
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
  some(inItem).map((inner) => `{{#each list}}${inner}{{else}}none{{/each}}`),
  some(inItem).map(
    (inner) => `\n  {{#each list as |one at|}}\n${inner}{{one.n}}{{at}}\n  {{/each}}\n`,
  ),
  some(inWord).map((inner) => `{{#each words}}${inner}{{/each}}`),
  some(anywhere).map((inner) => `{{#with b}}${inner}{{c}}{{../a}}{{/with}}`),
  fc.constant("{{#each empty}}x{{else}}none{{/each}}"),
)

const template = some(fc.oneof(atRoot, block))

test("what plain Handlebars can do, a template does alike", () => {
  fc.assert(
    fc.property(template, (source) => {
      const text = { field: "html", part: "html", mode: "html" as const, source }
      const sources = {
        texts: [text],
        layouts: [],
        partials: {},
        variables: [],
        locale: "en",
        timezone: "UTC",
      }
      const [answer] = renderTemplates([{ key: source, sources, data: JSON.stringify(DATA) }])
      expect(answer).toEqual({
        texts: { html: Handlebars.compile(source)(DATA) },
        without_value: [],
      })
    }),
    { numRuns: 500, seed: 14 },
  )
})
