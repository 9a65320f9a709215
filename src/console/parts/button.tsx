import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { chooseTheme, keptTheme, THEME_SIGNS } from "../theme-choice"

interface ButtonProps {
  children: ComponentChildren
  /** `go` is the one main action of a place; `danger` deletes something. */
  look?: "plain" | "go" | "danger" | "quiet"
  type?: "button" | "submit"
  /** Works on it: it cannot be pressed again meanwhile. */
  is_busy?: boolean
  disabled?: boolean
  onClick?: (event: MouseEvent) => unknown
  label?: string
  title?: string
  pressed?: boolean
}

export function Button({ children, look = "plain", type = "button", ...rest }: ButtonProps) {
  const { is_busy = false, disabled = false, onClick, label, title, pressed } = rest
  return (
    <button
      type={type}
      class={`button ${look}`}
      disabled={disabled || is_busy}
      aria-busy={is_busy || undefined}
      aria-label={label}
      aria-pressed={pressed}
      title={title}
      onClick={onClick}
    >
      {children}
    </button>
  )
}

/** Actions that are rare, or that have no room. It closes by a press anywhere and by Escape. */
export function Menu({ text, children }: { text: string; children: ComponentChildren }) {
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

/** Goes through system, light and dark. The choice is kept in this browser. */
export function ThemeSwitch() {
  const [choice, setChoice] = useState(keptTheme())
  const { next, sign, text } = THEME_SIGNS[choice]
  const change = () => {
    chooseTheme(next)
    setChoice(next)
  }
  return (
    <button type="button" class="icon" aria-label={text} title={text} onClick={change}>
      <span aria-hidden="true">{sign}</span>
    </button>
  )
}
