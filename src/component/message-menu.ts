import type { InboxClient } from "./inbox-client"
import type { InboxMessage } from "./inbox-message"
import type { InboxWords } from "./inbox-words"
import { make, makeButton } from "./make-element"
import { now } from "./now"
import { snoozeEnds } from "./time-words"
import { placer } from "./top-layer"

export interface MenuParts {
  root: ShadowRoot
  words: InboxWords
  client: InboxClient
  /** Shows what went wrong with a change. */
  attempt(change: Promise<unknown>): void
  /** Focuses the button of a message that opens the menu. */
  focusButton(id: string): void
}

/** What can be done with one message. It opens at the button that asks for it, and closes by Escape or a press elsewhere. */
export class MessageMenu {
  readonly element = make("div", { class: "menu", role: "menu", popover: "auto" })
  readonly #parts: MenuParts
  readonly #place: ReturnType<typeof placer>
  #id = ""

  constructor(parts: MenuParts) {
    this.#parts = parts
    this.#place = placer(parts.root, ".menu")
    this.element.addEventListener("keydown", (event) => this.#press(event))
    // Browsers give the focus back from a popover, but not from one above another. The row may be another by then.
    this.element.addEventListener("beforetoggle", ({ newState }) => {
      const has_focus = this.element.contains(parts.root.activeElement)
      if (newState === "closed" && has_focus) parts.focusButton(this.#id)
    })
  }

  show(message: InboxMessage, at: HTMLElement): void {
    this.element.setAttribute("aria-label", this.#parts.words.more(message.title))
    this.element.replaceChildren(...this.#items(message))
    this.#id = message.id
    this.element.showPopover()
    this.#place(this.element, at)
    this.#buttons[0]?.focus()
  }

  hide(): void {
    if (this.element.isConnected) this.element.hidePopover()
  }

  get #buttons(): HTMLElement[] {
    return [...this.element.querySelectorAll<HTMLElement>("button")]
  }

  #items({ id, read_at, archived_at, snoozed_until }: InboxMessage): HTMLElement[] {
    const { words, client } = this.#parts
    const item = (text: string, change: () => Promise<unknown>, look = "") =>
      makeButton(
        { class: look, role: "menuitem", tabindex: "-1" },
        () => {
          this.hide()
          this.#parts.attempt(change())
        },
        text,
      )
    const ends = snoozeEnds(now())
    const snoozes = (["hour", "day", "week"] as const).map((preset) => {
      const until = new Date(ends[preset]).toISOString()
      return item(words.snooze[preset], () => client.snooze(id, until))
    })
    return [
      read_at === null
        ? item(words.mark_read, () => client.mark(id, "read"))
        : item(words.mark_unread, () => client.mark(id, "unread")),
      archived_at === null
        ? item(words.archive, () => client.mark(id, "archived"))
        : item(words.unarchive, () => client.mark(id, "unarchived")),
      ...(snoozed_until === null ? snoozes : [item(words.wake, () => client.snooze(id, null))]),
      item(words.remove, () => client.remove(id), "danger"),
    ]
  }

  #press(event: KeyboardEvent): void {
    if (event.key === "Tab") this.hide()
    const from = indexIn(this.#buttons, this.#parts.root)
    if (moveFocus(event, this.#buttons, from, VERTICAL)) event.stopPropagation()
  }
}

/** Where among the elements the focus is; -1: elsewhere. */
export const indexIn = (elements: readonly Element[], { activeElement }: ShadowRoot): number =>
  activeElement ? elements.indexOf(activeElement) : -1

/** Moves the focus from one of the elements by two arrows, Home and End. False where the key is another one. */
export function moveFocus(
  event: KeyboardEvent,
  elements: readonly (HTMLElement | null)[],
  from: number,
  [previous, next]: readonly [string, string],
): boolean {
  const last = elements.length - 1
  const steps: Record<string, number> = {
    [next]: from + 1,
    [previous]: from - 1,
    Home: 0,
    End: last,
  }
  const to = steps[event.key]
  if (to === undefined || last < 0) return false
  elements[Math.max(0, Math.min(to, last))]?.focus()
  event.preventDefault()
  return true
}

export const VERTICAL = ["ArrowUp", "ArrowDown"] as const
