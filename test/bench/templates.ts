import { writeFileSync } from "node:fs"
import { join } from "node:path"
import Handlebars from "handlebars"
import { openWorkers } from "../../src/core/workers"
import { TemplateRenderer } from "../../src/templates/template-renderer"
import { keyed } from "../../src/templates/usable-template"
import { atLeast, atMost, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { heldRelay } from "./held-relay"
import { scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, type Serving, serve } from "./serving"
import { type Answers, post } from "./wrk"

const CONNECTIONS = 64
/** As the server has them. */
const THREADS = 2

const ROW = "<tr><td>{{title}}</td><td>{{amount}}</td></tr>"
const HTML = `<h1>Thank you, {{name}}.</h1><p>Your order {{number}} is on its way.</p>
<table>{{#each items}}${ROW}{{/each}}</table>{{#if note}}<p>{{note}}</p>{{/if}}
<p>${"We send this because you ordered in our shop on harbour street. ".repeat(8)}</p>`

const VARIABLES = {
  name: "Ann",
  number: 1042,
  items: Array.from({ length: 30 }, (_, at) => ({ title: `Item ${at} & more`, amount: at + 1 })),
}

export const templates: Bench = {
  name: "templates",
  title: "templates: renderings through the threads with their deadline, and sends with a template",

  async run({ rounds, seconds }) {
    const bare = series("limit: bare cached `handlebars`, on the main thread", "/s")
    const ours = series("ours: through the threads, with deadline and missing names", "/s")
    const plain = series("ours, relay held: sends with their own html", "/s")
    const templated = series("ours, relay held: sends with the template", "/s")
    const plain_p99 = series("sends with their own html: p99", "ms")
    const templated_p99 = series("sends with the template: p99", "ms")
    const calm = series(`sends with the template, ${BESIDE} connections: p99`, "ms")
    const beside = series("the same while a template of the project hangs again and again", "ms")
    const burnt = series(
      "limit: the same beside an empty loop of another process, niceness 10",
      "ms",
    )
    for (let round = 0; round < rounds; round++) {
      bare.values.push(bareRenders(seconds))
      ours.values.push(await ourRenders(seconds))
      const own = await accept(seconds, ownHtml)
      const named = await accept(seconds, { template_id: "order", variables: VARIABLES })
      plain.values.push(own.per_second)
      plain_p99.values.push(own.p99_ms)
      templated.values.push(named.per_second)
      templated_p99.values.push(named.p99_ms)
      const pair = await besideHanging(seconds)
      calm.values.push(pair.calm)
      beside.values.push(pair.beside)
      burnt.values.push(pair.burnt)
    }
    return {
      series: [bare, ours, plain, plain_p99, templated, templated_p99, calm, beside, burnt],
      verdicts: [
        atLeast("renderings, to bare handlebars", ratioOf(ours, bare), 0.4),
        atMost(
          "cost of a send with a template, to one without",
          ratioOf(plain, templated),
          1.3,
          "×",
        ),
        atMost("p99 beside a template that hangs", ratioOf(beside, calm), 1.5, "×"),
      ],
      notes: [
        `Each server is warm: the same load came before, for as long. ${HANGING} callers send the template that hangs, one after the other; each is refused after its deadline.`,
        `One html with thirty rows of two values each, 2.7 KB as rendered. ${CONNECTIONS} renderings at a time for one project; every result was compared. The sends without a template carry the rendered html. p99: ${median(plain_p99.values).toFixed(1)} and ${median(templated_p99.values).toFixed(1)} ms.`,
      ],
    }
  },
}

const render = Handlebars.compile(HTML, { strict: true })
const RENDERED = render(VARIABLES)

const ownHtml = { subject: "Your order 1042", html: RENDERED }

function bareRenders(seconds: number): number {
  const begun = performance.now()
  const end = begun + seconds * 1000
  let count = 0
  while (performance.now() < end) {
    if (render(VARIABLES) !== RENDERED) throw new Error("rendered wrongly")
    count += 1
  }
  return count / ((performance.now() - begun) / 1000)
}

async function ourRenders(seconds: number): Promise<number> {
  const workers = openWorkers({ size: THREADS })
  const renderer = new TemplateRenderer(workers)
  const sources = keyed({
    texts: [{ field: "html", part: "html", mode: "html", source: HTML }],
    ...{ layouts: [], partials: {}, variables: [], locale: "en", timezone: "UTC" },
  })
  const rendered = async () => {
    const answer = await renderer.render("project", sources, JSON.stringify(VARIABLES))
    if (!("texts" in answer) || answer.texts.html !== RENDERED) throw new Error("rendered wrongly")
  }
  await rendered()
  const begun = performance.now()
  const end = begun + seconds * 1000
  let count = 0
  const work = async () => {
    while (performance.now() < end) {
      await rendered()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, work))
  const per_second = count / ((performance.now() - begun) / 1000)
  await workers.close()
  return per_second
}

/** Accepting alone: the relay takes a connection and never greets. */
async function accept(seconds: number, content: object): Promise<Answers> {
  using scratch = scratchFolder()
  using relay = heldRelay()
  const key = await initialise(scratch.path)
  await using server = await serve(scratch.path, key, relay.environment)
  await addTemplate(server, order)
  const path = join(scratch.path, "send.json")
  writeFileSync(path, JSON.stringify({ from: relay.from, to: "user@mailbox.test", ...content }))
  const target = { url: `${server.url}/v1/emails`, headers: server.headers }
  const load = { ...target, body: path, connections: CONNECTIONS, seconds }
  const warm = await post(load)
  const answers = await post(load)
  await server.kill()
  using database = databaseOf(scratch.path)
  requireEqual("messages", warm.answered + answers.answered, countRows(database, "messages"))
  return answers
}

const order = {
  name: "order",
  subject: "Your order {{number}}",
  html: HTML,
  variables: [{ key: "note", type: "string" }],
}

async function addTemplate(server: Serving, body: object): Promise<void> {
  const { status, text } = await asked(server, "/v1/templates", body)
  if (status !== 201) throw new Error(text)
}

async function asked(server: Serving, path: string, body: object) {
  const headers = { ...server.headers, "content-type": "application/json" }
  const init = { method: "POST", headers, body: JSON.stringify(body) }
  const answer = await fetch(`${server.url}${path}`, init)
  return { status: answer.status, text: await answer.text() }
}

const BESIDE = 32
const HANGING = 4

/** Twenty-seven million turns of loops. */
const ENDLESS = "{{#each a}}{{#each ../a}}{{#each ../../a}}{{this}}{{/each}}{{/each}}{{/each}}"
const LIST = Array.from({ length: 300 }, (_, at) => at)

/**
 * p99 of sends with a good template: alone, beside one of the same project that hangs, and beside a process that
 * takes what is left of the processors and has nothing to do with the server.
 */
async function besideHanging(seconds: number) {
  using scratch = scratchFolder()
  using relay = heldRelay()
  const key = await initialise(scratch.path)
  await using server = await serve(scratch.path, key, relay.environment)
  await addTemplate(server, order)
  await addTemplate(server, { name: "endless", subject: "Never", text: ENDLESS })
  const path = join(scratch.path, "send.json")
  const mail = { from: relay.from, to: "user@mailbox.test" }
  const good = { ...mail, template_id: "order", variables: VARIABLES }
  writeFileSync(path, JSON.stringify(good))
  const target = { url: `${server.url}/v1/emails`, headers: server.headers }
  const load = { ...target, body: path, connections: BESIDE, seconds }
  await post(load)
  const calm = await post(load)
  let is_over = false
  const hang = async () => {
    while (!is_over) {
      const bad = { ...mail, template_id: "endless", variables: { a: LIST } }
      const { status } = await asked(server, "/v1/emails", bad)
      if (status !== 422 && status !== 503) throw new Error(`a template that hangs got ${status}`)
    }
  }
  const callers = Array.from({ length: HANGING }, hang)
  const beside = await post(load)
  is_over = true
  await Promise.all(callers)
  const burnt = await besideBurner(() => post(load))
  return { calm: calm.p99_ms, beside: beside.p99_ms, burnt: burnt.p99_ms }
}

async function besideBurner<Measured>(measure: () => Promise<Measured>): Promise<Measured> {
  const burner = Bun.spawn(["nice", "-n", "10", process.execPath, "-e", "for (;;);"])
  try {
    return await measure()
  } finally {
    burner.kill()
    await burner.exited
  }
}
