type Child = Node | string | undefined | false

/** An attribute that is undefined or false is absent, and one that is true has no value. */
type Attributes = Record<string, string | boolean | undefined>

/** An element of a page. Texts become text nodes, so that no text is ever markup. */
export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag)
  setAll(element, attributes)
  element.append(...children.filter((child) => child !== undefined && child !== false))
  return element
}

/** Sets the attributes that are named, and removes those that are absent. */
export function setAll(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) element.removeAttribute(name)
    else element.setAttribute(name, value === true ? "" : value)
  }
}

/** A button that calls `act`. */
export function makeButton(
  attributes: Attributes,
  act: (event: MouseEvent) => void,
  ...children: Child[]
): HTMLButtonElement {
  const button = make("button", { type: "button", ...attributes }, ...children)
  button.addEventListener("click", act)
  return button
}

/** A button without words: its name is for screen readers, and shows where a pointer rests. */
export const iconButton = (
  name: IconName,
  label: string,
  act: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement =>
  makeButton(
    { class: "icon", "aria-label": label, title: label, ...attributes },
    act,
    makeIcon(name),
  )

/** Text for screen readers alone. */
export const unseen = (text: string): HTMLElement => make("span", { class: "unseen" }, text)

/** Lines in a square of 24. */
const ICONS = {
  bell: "M5 17h14l-1.6-2.6V10a5.4 5.4 0 0 0-10.8 0v4.4zM10 20a2.1 2.1 0 0 0 4 0",
  checks: "M2.5 13l4 4 8.5-9.5M11.5 16l1 1L21 7.5",
  choices: "M4 7h8M18 7h2M4 17h2M12 17h8M15 4.6a2.4 2.4 0 1 0 .01 0M9 14.6a2.4 2.4 0 1 0 .01 0",
  back: "M14.5 5.5L8 12l6.5 6.5",
  close: "M6 6l12 12M18 6L6 18",
  more: "M5 12h.01M12 12h.01M19 12h.01",
}

type IconName = keyof typeof ICONS

const SVG = "http://www.w3.org/2000/svg"

export function makeIcon(name: IconName): SVGElement {
  const icon = document.createElementNS(SVG, "svg")
  setAll(icon, { viewBox: "0 0 24 24", class: `line of-${name}`, "aria-hidden": "true" })
  const path = document.createElementNS(SVG, "path")
  path.setAttribute("d", ICONS[name])
  icon.append(path)
  return icon
}
