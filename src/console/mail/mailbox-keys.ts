import { useEffect, useRef } from "preact/hooks"
import { place } from "../router"

/** As in `belfry tui`, so that both are learned once. `list`: while the list has the focus, or no mail is open. */
const ROWS = [
  ["ArrowDown j", "down", "list", "move down by a mail"],
  ["ArrowUp k", "up", "list", "move up by a mail"],
  ["PageDown", "page_down", "list", "move down by a page"],
  ["PageUp", "page_up", "list", "move up by a page"],
  ["g Home", "first", "list", "go to the newest mail"],
  ["G End", "last", "list", "go to the oldest mail"],
  ["Enter", "open", "list", "open the mail"],
  ["Escape", "back", "both", "go back to the list, or remove the filter"],
  ["n", "next", "mail", "open the next mail"],
  ["p", "previous", "mail", "open the previous mail"],
  ["ArrowRight", "next_tab", "mail", "open the next tab"],
  ["ArrowLeft", "previous_tab", "mail", "open the previous tab"],
  ["/", "filter", "both", "search: words, to:ann@x.test from:b@y.test since:2h"],
  ["Space", "pause", "both", "pause the list, or continue it"],
  ["f", "follow", "both", "follow the newest mail, or stop following"],
  ["r", "resend", "both", "send this mail again (asks first)"],
  ["y", "copy", "both", "copy the id of the mail"],
  ["u", "unread", "both", "mark the mail as unread"],
  ["D", "delete", "both", "delete the mail (asks first)"],
  ["c", "compose", "both", "write a mail"],
  ["?", "help", "both", "show the keys"],
] as const

/** What a key does on the page of the mailbox; the names are those of the monitor. */
export type MailboxAction = (typeof ROWS)[number][1]

export const MAILBOX_KEYS = ROWS.map(([keys, action, place, text]) => {
  return { keys: keys.split(" "), action, place, text }
})

/** The action of a key, or undefined where the key has none at this place. */
export function actionOf(key: string, place: "list" | "mail"): MailboxAction | undefined {
  const name = key === " " ? "Space" : key
  return MAILBOX_KEYS.find(
    (row) => row.keys.includes(name) && (row.place === "both" || row.place === place),
  )?.action
}

/**
 * Calls what a part of the page does for a key, unless somebody types into a field or a dialog is open. What a part
 * does not name is for the other parts.
 */
export function useMailboxKeys(actions: Partial<Record<MailboxAction, () => unknown>>): void {
  const latest = useRef(actions)
  latest.current = actions
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      const target = event.target instanceof Element ? event.target : null
      if (document.querySelector("dialog[open]")) return
      if (isTyping(target, event)) return
      const action = actionAt(event.key, target)
      const act = action && latest.current[action]
      if (!act || isOwn(target, event.key)) return
      event.preventDefault()
      act()
    }
    document.addEventListener("keydown", press)
    return () => document.removeEventListener("keydown", press)
  }, [])
}

/** In the list beside an open mail the keys of the mail work, too. */
function actionAt(key: string, target: Element | null): MailboxAction | undefined {
  const is_open = place.value.path.startsWith("/mailbox/")
  const is_in_list = target?.closest("[role=listbox]") != null
  const of_list = is_in_list || !is_open ? actionOf(key, "list") : undefined
  return of_list ?? (is_open ? actionOf(key, "mail") : undefined)
}

/** Escape leaves a field, and then works as everywhere. Enter in the search goes to what it found. */
function isTyping(target: Element | null, event: KeyboardEvent): boolean {
  const is_field = target?.matches("input:not([type=checkbox]), textarea, select") ?? false
  if (is_field && event.key === "Escape" && target instanceof HTMLElement) {
    target.blur()
    return false
  }
  if (event.key === "Enter" && target?.matches("input[type=search]"))
    document.querySelector<HTMLElement>("[role=listbox]")?.focus()
  return is_field
}

/** A control that has the focus keeps the keys that work it. */
function isOwn(target: Element | null, key: string): boolean {
  if (!target?.matches("button, a, summary, input, [role=tab], pre, section.scroll")) return false
  return ["Enter", " ", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"].includes(key)
}
