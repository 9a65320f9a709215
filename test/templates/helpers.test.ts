import { afterAll, describe, expect, test } from "bun:test"
import { openWorkers } from "../../src/core/workers"
import type { TemplateVariable } from "../../src/templates/tables"
import { TemplateRenderer } from "../../src/templates/template-renderer"
import type { TemplateText } from "../../src/templates/template-sources"
import { keyed } from "../../src/templates/usable-template"

const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())
const renderer = new TemplateRenderer(workers)

interface Around {
  mode?: "html" | "text"
  locale?: string
  variables?: Partial<TemplateVariable>[]
  partials?: Record<string, string>
  layouts?: string[]
}

const text = (source: string, mode: "html" | "text"): TemplateText => ({
  field: mode,
  part: mode,
  mode,
  source,
})

/** The rendered text, or what is wrong in a few words. */
async function render(source: string, data: object = {}, around: Around = {}): Promise<string> {
  const { mode = "html", locale = "en", variables = [], partials = {}, layouts = [] } = around
  const declared = { type: "string" as const, required: false, fallback: null, description: null }
  const sources = keyed({
    texts: [text(source, mode)],
    layouts: layouts.map((layout) => [text(layout, mode)]),
    partials: Object.fromEntries(
      Object.entries(partials).map(([name, partial]) => [name, [text(partial, mode)]]),
    ),
    variables: variables.map((one) => ({ key: "", ...declared, ...one })),
    locale,
    timezone: "UTC",
  })
  const answer = await renderer.render("project", sources, JSON.stringify(data))
  if ("texts" in answer) return answer.texts[mode] ?? ""
  if ("missing" in answer) return `missing: ${answer.missing.join(" ")}`
  return "problem" in answer ? `${answer.problem.reason}: ${answer.problem.message}` : "unknown"
}

const AT = "2026-03-29T01:05:09.000Z"

/** The golden table of the helpers: template, variables, result. */
const GOLDEN: [string, object, string][] = [
  ["{{#if a}}y{{else}}n{{/if}}", { a: 1 }, "y"],
  ["{{date d 'iso'}}", { d: "2026-07-03T10:00" }, "2026-07-03T10:00:00.000Z"],
  ["{{date d 'iso'}}", { d: "2026-07-03 10:00:30.25+0200" }, "2026-07-03T08:00:30.250Z"],
  ["{{date d 'iso'}}", { d: "2026-07-03" }, "2026-07-03T00:00:00.000Z"],
  ["{{#if a}}y{{else if b}}b{{else}}n{{/if}}", { a: 0, b: "x" }, "b"],
  ["{{#if a}}y{{else}}n{{/if}}", { a: [] }, "n"],
  ["{{#if a includeZero=true}}y{{else}}n{{/if}}", { a: 0 }, "y"],
  ["{{#unless a}}n{{else}}y{{/unless}}", { a: "" }, "n"],
  [
    "{{#each l}}{{@index}}{{this}}{{#unless @last}},{{/unless}}{{else}}-{{/each}}",
    { l: ["a", "b"] },
    "0a,1b",
  ],
  ["{{#each l}}{{this}}{{else}}-{{/each}}", { l: [] }, "-"],
  [
    "{{#each o}}{{@key}}={{this}}{{#if @first}}!{{/if}};{{/each}}",
    { o: { x: 1, y: 2 } },
    "x=1!;y=2;",
  ],
  [
    "{{#each l as |one at|}}{{at}}{{one.n}}{{../t}} {{/each}}",
    { l: [{ n: 1 }, { n: 2 }], t: "t" },
    "01t 12t ",
  ],
  [
    "{{#each l}}{{#each this}}{{v}}{{@../index}}{{../../t}}{{/each}}{{/each}}",
    { l: [[{ v: 1 }], [{ v: 2 }]], t: "t" },
    "10t21t",
  ],
  ["{{#with o}}{{n}}{{../t}}{{/with}}", { o: { n: 1 }, t: 2 }, "12"],
  ["{{#with o}}{{n}}{{else}}none{{/with}}", { o: null }, "none"],

  ["{{eq a 1}} {{eq a '1'}} {{eq a 2}} {{eq s 'x'}}", { a: 1, s: "x" }, "true true false true"],
  ["{{ne a 1}} {{ne a 2}}", { a: 1 }, "false true"],
  ["{{gt a 2}} {{gt a 3}} {{gte a 3}}", { a: 3 }, "true false true"],
  ["{{lt a 10}} {{lte a 9}} {{lt a b}}", { a: "9", b: "10" }, "true true true"],
  ["{{lt a b}} {{gt a b}}", { a: "2026-01-02T00:00:00Z", b: "2026-01-03T00:00:00Z" }, "true false"],
  ["{{#if (gt a b)}}y{{else}}n{{/if}}", { a: "x" }, "n"],
  ["{{#if (and a b)}}y{{else}}n{{/if}}{{#if (or a b)}}y{{else}}n{{/if}}", { a: 1, b: 0 }, "ny"],
  ["{{or a b 'none'}} {{and a 'x'}}", { a: "", b: "B" }, "B "],
  ["{{#if (not a)}}y{{/if}}{{not 1}}", { a: [] }, "yfalse"],
  ["{{#if (and (gt n 1) (not off))}}y{{/if}}", { n: 2 }, "y"],

  ["{{default a 'x'}} {{default b 'x'}} {{default c d 'x'}}", { a: "A", b: "", d: "D" }, "A x D"],
  ["{{default n 7}}", { n: 0 }, "0"],
  ["{{upper a}} {{lower a}} {{capitalize b}}", { a: "Äb", b: "élan vital" }, "ÄB äb Élan vital"],
  ["{{upper a}}", { a: 12 }, "12"],
  [
    "{{truncate a 5}}|{{truncate a 50}}|{{truncate a 3 '...'}}|{{truncate a 2 ''}}",
    { a: "hello world" },
    "hello…|hello world|hel...|he",
  ],
  ["{{truncate a 1}}", { a: "😀😀" }, "😀…"],

  [`{{date d}}`, { d: AT }, "March 29, 2026"],
  [
    `{{date d "short"}} {{date d "medium"}} {{date d "full"}}`,
    { d: AT },
    "3/29/26 Mar 29, 2026 Sunday, March 29, 2026",
  ],
  [`{{date d "long" "America/New_York" "de"}}`, { d: AT }, "28. März 2026"],
  [`{{date d format="dd.MM.yyyy HH:mm" timezone="Europe/Vienna"}}`, { d: AT }, "29.03.2026 03:05"],
  [
    `{{date d "EEEE, d. MMMM yy 'um' H:mm:ss" locale="de"}}`,
    { d: AT },
    "Sonntag, 29. März 26 um 1:05:09",
  ],
  [
    `{{date d "EEE d MMM h:mm a"}} {{date d "hh a"}}`,
    { d: "2026-03-29T12:30:00Z" },
    "Sun 29 Mar 12:30 PM 12 PM",
  ],
  [
    `{{date d "iso"}} {{date 0 "yyyy"}}`,
    { d: "2026-03-29T03:05:09+02:00" },
    "2026-03-29T01:05:09.000Z 1970",
  ],
  [`{{date d "time" locale="de"}}`, { d: "2026-03-29T13:05:09Z" }, "13:05"],

  [
    "{{number a}} {{number a 1}} {{number a 0 'de'}}",
    { a: 1234567.891 },
    "1,234,567.891 1,234,567.9 1.234.568",
  ],
  ["{{number a decimals=2 locale='fr'}}", { a: "1234.5" }, "1\u202f234,50"],
  [
    "{{currency a 'EUR'}} {{currency a 'jpy'}} {{currency a 'EUR' 'de'}}",
    { a: 1234.5 },
    "€1,234.50 ¥1,235 1.234,50\u00a0€",
  ],
  ["{{n}} {{plural n 'item' 'items'}}", { n: 1 }, "1 item"],
  ["{{plural n 'item' 'items'}} {{plural 0 'item' 'items'}}", { n: "2" }, "items items"],
  [`{{plural 2 few="soubory" one="soubor" other="souborů" locale="cs"}}`, {}, "soubory"],

  ["{{json o}}", { o: { a: '<"' } }, "{&quot;a&quot;:&quot;\\u003c\\&quot;&quot;}"],
  ["{{{json o}}}", { o: ["</script>"] }, '["\\u003c/script>"]'],
  ["?q={{urlencode a}}", { a: "a b&ä/" }, "?q=a%20b%26%C3%A4%2F"],
  [
    "{{link u 'Go <here>'}}",
    { u: "https://a.test/?x=1&y='" },
    `<a href="https://a.test/?x=1&amp;y=&#x27;">Go &lt;here&gt;</a>`,
  ],
  [
    "{{link u}} {{link 'mailto:a@b.test' 'Mail'}}",
    { u: "https://a.test" },
    '<a href="https://a.test">https://a.test</a> <a href="mailto:a@b.test">Mail</a>',
  ],
  ["{{upper (truncate (default a 'nobody') 3 '')}}", {}, "NOB"],
]

describe("the helpers", () => {
  test.each(GOLDEN)("%s with %j", async (source, data, result) => {
    expect(await render(source, data)).toBe(result)
  })

  test("the language of the template is theirs, where they are not told another", async () => {
    const data = { d: AT, n: 1234.5, i: "istanbul" }
    const source = "{{date d}} {{number n}} {{currency n 'EUR'}} {{upper i}}"
    expect(await render(source, data, { locale: "de" })).toBe(
      "29. März 2026 1.234,5 1.234,50\u00a0€ ISTANBUL",
    )
    expect(await render("{{upper i}}", data, { locale: "tr" })).toBe("İSTANBUL")
  })

  test.each([
    ["{{date d}}", { d: "tomorrow" }, "date"],
    ["{{date d}}", { d: "12" }, "date"],
    ["{{date d}}", { d: "2026-02-30" }, "date"],
    ["{{date d}}", { d: "2026-02-03 10:00 PST" }, "date"],
    ["{{date d}}", { d: ["2026-02-03"] }, "date"],
    ["{{date d 'QQ'}}", { d: AT }, "QQ"],
    ["{{date d 'long' 'Nowhere/Land'}}", { d: AT }, "Nowhere/Land"],
    ["{{date d 'long' 'UTC' 'e_n'}}", { d: AT }, "e_n"],
    ["{{number d}}", { d: "x" }, "number"],
    ["{{number 1 99}}", {}, "decimals"],
    ["{{currency 1 'euro'}}", {}, "three letters"],
    ["{{currency 1}}", {}, "three letters"],
    ["{{plural 2 'x'}}", {}, "plural"],
    ["{{truncate 'x'}}", {}, "truncate"],
    ["{{truncate 'x' -1}}", {}, "truncate"],
    ["{{link 'javascript:alert(1)'}}", {}, "link"],
    ["{{link 'data:text/html,x' 'y'}}", {}, "link"],
    ["{{upper o}}", { o: {} }, "object"],
  ])("%s with %j is a mistake that says which", async (source, data, word) => {
    const result = await render(source, data)
    expect(result).toStartWith("failed: ")
    expect(result).toContain(word)
  })

  test("a variable may be called as a helper is", async () => {
    const data = { date: "D", link: "L", number: 7, default: "x" }
    expect(await render("{{date}} {{link}} {{number}} {{upper link}} {{default}}", data)).toBe(
      "D L 7 L x",
    )
    expect(await render("{{date}}")).toBe("missing: date")
  })
})

describe("escaping", () => {
  test("html escapes two braces and not three; text escapes nothing", async () => {
    const data = { x: `<b a="1">'&` }
    expect(await render("{{x}}|{{{x}}}|{{upper x}}", data)).toBe(
      `&lt;b a&#x3D;&quot;1&quot;&gt;&#x27;&amp;|${data.x}|&lt;B A&#x3D;&quot;1&quot;&gt;&#x27;&amp;`,
    )
    expect(await render("{{x}}|{{{x}}}", data, { mode: "text" })).toBe(`${data.x}|${data.x}`)
  })

  test("text loses control characters, but for tabs and line breaks", async () => {
    const data = { x: "a\0\x07\x1b[1mb\u0085\tc\r\nd" }
    expect(await render("{{x}}{{{x}}}", data, { mode: "text" })).toBe("a[1mb\tc\r\nda[1mb\tc\r\nd")
  })

  test("a link in a text is its label with the address behind it", async () => {
    const data = { u: "https://a.test/?x=1&y=2" }
    expect(await render("{{link u 'Shop'}} {{link u}}", data, { mode: "text" })).toBe(
      "Shop (https://a.test/?x=1&y=2) https://a.test/?x=1&y=2",
    )
  })
})

describe("missing values", () => {
  const optional = (key: string, fallback: unknown = null) => ({ key, fallback })
  const required = (key: string) => ({ key, required: true })

  test.each<[string, string, object, Partial<TemplateVariable>[], string]>([
    ["used and not declared", "{{a}}", {}, [], "missing: a"],
    [
      "every one of them",
      "{{a}} {{upper b.c}} {{#if x}}{{z}}{{/if}} {{d.e}}",
      { d: {} },
      [],
      "missing: a b.c d.e",
    ],
    ["before a mistake", "{{a}}{{number b}}", { b: "x" }, [], "missing: a"],
    [
      "printed as it is, or as a helper is called",
      "{{{a}}} {{number}}",
      {},
      [],
      "missing: a number",
    ],
    ["declared and required, used or not", "x", {}, [required("a"), required("b")], "missing: a b"],
    ["required is missed where null is given", "{{a}}", { a: null }, [required("a")], "missing: a"],
    ["optional with a fallback", "{{a}}", {}, [optional("a", "F")], "F"],
    ["optional without one is empty", "[{{a}}]", {}, [optional("a")], "[]"],
    ["a fallback in the place of null", "{{a}}", { a: null }, [optional("a", "F")], "F"],
    ["a given value wins", "{{a}}", { a: "" }, [optional("a", "F")], ""],
    ["null that is not declared is empty", "[{{a}}]", { a: null }, [], "[]"],
    [
      "a fallback inside of an object",
      "{{a.b}} {{a.c}}",
      { a: { c: 1 } },
      [optional("a.b", "F")],
      "F 1",
    ],
    ["a fallback of an object that is not there", "{{a.b}}", {}, [optional("a.b", "F")], "F"],
    ["a field of an optional object", "[{{a.b}}]", {}, [{ key: "a", type: "object" }], "[]"],
    [
      "a fallback that is a list",
      "{{#each a}}{{this}}{{/each}}",
      {},
      [{ key: "a", type: "array", fallback: [1, 2] }],
      "12",
    ],
    [
      "the items of an optional list",
      "[{{#each a}}{{b}}{{/each}}]",
      {},
      [{ key: "a", type: "array" }],
      "[]",
    ],
    ["the condition of if", "{{#if a}}y{{else}}n{{/if}}", {}, [], "n"],
    ["a deep condition", "{{#if a.b.c}}y{{else}}n{{/if}}", {}, [], "n"],
    ["what a condition computes", "{{#if (eq a (upper b))}}y{{else}}n{{/if}}", {}, [], "n"],
    ["the list of each", "[{{#each a.b}}x{{/each}}]", {}, [], "[]"],
    [
      "the value of unless and with",
      "{{#unless a}}u{{/unless}}{{#with b}}{{c}}{{else}}w{{/with}}",
      {},
      [],
      "uw",
    ],
    ["what default stands beside", "{{default a 'x'}}{{upper (default a 'x')}}", {}, [], "xX"],
    ["but not the last one of default", "{{default a b}}", {}, [], "missing: b"],
    [
      "a field of an item",
      "{{#each l}}{{n}}{{/each}}",
      { l: [{ n: 1 }, {}] },
      [],
      "missing: l[].n",
    ],
    [
      "a field in a list of lists",
      "{{#each l}}{{#each m}}{{n}}{{/each}}{{/each}}",
      { l: [{ m: [{}] }] },
      [],
      "missing: l[].m[].n",
    ],
    [
      "a name outside of the item",
      "{{#each l}}{{../t}}{{@root.u}}{{/each}}",
      { l: [1] },
      [],
      "missing: t u",
    ],
    [
      "what an object inherits is not there",
      "{{a.toString}} {{constructor}} {{a.length}}",
      { a: {} },
      [],
      "missing: a.length a.toString constructor",
    ],
    [
      "a value of another type",
      "{{a}}",
      { a: "x" },
      [{ key: "a", type: "number" }],
      "failed: A value has another type: a is no number.",
    ],
    [
      "an address that is none",
      "{{a}}",
      { a: "javascript:1" },
      [{ key: "a", type: "url" }],
      "failed: A value has another type: a is no url.",
    ],
    ["a number as text is one", "{{a}}", { a: "12.5" }, [{ key: "a", type: "number" }], "12.5"],
  ])("%s", async (_, source, data, variables, result) => {
    expect(await render(source, data, { variables })).toBe(result)
  })
})

describe("partials and layouts", () => {
  test("a partial has the data, or the value that it is given", async () => {
    const partials = { "foot.er": "[{{n}}]", deep: "<{{> foot.er}}>" }
    expect(
      await render(
        "{{> foot.er}}{{> foot.er o}}{{> deep o n=3}}",
        { n: 1, o: { n: 2 } },
        { partials },
      ),
    ).toBe("[1][2]<[3]>")
    expect(await render("{{> deep}}", {}, { partials })).toBe("missing: n")
  })

  test("layouts go around the text, one around the other", async () => {
    const layouts = ["<main>{{{content}}}</main>", "<body>{{{content}}}{{company}}</body>"]
    expect(await render("<p>{{n}}</p>", { n: 1, company: "Acme" }, { layouts })).toBe(
      "<body><main><p>1</p></main>Acme</body>",
    )
    expect(await render("x", {}, { layouts })).toBe("missing: company")
    const frame = await render("x", {}, { layouts: ["<main></main>"] })
    expect(frame).toStartWith("failed: The layout has no place for the text.")
  })
})

test("a whole that grows too large is refused", async () => {
  const data = { l: Array.from({ length: 200 }, () => "x".repeat(100)) }
  expect(await render("{{#each l}}{{#each @root.l}}{{this}}{{/each}}{{/each}}", data)).toStartWith(
    "failed: The result is larger than 2097152 bytes.",
  )
})

test("a template that took too long delays no other template of its project", async () => {
  const hanging = "{{#each l}}{{#each ../l}}{{#each ../../l}}x{{/each}}{{/each}}{{/each}}"
  const data = { l: Array.from({ length: 2000 }, (_, at) => at) }
  expect(await render(hanging, data)).toStartWith("timeout: ")
  let ended = 0
  const others = Array.from({ length: 5 }, async () => {
    expect(await render(hanging, data)).toStartWith("timeout: ")
    ended += 1
  })
  for (const name of ["Ann", "Ben", "Cleo"]) {
    expect(await render("Hello {{name}}", { name })).toBe(`Hello ${name}`)
  }
  expect(ended).toBeLessThan(others.length)
  await Promise.all(others)
})
