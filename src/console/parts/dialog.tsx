import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef } from "preact/hooks"

/** Where a person begins: the first field, or the first button of the actions. */
const FIRST = ".content :is(input, textarea), .content .buttons.end button, footer button"

interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  /** Buttons at its end. */
  actions?: ComponentChildren
  is_wide?: boolean
  /** A press beside it does not close it: what it shows does not come again. */
  is_firm?: boolean
}

/** Stands above the page until it is closed: by Escape, by its button, or by a press beside it. */
export function Dialog({ title, onClose, children, actions, ...look }: DialogProps) {
  const { is_wide = false, is_firm = false } = look
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    // On a touch screen the keyboard of a field would cover what there is to read, and no key that is still down may
    // close what does not come again.
    const is_read_first = is_firm || matchMedia("(pointer: coarse)").matches
    dialog.current?.querySelector<HTMLElement>(is_read_first ? "h2" : FIRST)?.focus()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [is_firm])
  return (
    <dialog
      ref={dialog}
      class={is_wide ? "wide" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onKeyDown={(event) => event.stopPropagation()}
      onClick={(event) => {
        if (event.target === event.currentTarget && !is_firm) onClose()
      }}
    >
      <div class="sheet">
        <header>
          <h2 id={id} tabIndex={-1}>
            {title}
          </h2>
          <button type="button" class="icon" aria-label="Close" onClick={onClose}>
            <span aria-hidden="true">✕</span>
          </button>
        </header>
        <div class="content">{children}</div>
        {actions && <footer>{actions}</footer>}
      </div>
    </dialog>
  )
}
