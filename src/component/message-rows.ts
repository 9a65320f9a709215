import type { InboxMessage } from "./inbox-message"
import { make } from "./make-element"
import { moveFocus, VERTICAL } from "./message-menu"
import { messageRow, type RowParts, rowFace } from "./message-row"
import { now } from "./now"
import { timeAgo } from "./time-words"

interface KnownRow {
  element: HTMLLIElement
  face: string
}

interface FocusPlace {
  id: string | undefined
  /** Of its row in the list. */
  place: number
  at: string | null
}

/** The rows of a view. A row stays while its message does, so that the focus and what was unfolded stay. */
export class MessageRows {
  readonly element = make("ul", { role: "list" })
  readonly #parts: RowParts
  readonly #rows = new Map<string, KnownRow>()

  constructor(parts: RowParts) {
    this.#parts = parts
    this.element.addEventListener("focusin", ({ target }) => {
      if (target instanceof Element) this.#setTabStops(target.closest("li"))
    })
  }

  update(messages: readonly InboxMessage[]): void {
    const focus = this.#focus()
    const ids = new Set(messages.map(({ id }) => id))
    for (const [id, { element }] of this.#rows) {
      if (ids.has(id)) continue
      element.remove()
      this.#rows.delete(id)
    }
    let next: Element | null = null
    for (const message of messages.toReversed()) {
      const row = this.#rowOf(message)
      if (row.parentNode === null || row.nextElementSibling !== next)
        this.element.insertBefore(row, next)
      next = row
    }
    if (focus) this.#giveBack(focus)
    this.#setTabStops(this.#active()?.closest("li") ?? null)
  }

  /** The arrows move among messages, from wherever in a row the focus is. */
  press(event: KeyboardEvent): void {
    const rows = [...this.element.children]
    const from = rows.findIndex((row) => row.contains(this.#active()))
    moveFocus(event, rows.map(openerOf), from, VERTICAL)
  }

  /** Focuses the first message. False where there is none. */
  focusFirst(): boolean {
    const first = this.element.firstElementChild
    if (first) openerOf(first)?.focus()
    return first !== null
  }

  /** Focuses the button of a message for more, or what has taken the place of the message. */
  focusMore(id: string): void {
    this.#giveBack({ id, place: 0, at: "more" })
  }

  /** Time passes. */
  tellTimes(): void {
    for (const time of this.element.querySelectorAll("time"))
      time.textContent = timeAgo(Date.parse(time.dateTime), now(), this.#parts.tag)
  }

  #rowOf(message: InboxMessage): HTMLLIElement {
    const known = this.#rows.get(message.id)
    const face = rowFace(message)
    if (known?.face === face) return known.element
    const element = messageRow(message, this.#parts)
    if (known?.element.classList.contains("whole")) element.classList.add("whole")
    known?.element.replaceWith(element)
    this.#rows.set(message.id, { element, face })
    return element
  }

  #active(): Element | null {
    const root = this.element.getRootNode()
    const active = root instanceof ShadowRoot ? root.activeElement : null
    return this.element.contains(active) ? active : null
  }

  #focus(): FocusPlace | undefined {
    const active = this.#active()
    const row = active?.closest("li")
    if (!active || !row) return undefined
    const id = [...this.#rows].find(([, { element }]) => element === row)?.[0]
    const place = [...this.element.children].indexOf(row)
    return { id, place, at: active.getAttribute("data-at") }
  }

  /** To the same part of the row, or to what has taken its place. */
  #giveBack({ id, place, at }: FocusPlace): void {
    if (this.#active()) return
    const { children } = this.element
    const same = id === undefined ? undefined : this.#rows.get(id)?.element
    const row = same ?? children[Math.min(place, children.length - 1)]
    const parts = [...(same?.querySelectorAll<HTMLElement>("[data-at]") ?? [])]
    const part = parts.find((one) => one.getAttribute("data-at") === at)
    const to = part ?? (row ? openerOf(row) : this.element.closest<HTMLElement>(".body"))
    to?.focus()
  }

  /** Tab reaches the parts of one row alone: a list of a hundred is no wall. */
  #setTabStops(row: Element | null): void {
    const chosen = row ?? this.element.querySelector("li:has([tabindex='0'])")
    const stop = chosen ?? this.element.firstElementChild
    for (const part of this.element.querySelectorAll<HTMLElement>("[data-at]"))
      part.tabIndex = stop?.contains(part) ? 0 : -1
  }
}

const openerOf = (row: Element) => row.querySelector<HTMLElement>(".open")
