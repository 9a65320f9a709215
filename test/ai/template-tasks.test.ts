import { afterAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import type { Advisory } from "../../src/ai/advice/advisory"
import type { AiTask } from "../../src/ai/ai-task"
import { analyzePrompt } from "../../src/ai/prompts/analyze-broadcast"
import { generateWorkflow } from "../../src/ai/prompts/generate-workflow"
import { draftTask, rewriteTask, suggestTask } from "../../src/ai/template-tasks"
import { ApiError } from "../../src/core/errors"
import { openWorkers } from "../../src/core/workers"
import { projectCaller } from "../../src/identity/caller"
import { sharedService } from "../harness/shared-service"

const { store, project: newProject } = await sharedService()
const workers = openWorkers({ size: 1 })
afterAll(() => workers.close())
const parts = { store, workers }

/** A project with what its texts may use. */
const project = await newProject()
await project.post("/v1/templates", { name: "receipt", html: "{{order.total}} {{first_name}}" })
const person = { email: "ann@example.com", name: "Ann Huber", phone: "+4915112345678" }
for (const external_id of ["u-1", "u-2"]) {
  const metadata = { plan: "CANARY-VALUE", tier: 1 }
  await project.post("/v1/subscribers", { external_id, ...person, metadata })
}
const { project_id } = project
const caller = (await projectCaller(store.read, project_id)) ?? expect.unreachable()
const STYLE = { channel: "email", project_id, brief: "A receipt." } as const
const draft = (channel: "email" | "push" | "sms" | "in_app" = "email") =>
  draftTask(parts, caller, { ...STYLE, channel })
const block = { id: "b1", type: "paragraph" as const, content: "<p>It was dispatched.</p>" }
const rewrite = (more: object = {}) =>
  rewriteTask(parts, caller, { ...STYLE, block, instruction: "Shorter.", ...more })
const suggest = () => suggestTask(parts, caller, { ...STYLE, template_body: "<p>Hi</p>" })

const drafted = (fields: object) => ({
  template: { name: "a", subject: "Hi", html: "<p>Hi</p>", text: null, variables: [], ...fields },
})
const five = (change: object = {}) => ({
  suggestions: [0.3, 0.5, 0.4, 0.1, 0.2].map((predicted_open_rate, at) => ({
    ...{ subject: `Subject ${at}`, predicted_open_rate, rationale: "It is short.", warnings: [] },
    ...(at === 0 && change),
  })),
})

/** The reason of the refusal of an answer. */
const reasonOf = async (task: AiTask, output: unknown): Promise<string> => {
  const error = await task.read(output).catch((thrown) => thrown)
  if (!(error instanceof ApiError)) throw new Error("no refusal", { cause: error })
  expect(error).toMatchObject({ code: "provider_error", status: 502 })
  return (error.details as { reason: string }).reason
}

describe("a draft", () => {
  test("has its near misses corrected, tells what is unknown, and can be saved", async () => {
    const output = drafted({
      name: "Order shipped!",
      subject: 'Thanks, {{default firstName "firstName"}}',
      html: '<p>{{subscriber.metdata.plan}} {{date now format="long"}} {{coupon}} firstName</p>',
      variables: [
        { key: "firstName", type: "string", required: true, description: null, extra: 1 },
        { key: "coupon", type: "no such type" },
      ],
    })
    const { complete, variables } = await (await draft()).read(output)
    expect(variables).toEqual({
      detected: ["coupon", "first_name", "now", "subscriber.metadata.plan"],
      corrected: [
        { from: "firstName", to: "first_name" },
        { from: "subscriber.metdata.plan", to: "subscriber.metadata.plan" },
      ],
      unknown: ["coupon"],
    })
    expect(complete).toEqual({
      template: {
        ...{ name: "order-shipped", channel: "email" },
        subject: 'Thanks, {{default first_name "firstName"}}',
        html: '<p>{{subscriber.metadata.plan}} {{date now format="long"}} {{coupon}} firstName</p>',
        ...{ text: null, title: null, body: null },
        variables: [
          { key: "first_name", type: "string", required: true, description: null, fallback: null },
        ],
      },
    })
    const { channel: _, title, body, ...saved } = complete.template as Record<string, unknown>
    expect((await project.post("/v1/templates", saved)).status).toBe(201)
  })

  test.each(["push", "sms", "in_app"] as const)("of %s has its texts", async (channel) => {
    const output = drafted({ title: "Hi", body: "{{first_nmae}}" })
    const { complete } = await (await draft(channel)).read(output)
    const texts = { title: channel === "sms" ? null : "Hi", subject: null, body: "{{first_name}}" }
    expect(complete.template).toMatchObject({ channel, ...texts })
    expect(await reasonOf(await draft(channel), drafted({ title: "Hi" }))).toBe("invalid_result")
  })

  test("is used in every form that says enough", async () => {
    const key = { type: "string", required: false, description: null }
    const variables = [{ ...key, key: "items[].name" }, { ...key, key: "items" }, "first_name"]
    const { complete } = await (await draft()).read({
      ...{ name: "Order SHIPPED", subject: " Hi\n", html: null, text: "Hi, {{items}}", variables },
      extra: { more: 1 },
    })
    expect(complete.template).toMatchObject({
      ...{ name: "order-shipped", subject: "Hi", html: null, text: "Hi, {{items}}" },
      variables: [{ key: "items" }],
    })
    const { complete: least } = await (await draft()).read({
      template: { subject: "Hi", html: "<p>Hi</p>", text: " " },
    })
    expect(least.template).toMatchObject({ name: "draft", text: null, variables: [] })
  })

  test("has a name corrected where it is looked up in the data, and nowhere else", async () => {
    const html = `{{firstName}} {{this.firstName}} {{#each orders}}{{firstName}} {{../firstName}} {{@index}}
      {{#if firstName}}{{@root.firstName}}{{else}}{{firstName}}{{/if}}{{else}}{{firstName}}{{/each}}
      {{#with order}}{{firstName}}{{/with}}{{^if firstName}}{{plural 2 one=firstName other="firstName"}}{{/if}}`
    const task = await draftTask(parts, caller, { ...STYLE, variables: ["numbers", "orders"] })
    const { complete, variables } = await task.read(
      drafted({ html: `${html}{{number}} {{number 1}}` }),
    )
    expect(variables).toEqual({
      detected: ["first_name", "number", "order", "orders"],
      corrected: [{ from: "firstName", to: "first_name" }],
      unknown: ["number"],
    })
    expect(complete.template).toMatchObject({
      html: `{{first_name}} {{this.first_name}} {{#each orders}}{{firstName}} {{../first_name}} {{@index}}
      {{#if firstName}}{{@root.first_name}}{{else}}{{firstName}}{{/if}}{{else}}{{first_name}}{{/each}}
      {{#with order}}{{firstName}}{{/with}}{{^if first_name}}{{plural 2 one=first_name other="firstName"}}{{/if}}{{number}} {{number 1}}`,
    })
  })

  test("keeps a name with another number, and one that the request names", async () => {
    await project.post("/v1/templates", { name: "lines", html: "{{line1}} {{voucher}}" })
    const task = await draftTask(parts, caller, { ...STYLE, variables: ["vouchr"] })
    const { variables } = await task.read(drafted({ html: "{{line2}} {{vouchr}}" }))
    expect(variables).toMatchObject({ corrected: [], unknown: ["line2"] })
  })
})

describe("a block", () => {
  test("keeps its id and type, and has its near misses corrected", async () => {
    const { complete, variables } = await (await rewrite()).read({
      block: { id: "other", type: "html", content: "<p>Sent, {{firstname}}.</p>" },
    })
    expect(complete).toEqual({ block: { ...block, content: "<p>Sent, {{first_name}}.</p>" } })
    expect(variables?.corrected).toEqual([{ from: "firstname", to: "first_name" }])
  })

  test.each(["email", "push", "sms", "in_app"] as const)("of each type on %s", async (channel) => {
    for (const type of ["heading", "paragraph", "button", "list", "html"] as const) {
      const task = await rewrite({ channel, block: { type, content: "{{first_name}}" } })
      const content = '{{date now "long"}} 3 < 4'
      const { complete } = await task.read({ content })
      expect(complete).toEqual({ block: { id: null, type, content } })
    }
  })

  test("is refused where it is empty, or longer than was asked", async () => {
    expect(await reasonOf(await rewrite(), { block: { content: " " } })).toBe("invalid_result")
    const task = await rewrite({ max_length: 4 })
    expect(await reasonOf(task, { block: { content: "12345" } })).toBe("too_long")
    const short = { block: { content: "1234" } }
    expect((await task.read(short)).complete).toMatchObject(short)
  })
})

describe("suggestions", () => {
  const chosen = ["Best", "Subject 1", "Subject 2", "Subject 0", "Subject 3"]
  const more = [
    { subject: "{{#if a}}", predicted_open_rate: 1 },
    { subject: "Subject 0", predicted_open_rate: 0.05 },
    { subject: "Best", predicted_open_rate: 0.9, warnings: [] },
  ]

  test.each<[string, object, string[], string]>([
    ["five", five(), [1, 2, 0, 4, 3].map((at) => `Subject ${at}`), "It is short."],
    ["the five best of more", [...more, ...five().suggestions.slice(0, 4)], chosen, ""],
  ])("are %s in the order of their rates, with their lengths", async (_, said, best, rationale) => {
    const { suggestions } = (await (await suggest()).read(said)).complete
    const given = best.map((subject, at) => ({ rank: at + 1, subject, length: subject.length }))
    expect(suggestions).toMatchObject(given)
    expect(suggestions).toMatchObject({ length: 5, 0: { rationale } })
  })

  test.each<[string, object]>([
    ["two are the same", { subject: "Subject 1" }],
    ["one has two lines", { subject: "a\r\nBcc: b@example.com" }],
    ["one is empty", { subject: " " }],
    ["one is no template", { subject: "{{#if a}}" }],
    ["one has a rate in percent", { predicted_open_rate: 42 }],
    ["one has no reason", { rationale: 5 }],
  ])("are asked once more where %s", async (_, change) => {
    const task = await suggest()
    expect(task.tries).toBe(2)
    expect(await reasonOf(task, five(change))).toBe("too_few")
  })
})

const HOSTILE_HTML: string[] = [
  ...`<script>alert(1)</script>  <SCRIPT src=//x>  <svg><script>x</script></svg>  <scr{{!}}ipt>x</script>
<{{first_name}}>  </{{first_name}}>  <sc{{#if a}}ript{{/if}}>  <img src=x onerror=alert(1)>
<img on{{! }}load=x>  <a href='java\tscript:x'>  <p/onclick=x>  <a href='java{{!}}script:x'>
<a href='&#106;avascript:x'>  <a href=data:text/html,x>  <iframe src=x>  <object data=x>
<embed src=x>  <base href=//x>  <form action=//x>  <svg/onload=x>  <math href=x>
<meta content='0;url=//x' http-equiv = 'Refresh'>  <style>a { background: url('javascript:x') }</style>
<img src=data:image/svg+xml,x>  <p style='background:url( javascript:x)'>
<a href=&#106avascript&colon;x>  <img o{{!-- { --}}nload=x>
{{#if a}}<!--{{/if}}<script>x</script>{{#if a}}-->{{/if}}
<p {{#if a}}title='{{/if}} onclick=x {{#if a}}'{{/if}}>  {{{first_name}}}  {{~{first_name}~}}
{{& first_name}}  {{lookup this 'constructor'}}  {{#helperMissing}}{{/helperMissing}}
{{constructor 1}}  {{#with}}  {{#if a}}  {{log 1}}  {{#*inline "a"}}x{{/inline}}
{{> no-such-template}}  {{> draft}}  {{../x}}  {{@root.a b}}  {{#each (lookup a 'x')}}{{/each}}`.split(
    / {2}|\n/,
  ),
  ...["{{#if a}}".repeat(5000) + "{{/if}}".repeat(5000), "\0"],
]

test("html that mails need is no hostile one", async () => {
  const html = `<!DOCTYPE html><html><head><meta charset="utf-8"><title>Hi {{first_name}}</title>
    <meta http-equiv="Content-Type" content="text/html; charset=utf-8">
    <style>@media (max-width: 600px) { .a { width: 100% !important }}</style></head>
    <body {{#if now}}class="a"{{/if}}><!--[if mso]><v:rect href="{{unsubscribe_url}}"/><![endif]-->
    <a href="https://shop.example/{{order.total}}?one=1&on=2">one = {{order.total}}</a>
    <img alt="Data: learn JavaScript: now" src="data:image/png;base64,AA=="></body></html>`
  const { complete } = await (await draft()).read(drafted({ html }))
  expect(complete.template).toMatchObject({ html })
})

const HOSTILE_OUTPUT: unknown[] = [
  ...[null, 5, "text", [], {}, { template: null }, { template: [] }, { template: "x", block: "x" }],
  ...[JSON.parse('{"__proto__": {"template": {"name": "x"}}}'), { constructor: { prototype: 1 } }],
  ...[{ html: { type: "Program", body: [] } }, { subject: "a\nb" }, { html: "" }].map(drafted),
]

describe("a hostile answer", () => {
  test.each(HOSTILE_HTML)("with active or wrong html is refused: %#", async (html) => {
    expect(await reasonOf(await draft(), drafted({ html }))).toBe("invalid_template")
    expect(await reasonOf(await rewrite(), { block: { content: html } })).toBe("invalid_template")
  })

  test.each(HOSTILE_OUTPUT)("of another form is refused: %#", async (output) => {
    expect(await reasonOf(await draft(), output)).toBe("invalid_result")
    expect(await reasonOf(await rewrite(), output)).toBe("invalid_result")
    expect(await reasonOf(await suggest(), output)).toBe("too_few")
  })

  test("brings nothing along that was not asked for", async () => {
    const more = JSON.parse('{"__proto__":{"polluted":1},"layout_id":"x","draft":false,"tags":[]}')
    const variables = [{ ...more, key: "a", type: "string", required: false, description: null }]
    const { complete } = await (await draft()).read(drafted({ ...more, variables }))
    const names = ["name", "channel", "subject", "html", "text", "title", "body", "variables"]
    expect(Object.keys(complete.template as object)).toEqual(names)
    expect(JSON.stringify(complete)).not.toMatch(/polluted|layout_id|tags/)
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
  })
})

test("the fixed text of a prompt is that of its version", async () => {
  const prompts = [await suggest(), await draft(), await rewrite()].map(({ prompt }) => prompt)
  const analysis = analyzePrompt({ channel: "email", body: "" }, {} as Advisory)
  const pins = [...prompts, analysis, generateWorkflow("", [])].map((prompt) => {
    const fixed = JSON.stringify([prompt.system, prompt.schema])
    const digest = createHash("sha256").update(fixed).digest("hex")
    return `${prompt.version} ${digest.slice(0, 16)}`
  })
  // A changed text gets a new version: the metadata of an answer names it.
  expect(pins).toEqual([
    "suggest-subjects-1 3eb6c75a1962cdae",
    "draft-template-1 234d850abdd9a571",
    "rewrite-block-1 048a948bec2b66d7",
    "analyze-broadcast-1 30a7ec8379c2a223",
    "generate-workflow-1 1a161a821a7f040f",
  ])
})
