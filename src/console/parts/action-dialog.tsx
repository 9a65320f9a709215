import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import type { ApiRequest } from "../../client/client"
import { Button } from "./button"
import { Commands } from "./commands"
import { Dialog } from "./dialog"
import { Trouble } from "./notice"
import { tell } from "./toast"

interface ActionDialogProps<Made> {
  title: string
  children: ComponentChildren
  /** The word on the button that does it. */
  action: string
  look?: "go" | "danger"
  /** Told when it is done, unless the dialog shows the result. */
  said?: string
  run: () => Promise<Made>
  /** What the dialog shows of the result until a person closes it. Without it, it closes when all is done. */
  shown?: (made: Made) => ComponentChildren
  belfry: string
  request: ApiRequest
  /** What to do about a refusal, beside the server's own words. */
  explain?: (error: unknown) => ComponentChildren
  onClose: () => void
  onDone: () => void
}

/** Asks, does one thing, says how it went, and shows how a terminal and a program do the same. */
export function ActionDialog<Made>(props: ActionDialogProps<Made>) {
  const { title, children, action, look = "go", said, run, belfry, request } = props
  const { explain, shown, onClose, onDone } = props
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
      const value = await run()
      if (shown) setMade({ content: shown(value) })
      else onClose()
      if (said !== undefined) tell(said)
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
    <Dialog key="form" title={title} onClose={leave}>
      <form onSubmit={act}>
        {error !== undefined && <Trouble error={error} />}
        {error !== undefined && explain?.(error)}
        {children}
        <Commands belfry={belfry} request={request} />
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
