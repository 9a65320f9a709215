import type { ComponentChildren } from "preact"

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
