import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import type { MailboxAction } from "./mailbox-keys"
import { openMail } from "./open-mail"
import type { MailList } from "./use-mail-list"

const PAGE_STEP = 10

/** The row that the keyboard is on: by its mail, so that it stays when mail comes in above. */
export function usePosition(list: MailList, mail_id: string | undefined) {
  const { pages } = list
  const [at, setAt] = useState<number>()
  const [is_following, setFollowing] = useState(false)
  const added = useRef(list.added)
  const shift = list.added - added.current
  useEffect(() => {
    if (shift !== 0) setAt((old) => (old === undefined ? old : old + shift))
    added.current = list.added
  }, [shift, list.added])
  const known = mail_id === undefined ? undefined : pages.placeOf(mail_id)
  const position = is_following ? 0 : (known ?? (at === undefined ? undefined : at + shift))
  const open = useCallback(
    (place: number) => {
      const mail = pages.at(place)
      setAt(place)
      if (mail) openMail(mail.id)
    },
    [pages],
  )
  const moveTo = (to: number) => {
    setFollowing(false)
    setAt(Math.max(0, Math.min(pages.count - 1, to)))
  }
  const step = (by: number) => {
    const to = (position ?? -1) + by
    if (to >= 0 && to < pages.count) open(to)
  }
  /** The mail at this place is gone: the next one opens where the list stands beside it, and the list has the focus. */
  const goOn = (gone: number | undefined) => {
    const next = Math.min(gone ?? pages.count, pages.count - 1)
    if (next >= 0 && pages.at(next) && listBox()?.checkVisibility()) open(next)
    else openMail(undefined)
    setTimeout(() => listBox()?.focus()) // after the dialog gave it back to a button that is gone
  }
  const act = (action: MailboxAction): boolean => {
    const from = position ?? -1
    const moves: Partial<Record<MailboxAction, () => void>> = {
      down: () => moveTo(from + 1),
      up: () => moveTo(from - 1),
      page_down: () => moveTo(from + PAGE_STEP),
      page_up: () => moveTo(from - PAGE_STEP),
      first: () => moveTo(0),
      last: () => moveTo(pages.count - 1),
      open: () => open(from),
      next: () => step(1),
      previous: () => step(-1),
      follow: () => setFollowing((old) => !old),
    }
    moves[action]?.()
    return action in moves
  }
  return { position, open, step, goOn, act }
}

const listBox = () => document.querySelector<HTMLElement>("[role=listbox]")
