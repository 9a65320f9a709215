import type { ComponentChildren } from "preact"
import { useEffect, useId, useRef, useState } from "preact/hooks"
import {
  type AnswerOf,
  type AnyInput,
  type OperationInput,
  type OperationName,
  requestOf,
} from "../../client/client"
import { call } from "../transport"
import { Button } from "./button"
import { Commands } from "./code-block"
import { Trouble } from "./notice"
import { notify } from "./toast"

/** Where a person begins: the first field, or the first button of the actions. */
const FIRST = ".content :is(input, textarea), .content .buttons.end button, footer button"

interface SheetProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  actions?: ComponentChildren
  is_wide?: boolean
  /** A press beside it does not close it: what it shows does not come again. */
  is_firm?: boolean
}

/** Stands above the page until it is closed: by Escape, by its button, or by a press beside it. */
export function Dialog({ title, onClose, children, actions, ...look }: SheetProps) {
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

/** What every dialog that does something gets. */
export interface DialogProps {
  onClose: () => void
  onDone: () => unknown
}

interface ActionDialogProps<Name extends OperationName> extends DialogProps {
  title: string
  children: ComponentChildren
  action: string
  look?: "plain" | "go" | "danger"
  /** Told when it is done, unless the dialog shows the result. */
  said?: string
  operation: Name
  input: NonNullable<OperationInput<Name>[0]>
  /** What the dialog shows of the answer until a person closes it. Without it, it closes when all is done. */
  shown?: (answer: AnswerOf<Name>) => ComponentChildren
  belfry: string
  is_wide?: boolean
  /** What to do about a refusal, beside the server's own words. */
  explain?: (error: unknown) => ComponentChildren
}

/** Asks, does one thing, says how it went, and shows how a terminal and a program do the same. */
export function ActionDialog<Name extends OperationName>(props: ActionDialogProps<Name>) {
  const { title, children, action, look = "go", said, operation, input, belfry } = props
  const { explain, shown, is_wide = false, onClose, onDone } = props
  const [made, setMade] = useState<{ content: ComponentChildren }>()
  const [error, setError] = useState<unknown>()
  const [is_busy, setBusy] = useState(false)
  // What is shown once must find its dialog open.
  const leave = () => {
    if (!(is_busy && shown)) onClose()
  }
  const act = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const answer = await call(operation, ...([input] as OperationInput<Name>))
      if (shown) setMade({ content: shown(answer) })
      else onClose()
      if (said !== undefined) notify(said)
    } catch (thrown) {
      setError(thrown)
      setBusy(false)
      return
    }
    onDone()
  }
  if (made) {
    const close = (
      <Button look="go" onClick={onClose}>
        Close
      </Button>
    )
    return (
      <Dialog key="made" title={title} onClose={onClose} actions={close} is_firm>
        {made.content}
      </Dialog>
    )
  }
  return (
    <Dialog key="form" title={title} onClose={leave} is_wide={is_wide}>
      <form onSubmit={act}>
        <Trouble error={error} />
        {error !== undefined && explain?.(error)}
        {children}
        <Commands belfry={belfry} request={requestOf(operation, input as AnyInput)} />
        <div class="buttons end">
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" look={look} is_busy={is_busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
