import { credential, session } from "../page-session"
import { reach } from "../reach"
import { keepInTab } from "../tab-memory"
import { copyBar } from "./copy-buttons"
import { element } from "./elements"
import { docsSession } from "./who"

/** What the page tells of its operation. */
interface TryOperation {
  method: string
  path: string
  query: string[]
  body: string | undefined
  needs_credential: boolean
}

/** A button that opens a form, which sends the request from this page with the key of the tab. */
export function offerTry(place: HTMLElement): void {
  const operation = operationOf(place)
  const button = element("button", { class: "button", type: "button" }, "Try it")
  place.append(button)
  button.addEventListener("click", async () => {
    button.disabled = true
    await docsSession()
    const form = tryForm(operation)
    button.replaceWith(form)
    form.querySelector<HTMLElement>("input, textarea, button")?.focus()
  })
}

function operationOf({ dataset }: HTMLElement): TryOperation {
  return {
    method: dataset.method ?? "GET",
    path: dataset.path ?? "/",
    query: (dataset.query ?? "").split(" ").filter(Boolean),
    body: dataset.body,
    needs_credential: dataset.credential === "true",
  }
}

function tryForm(operation: TryOperation): HTMLFormElement {
  const { method, path, query, body } = operation
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const key = keyField(operation)
  const inPath = names.map((name) => field(name, "", true))
  const inQuery = query.map((name) => field(name, "", false))
  const text = body === undefined ? undefined : bodyField(body)
  const result = element("div", { class: "result", role: "status" })
  const send = element("button", { class: "button go", type: "submit" }, "Send the request")
  const form = element(
    "form",
    { class: "try" },
    ...(key ? [key.frame] : []),
    ...[...inPath, ...inQuery].map(({ frame }) => frame),
    ...(text ? [text.frame] : []),
    element("p", { class: "needs" }, method === "GET" ? READS : CHANGES),
    send,
    result,
  )
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    send.disabled = true
    const values = inPath.map(({ input }) => input.value)
    const asked = inQuery.flatMap(({ input }, at): [string, string][] =>
      input.value === "" ? [] : [[query[at] ?? "", input.value]],
    )
    if (key?.input.value) keepInTab("key", key.input.value)
    const headers = key?.input.value ? { "x-api-key": key.input.value } : await credential()
    const address =
      filled(path, values) + (asked.length > 0 ? `?${new URLSearchParams(asked)}` : "")
    await show(result, () => sent(method, address, headers, text?.input.value))
    send.disabled = false
  })
  return form
}

const READS = "It only reads."
const CHANGES = "This is a real request. It may change the data of this server."

/** Absent where the tab holds a key, or somebody is signed in. */
function keyField({ needs_credential }: TryOperation) {
  const { kind } = session.value
  if (!needs_credential || kind === "key" || kind === "token") return undefined
  const made = field("API key", "", true)
  made.input.type = "password"
  made.input.autocomplete = "off"
  return made
}

function field(name: string, value: string, required: boolean) {
  const id = idOf(name)
  const input = element("input", {
    id,
    value,
    dir: "ltr",
    autocomplete: "off",
    spellcheck: "false",
  })
  input.required = required
  return { input, frame: framed(name, input) }
}

function bodyField(body: string) {
  const id = idOf("Body")
  const input = element("textarea", { id, dir: "ltr", spellcheck: "false", rows: "9" })
  input.value = body
  return { input, frame: framed("Body", input) }
}

const idOf = (name: string) => `try-${name.replaceAll(/\W/g, "-")}`

const framed = (name: string, input: HTMLElement) =>
  element("div", { class: "field" }, element("label", { for: input.id }, name), input)

const filled = (path: string, values: string[]) => {
  const left = [...values]
  return path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(left.shift() ?? ""))
}

interface TriedAnswer {
  status: string
  text: string
}

async function sent(
  method: string,
  address: string,
  headers: Record<string, string>,
  body: string | undefined,
): Promise<TriedAnswer> {
  const started = performance.now()
  const answer = await reach(address, {
    method,
    headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  const took = Math.round(performance.now() - started)
  const id = answer.headers.get("x-request-id") ?? ""
  return { status: `${answer.status} · ${took} ms · ${id}`, text: pretty(text) }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

async function show(place: HTMLElement, send: () => Promise<TriedAnswer>): Promise<void> {
  try {
    const { status, text } = await send()
    const block = element(
      "pre",
      { tabindex: "0", "aria-label": "Answer" },
      element("code", {}, text),
    )
    const frame = element(
      "figure",
      { class: "code" },
      copyBar(status, () => text),
      block,
    )
    place.replaceChildren(frame)
  } catch (error) {
    place.replaceChildren(element("p", {}, error instanceof Error ? error.message : String(error)))
  }
}
