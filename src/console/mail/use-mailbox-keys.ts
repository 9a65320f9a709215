import { useEffect, useRef } from "preact/hooks"
import { place } from "../router"
import { actionOf, type MailboxAction } from "./mailbox-keys"

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
