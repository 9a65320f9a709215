import { useState } from "preact/hooks"
import { useLoaded, useTitle } from "../hooks"
import { ComposeDialog } from "../mail/compose-dialog"
import { ListPane, type MailboxDialog } from "../mail/list-pane"
import {
  ChaosDialog,
  DeleteAllDialog,
  isChaotic,
  KeysDialog,
  readChaos,
} from "../mail/mail-dialogs"
import { openMail, useFilter, useMailboxKeys, useMailList } from "../mail/mail-list"
import { MailView } from "../mail/mail-view"
import type { PageProps } from "../page-paths"
import { Empty } from "../parts/notice"

/** `/mailbox` and `/mailbox/{mail_id}`: the list beside the open mail; on a phone one of them. */
export function Page({ params: { mail_id } }: PageProps) {
  useTitle(mail_id ? "Mail" : "Mailbox")
  const filter = useFilter()
  const list = useMailList(filter.query, mail_id)
  const [dialog, setDialog] = useState<MailboxDialog>()
  const { value: chaos, again: readChaosAgain } = useLoaded(readChaos)
  const { open } = list.keys
  useMailboxKeys({
    // What a key does to an open mail is for that mail; without one, the key opens it.
    ...(!mail_id && { resend: open, copy: open, unread: open, delete: open }),
    ...list.keys,
    filter: () => document.querySelector<HTMLElement>("input[type=search]")?.focus(),
    compose: () => setDialog("compose"),
    help: () => setDialog("keys"),
    back: () => (mail_id ? openMail(undefined) : filter.clear()),
  })
  const close = () => setDialog(undefined)
  return (
    <div class={mail_id ? "mailbox open" : "mailbox"}>
      <h1 class="unseen">Mailbox</h1>
      <ListPane
        list={list}
        filter={filter}
        onDialog={setDialog}
        is_chaotic={chaos !== undefined && isChaotic(chaos)}
      />
      <section class="pane mail" aria-label="Mail">
        {mail_id ? (
          <MailView key={mail_id} mail_id={mail_id} list={list} />
        ) : (
          <Empty title="No mail is open">
            <p>Choose one from the list. The key ? shows all keys.</p>
          </Empty>
        )}
      </section>
      {dialog === "compose" && <ComposeDialog onClose={close} onDone={list.refresh} />}
      {dialog === "chaos" && <ChaosDialog onClose={close} onDone={readChaosAgain} />}
      {dialog === "keys" && <KeysDialog onClose={close} />}
      {dialog === "clear" && <DeleteAllDialog onClose={close} onDone={list.refresh} />}
    </div>
  )
}
