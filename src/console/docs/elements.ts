import { copyText } from "../browser"
import { kept } from "../kept"

/** An element with attributes and content. Text stays text: nothing is parsed as HTML. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Readonly<Record<string, string>> = {},
  ...content: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...content)
  return made
}

const SHOWN_MILLISECONDS = 2000

/** As the pages write the key of a reader that they do not know. */
const UNKNOWN_KEY = "svc_live_…"

/** Each block of code gets a line above it, with its name and a button that copies it. */
export function addCopyButtons(): void {
  for (const block of document.querySelectorAll<HTMLElement>("main pre")) {
    const name = block.getAttribute("aria-label") ?? ""
    const frame = element("figure", { class: "code" })
    block.replaceWith(frame)
    frame.append(
      copyBar(name, () => pasted(block.textContent ?? "")),
      block,
    )
  }
}

/** The lines of the environment are copied with the key of the tab, which the page does not show. */
const pasted = (text: string) =>
  text.startsWith("export ") ? text.replace(UNKNOWN_KEY, kept("key") ?? UNKNOWN_KEY) : text

export function nameThisServer(): void {
  for (const code of document.querySelectorAll("main pre code")) {
    const text = code.textContent ?? ""
    if (text.startsWith("export BELFRY_URL="))
      code.textContent = text.replace(
        /^export BELFRY_URL=.*$/m,
        `export BELFRY_URL=${location.origin}`,
      )
  }
}

export function copyBar(name: string, text: () => string): HTMLElement {
  const button = element("button", { class: "button quiet small", type: "button" }, "Copy")
  button.addEventListener("click", async () => {
    const is_copied = await copyText(text())
    button.textContent = is_copied ? "Copied" : "Not copied"
    setTimeout(() => {
      button.textContent = "Copy"
    }, SHOWN_MILLISECONDS)
  })
  return element("figcaption", {}, element("span", {}, name), button)
}
