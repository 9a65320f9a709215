import { useEffect, useRef } from "preact/hooks"
import type { MailboxAction } from "./mailbox-keys"

/** A key that was pressed on the page; each press has a number of its own. */
export interface AskedAction {
  action: MailboxAction
  number: number
}

/** Calls `act` once for each press since this part is there; an older press was not meant for it. */
export function useAsked(
  asked: AskedAction | undefined,
  act: (action: MailboxAction) => void,
): void {
  const handled = useRef(asked?.number)
  const latest = useRef(act)
  latest.current = act
  useEffect(() => {
    if (!asked || asked.number === handled.current) return
    handled.current = asked.number
    latest.current(asked.action)
  }, [asked])
}
