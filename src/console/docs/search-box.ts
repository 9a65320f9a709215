import { type SearchEntry, searchReference } from "../../lib/reference-search"
import { reach } from "../requests"
import { element } from "./elements"

const KINDS = { operation: "API", guide: "Guide", error: "Error", event: "Event" }

/** Shows results below the field while somebody types. Enter without a choice opens the page of results. */
export function startSearch(): void {
  const field = document.querySelector<HTMLInputElement>('.bar input[type="search"]')
  const form = field?.form
  if (!field || !form) return
  const found = element("ul", { class: "found", id: "found", role: "listbox" })
  found.setAttribute("aria-label", "Results")
  found.hidden = true
  form.append(found)
  for (const [name, value] of Object.entries(COMBOBOX)) field.setAttribute(name, value)
  let index: Promise<SearchEntry[] | undefined> | undefined
  const load = () => {
    index ??= loadIndex()
    return index
  }
  const show = async () => {
    const entries = await load().catch(() => undefined)
    const results = searchReference(entries ?? [], field.value)
    const is_asked = entries !== undefined && field.value.trim() !== ""
    found.replaceChildren(...(results.length > 0 ? results.map(resultOf) : [nothing(field.value)]))
    const is_open = is_asked && document.activeElement === field
    found.hidden = !is_open
    field.setAttribute("aria-expanded", String(is_open))
    choose(field, found, -1)
  }
  field.addEventListener("focus", () => void show())
  field.addEventListener("input", () => void show())
  field.addEventListener("blur", () => close(field, found))
  // A press would take the focus away, and with it the list, before the click.
  found.addEventListener("mousedown", (event) => event.preventDefault())
  field.addEventListener("keydown", (event) => onKey(event, field, found))
  document.addEventListener("keydown", (event) => {
    const is_typing = event.target instanceof HTMLElement && event.target.matches(TYPED_INTO)
    if (event.key !== "/" || is_typing || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    field.focus()
  })
}

const TYPED_INTO = "input, textarea, select"

const COMBOBOX = {
  role: "combobox",
  "aria-autocomplete": "list",
  "aria-controls": "found",
  "aria-expanded": "false",
  placeholder: "Search (press /)",
}

/** The server's index is asked for once a page; the browser keeps it with its ETag. */
async function loadIndex(): Promise<SearchEntry[] | undefined> {
  const answer = await reach("/docs/search-index", { cache: "no-cache" })
  return answer.ok ? ((await answer.json()) as SearchEntry[]) : undefined
}

/** A line that cannot be chosen. */
const nothing = (query: string): HTMLElement =>
  element("li", { role: "option", "aria-disabled": "true" }, `Nothing was found for “${query}”.`)

/** An option of the list has nothing in it that could have the focus itself. */
function resultOf({ title, to, kind }: SearchEntry, at: number): HTMLElement {
  const option = element(
    "li",
    { role: "option", id: `found-${at}`, "aria-selected": "false" },
    element("span", {}, title),
    element("span", { class: "kind" }, KINDS[kind]),
  )
  option.addEventListener("click", () => location.assign(to))
  return option
}

function close(field: HTMLInputElement, found: HTMLElement): void {
  found.hidden = true
  field.setAttribute("aria-expanded", "false")
}

function onKey(event: KeyboardEvent, field: HTMLInputElement, found: HTMLElement): void {
  const options = [...found.querySelectorAll<HTMLElement>("li:not([aria-disabled])")]
  const at = options.findIndex((one) => one.getAttribute("aria-selected") === "true")
  if (event.key === "Escape") close(field, found)
  else if (event.key === "ArrowDown") choose(field, found, Math.min(at + 1, options.length - 1))
  else if (event.key === "ArrowUp") choose(field, found, Math.max(at - 1, -1))
  else if (event.key === "Enter" && at >= 0) options[at]?.click()
  else return
  event.preventDefault()
}

/** -1 chooses nothing. */
function choose(field: HTMLInputElement, found: HTMLElement, at: number): void {
  for (const [number, option] of [...found.children].entries()) {
    option.setAttribute("aria-selected", String(number === at))
    if (number === at) option.scrollIntoView({ block: "nearest" })
  }
  if (at < 0) field.removeAttribute("aria-activedescendant")
  else field.setAttribute("aria-activedescendant", `found-${at}`)
}
