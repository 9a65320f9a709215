import { useState } from "preact/hooks"
import { copyText } from "../copy-text"
import { Button } from "../parts/button"
import { Menu } from "../parts/menu"
import { tell } from "../parts/toast"
import { messageOf } from "../request-error"
import { saveBytes } from "../save-file"
import { call } from "../transport"
import { useMedia } from "../use-media"
import { CommandsDialog } from "./commands-dialog"
import { DeleteDialog } from "./delete-dialogs"
import type { OpenMail } from "./mail-records"
import { ReleaseDialog } from "./release-dialog"
import { ResendDialog } from "./resend-dialog"
import { rawMail } from "./source-view"
import { type AskedAction, useAsked } from "./use-asked"
import type { MailList } from "./use-mail-list"

interface MailActionsProps {
  mail: OpenMail
  list: MailList
  asked: AskedAction | undefined
  /** The mail was deleted; `place` is where it stood in the list. */
  onRemoved: (place: number | undefined) => void
}

type ActionDialog = "commands" | "release" | "resend" | "delete"

/** What can be done with the mail. What changes something asks first, and says how a terminal does it. */
export function MailActions({ mail, list, asked, onRemoved }: MailActionsProps) {
  const { id, email_id } = mail
  const [dialog, setDialog] = useState<ActionDialog>()
  const is_resendable = email_id !== null
  useAsked(asked, (action) => {
    if (action === "resend" && is_resendable) setDialog("resend")
    if (action === "delete") setDialog("delete")
    if (action === "unread") void markUnread(id, list)
    if (action === "copy") void copyId(id)
  })
  const is_narrow = useMedia("(max-width: 40rem)")
  const more = (
    <>
      {is_resendable && <Button onClick={() => setDialog("resend")}>Resend</Button>}
      <Button onClick={() => download(id)}>Download .eml</Button>
      <Button onClick={() => markUnread(id, list)}>Mark unread</Button>
      <Button onClick={() => setDialog("commands")}>Commands</Button>
    </>
  )
  const close = () => setDialog(undefined)
  const removed = () => {
    const place = list.pages.placeOf(id)
    list.remove(id)
    onRemoved(place)
  }
  return (
    <>
      <div class="buttons">
        <Button look="go" onClick={() => setDialog("release")}>
          Release
        </Button>
        {is_narrow ? <Menu text="More">{more}</Menu> : more}
        <Button look="danger" onClick={() => setDialog("delete")}>
          Delete
        </Button>
      </div>
      {dialog === "commands" && <CommandsDialog mail={mail} onClose={close} />}
      {dialog === "release" && (
        <ReleaseDialog mail={mail} onClose={close} onReleased={list.refresh} />
      )}
      {dialog === "resend" && <ResendDialog mail={mail} onClose={close} onSent={list.refresh} />}
      {dialog === "delete" && <DeleteDialog mail={mail} onClose={close} onDone={removed} />}
    </>
  )
}

const failed = (error: unknown) => tell(messageOf(error), "bad")

async function copyId(id: string) {
  if (await copyText(id)) tell(`the id ${id} is copied`)
  else tell(`the browser does not copy here; the id is ${id}`, "bad")
}

const download = (id: string) =>
  rawMail(id).then((bytes) => saveBytes(bytes, `${id}.eml`, "message/rfc822"), failed)

async function markUnread(mail_id: string, list: MailList) {
  const body = { read: false }
  try {
    await call("PATCH /v1/mailbox/{mail_id}", { params: { mail_id }, body })
    list.change(mail_id, body)
    tell(`the mail is unread again (belfry mailbox read ${mail_id} --unread)`)
  } catch (error) {
    failed(error)
  }
}
