import { expect, test } from "bun:test"
import { mail } from "../harness/mail"
import fc from "../harness/properties"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { judged, PATIENCE_MS } from "./judging"

const service = await sharedService()

const names = fc.constantFrom(
  ...["a", "b.c", "list", "o", "this", ".", "../a", "@index", "@root.a", "@key", "@first", "@nope"],
  ...["constructor", "__proto__", "a.__proto__.x", "toString", "hasOwnProperty", "[a b]", "§"],
  ...["helperMissing", "blockHelperMissing", "lookup", "log", "if", "each", "date", "link", "null"],
)

const literals = fc.oneof(
  fc.constantFrom("1", "-1", "1.5", "true", "null", "undefined", '"x"', "'UTC'", "'EUR'", "1e999"),
  fc.string({ maxLength: 8 }).map((text) => JSON.stringify(text)),
)

const helpers = fc.constantFrom(
  ...["eq", "gt", "and", "or", "not", "default", "upper", "capitalize", "truncate", "date"],
  ...["number", "currency", "plural", "json", "urlencode", "link", "lookup", "log", "nothing"],
)

const { value } = fc.letrec<{ value: string; call: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    names,
    literals,
    tie("call").map((call) => `(${call})`),
  ),
  call: fc
    .tuple(helpers, fc.array(tie("value"), { maxLength: 4 }))
    .map(([helper, values]) => [helper, ...values].join(" ")),
}))

const call = fc
  .tuple(helpers, fc.array(value, { maxLength: 4 }))
  .map(([helper, values]) => [helper, ...values].join(" "))

const hash = fc.constantFrom(
  "",
  " format='full'",
  " locale='de'",
  " x=a",
  " timezone=a",
  " decimals=99",
)

const BLOCKS = ["if", "unless", "each", "with", "eq", "list", "constructor", "helperMissing"]

const { text } = fc.letrec<{ text: string; part: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: "small" },
    fc.string({ maxLength: 20, unit: "binary" }),
    fc.constantFrom(
      "{{",
      "}}",
      "{{{",
      "}}}",
      "{{!--",
      "--}}",
      "\\{{",
      "{{~",
      "~}}",
      "{{else}}",
      "\n",
    ),
    value.map((one) => `{{${one}}}`),
    value.map((one) => `{{{${one}}}}`),
    fc.tuple(call, hash).map(([one, more]) => `{{${one}${more}}}`),
    names.map((name) => `{{> ${name}}}`),
    fc.constantFrom("{{#> a}}x{{/a}}", '{{#*inline "a"}}{{> a}}{{/inline}}', "{{* a}}", "{{&a}}"),
    fc
      .tuple(
        fc.constantFrom(...BLOCKS),
        value,
        tie("text"),
        fc.constantFrom("", "{{else}}n", "{{^}}n"),
      )
      .map(([block, of, inner, other]) => `{{#${block} ${of}}}${inner}${other}{{/${block}}}`),
    fc
      .tuple(value, tie("text"))
      .map(([of, inner]) => `{{#each ${of} as |one at|}}${inner}{{/each}}`),
  ),
  text: fc.array(tie("part"), { maxLength: 6 }).map((parts) => parts.join("")),
}))

const data = fc.dictionary(
  fc.constantFrom("a", "b", "list", "o", "constructor", "toString", "length", "date"),
  fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.record({ a: fc.jsonValue({ maxDepth: 1 }) }), { maxLength: 20 }),
    fc.constantFrom(
      "2026-11-22T10:00:00Z",
      "<b>",
      "\r\nBcc: x",
      "https://a.test",
      12.5,
      "\0",
      "\ud800",
    ),
  ),
)

const send = fc.record({ subject: text, html: text, text: fc.option(text), variables: data })

const AT_ONCE = 8

test(
  "every made-up template ends in mail or in a documented refusal, while others go on sending",
  async () => {
    const project = await service.project({ plan: "enterprise" })
    const other = await service.project({ plan: "enterprise" })
    const outcomes = new Map<string, number>()
    const sends = fc.sample(send, { seed: 14, numRuns: sizes.templates })
    let rest = sends.length
    const fuzz = async () => {
      for (let one = sends[--rest]; one; one = sends[--rest]) {
        const { status, body } = await judged(project.post("/v1/emails", JSON.stringify(mail(one))))
        const outcome = status === 201 ? "sent" : body.error.code
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    }
    let sent = 0
    const goOn = async () => {
      while (rest > 0) {
        expect((await judged(other.post("/v1/emails", mail()))).status).toBe(201)
        sent += 1
      }
    }
    await Promise.all([...Array.from({ length: AT_ONCE }, fuzz), goOn()])
    const documented = ["sent", "invalid_template", "template_render_failed"]
    // JSON itself refuses a half of a surrogate pair, and a depth of values.
    const known = [...documented, "validation_error", "missing_required_field", "invalid_json"]
    expect([...outcomes.keys()].filter((outcome) => !known.includes(outcome))).toEqual([])
    for (const outcome of documented)
      expect([outcome, outcomes.get(outcome) ?? 0]).not.toEqual([outcome, 0])
    expect(sent).toBeGreaterThan(0)
  },
  PATIENCE_MS,
)
