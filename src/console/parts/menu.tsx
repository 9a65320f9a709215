import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"

interface MenuProps {
  text: string
  /** Buttons; the menu closes after each press. */
  children: ComponentChildren
}

/** Actions that are rare, or that have no room. It closes by a press anywhere and by Escape. */
export function Menu({ text, children }: MenuProps) {
  const box = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const is_summary = event.target instanceof Element && event.target.closest("summary") !== null
      if (box.current?.open && !(is_summary && box.current.contains(event.target as Node)))
        box.current.open = false
    }
    const press = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !box.current?.open) return
      event.preventDefault() // the key closes the menu, and nothing else
      box.current.open = false
      box.current.querySelector("summary")?.focus()
    }
    document.addEventListener("click", close)
    document.addEventListener("keydown", press, { capture: true })
    return () => {
      document.removeEventListener("click", close)
      document.removeEventListener("keydown", press, { capture: true })
    }
  }, [])
  return (
    <details class="menu" ref={box}>
      <summary class="button">
        {text} <span aria-hidden="true">▾</span>
      </summary>
      <div class="choices">{children}</div>
    </details>
  )
}
