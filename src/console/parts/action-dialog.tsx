import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import {
  type AnswerOf,
  type AnyInput,
  type OperationInput,
  type OperationName,
  requestOf,
} from "../../client/client"
import { call } from "../transport"
import { Button } from "./button"
import { Commands } from "./commands"
import { Dialog } from "./dialog"
import { Trouble } from "./notice"
import { notify } from "./toast"

/** What every dialog that does something gets. */
export interface DialogProps {
  onClose: () => void
  /** Called when it is done. */
  onDone: () => unknown
}

interface ActionDialogProps<Name extends OperationName> extends DialogProps {
  title: string
  children: ComponentChildren
  /** The word on the button that does it. */
  action: string
  look?: "go" | "danger"
  /** Told when it is done, unless the dialog shows the result. */
  said?: string
  /** What it asks the API for. */
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
        {error !== undefined && <Trouble error={error} />}
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
