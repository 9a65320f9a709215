import { keep } from "../kept"
import { credential, session } from "../page-session"
import { messageOf, reach } from "../requests"
import { copyBar, element } from "./elements"
import { docsSession } from "./who"

/** A button that opens a form, which sends the request from this page with the key of the tab. */
export function offerTry(place: HTMLElement): void {
  const button = element("button", { class: "button", type: "button" }, "Try it")
  place.append(button)
  button.addEventListener("click", async () => {
    button.disabled = true
    await docsSession()
    const form = tryForm(place.dataset)
    button.replaceWith(form)
    form.querySelector<HTMLElement>("input, textarea, button")?.focus()
  })
}

/** The page tells of its operation in attributes. */
function tryForm({
  method = "GET",
  path = "/",
  query = "",
  body,
  credential: needs,
}: DOMStringMap) {
  const { kind } = session.value
  const has_key = needs !== "true" || kind === "key" || kind === "token"
  const key = has_key ? undefined : field("API key", { type: "password", required: "" })
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name)
  const inPath = names.map((name) => field(name, { required: "" }))
  const asked = query.split(" ").filter(Boolean)
  const inQuery = asked.map((name) => field(name))
  const text = body === undefined ? undefined : bodyField(body)
  const result = element("div", { class: "result", role: "status" })
  const send = element("button", { class: "button go", type: "submit" }, "Send the request")
  const fields = [key, ...inPath, ...inQuery, text].filter((one) => one !== undefined)
  const form = element(
    "form",
    { class: "try" },
    ...fields.map(({ frame }) => frame),
    element("p", { class: "needs" }, method === "GET" ? READS : CHANGES),
    send,
    result,
  )
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    send.disabled = true
    const values = inPath.map(({ input }) => encodeURIComponent(input.value))
    const given = inQuery.flatMap(({ input: { value } }, at): [string, string][] =>
      value === "" ? [] : [[asked[at] ?? "", value]],
    )
    if (key?.input.value) keep("key", key.input.value)
    const headers = key?.input.value ? { "x-api-key": key.input.value } : await credential()
    const filled = path.replaceAll(/\{\w+\}/g, () => values.shift() ?? "")
    const address = filled + (given.length > 0 ? `?${new URLSearchParams(given)}` : "")
    await show(result, () => sent(method, address, headers, text?.input.value))
    send.disabled = false
  })
  return form
}

const READS = "It only reads."
const CHANGES = "This is a real request. It may change the data of this server."

const PLAIN = { dir: "ltr", autocomplete: "off", spellcheck: "false" }

function field(name: string, attributes: Record<string, string> = {}) {
  const input = element("input", { id: idOf(name), ...PLAIN, ...attributes })
  return { input, frame: framed(name, input) }
}

function bodyField(body: string) {
  const input = element("textarea", { id: idOf("Body"), ...PLAIN, rows: "9" })
  input.value = body
  return { input, frame: framed("Body", input) }
}

const idOf = (name: string) => `try-${name.replaceAll(/\W/g, "-")}`

const framed = (name: string, input: HTMLElement) =>
  element("div", { class: "field" }, element("label", { for: input.id }, name), input)

async function sent(
  method: string,
  address: string,
  headers: Record<string, string>,
  body: string | undefined,
) {
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

async function show(place: HTMLElement, send: () => ReturnType<typeof sent>): Promise<void> {
  try {
    const { status, text } = await send()
    const code = element("code", {}, text)
    const block = element("pre", { tabindex: "0", "aria-label": "Answer" }, code)
    const bar = copyBar(status, () => text)
    place.replaceChildren(element("figure", { class: "code" }, bar, block))
  } catch (error) {
    place.replaceChildren(element("p", {}, messageOf(error)))
  }
}
