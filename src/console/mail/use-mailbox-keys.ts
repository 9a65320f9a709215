import { useEffect, useRef } from "preact/hooks"
import { actionOf, type MailboxAction } from "./mailbox-keys"

/** Hands each key that means something to the page, unless somebody types into a field or a dialog is open. */
export function useMailboxKeys(is_open: boolean, act: (action: MailboxAction) => void): void {
  const latest = useRef({ is_open, act })
  latest.current = { is_open, act }
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      const target = event.target instanceof Element ? event.target : null
      if (document.querySelector("dialog[open]")) return
      if (isTyping(target, event)) return
      const is_in_list = target?.closest("[role=listbox]") != null
      const { is_open } = latest.current
      // In the list beside an open mail the keys of the mail work, too.
      const of_list = is_in_list || !is_open ? actionOf(event.key, "list") : undefined
      const action = of_list ?? (is_open ? actionOf(event.key, "mail") : undefined)
      if (!action || isOwn(target, event.key)) return
      event.preventDefault()
      latest.current.act(action)
    }
    document.addEventListener("keydown", press)
    return () => document.removeEventListener("keydown", press)
  }, [])
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
