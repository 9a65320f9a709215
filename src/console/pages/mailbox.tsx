import { useRef, useState } from "preact/hooks"
import { ChaosDialog, isChaotic, readChaos } from "../mail/chaos-dialog"
import { ComposeDialog } from "../mail/compose-dialog"
import { DeleteAllDialog } from "../mail/delete-dialogs"
import { KeysDialog } from "../mail/keys-dialog"
import { ListPane, type MailboxDialog } from "../mail/list-pane"
import { MailView } from "../mail/mail-view"
import type { MailboxAction } from "../mail/mailbox-keys"
import { openMail } from "../mail/open-mail"
import type { AskedAction } from "../mail/use-asked"
import { useFilter } from "../mail/use-filter"
import { useMailList } from "../mail/use-mail-list"
import { useMailboxKeys } from "../mail/use-mailbox-keys"
import { usePosition } from "../mail/use-position"
import type { PageProps } from "../page-props"
import { Empty } from "../parts/empty"
import { useLoaded } from "../use-loaded"
import { useTitle } from "../use-title"

/** `/mailbox` and `/mailbox/{mail_id}`: the list beside the open mail; on a phone one of them. */
export function Page({ params: { mail_id } }: PageProps) {
  useTitle(mail_id ? "Mail" : "Mailbox")
  const filter = useFilter()
  const list = useMailList(filter.query)
  const chosen = usePosition(list, mail_id)
  const [dialog, setDialog] = useState<MailboxDialog>()
  const search = useRef<HTMLDivElement>(null)
  const [asked, setAsked] = useState<AskedAction>()
  const { value: chaos, again: readChaosAgain } = useLoaded(readChaos)
  const act = (action: MailboxAction) => {
    if (chosen.act(action)) return
    if (action === "filter") search.current?.querySelector("input")?.focus()
    else if (action === "pause") list.setPaused(list.state !== "paused")
    else if (action === "compose") setDialog("compose")
    else if (action === "help") setDialog("keys")
    else if (action === "back") mail_id ? openMail(undefined) : filter.clear()
    else if (!mail_id) chosen.act("open")
    else setAsked((old) => ({ action, number: (old?.number ?? 0) + 1 }))
  }
  useMailboxKeys(mail_id !== undefined, act)
  const close = () => setDialog(undefined)
  return (
    <div class={mail_id ? "mailbox open" : "mailbox"}>
      <h1 class="unseen">Mailbox</h1>
      <ListPane
        list={list}
        filter={filter}
        position={chosen.position}
        onOpen={chosen.open}
        onDialog={setDialog}
        search={search}
        is_chaotic={chaos !== undefined && isChaotic(chaos)}
      />
      <section class="pane mail" aria-label="Mail">
        {mail_id ? (
          <MailView
            key={mail_id}
            mail_id={mail_id}
            list={list}
            asked={asked}
            onStep={chosen.step}
            onClose={() => openMail(undefined)}
            onRemoved={chosen.goOn}
          />
        ) : (
          <Empty title="No mail is open">
            <p>Choose one from the list. The key ? shows all keys.</p>
          </Empty>
        )}
      </section>
      {dialog === "compose" && <ComposeDialog onClose={close} onSent={list.refresh} />}
      {dialog === "chaos" && <ChaosDialog onClose={close} onDone={readChaosAgain} />}
      {dialog === "keys" && <KeysDialog onClose={close} />}
      {dialog === "clear" && <DeleteAllDialog onClose={close} onDone={list.refresh} />}
    </div>
  )
}
