import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { copyText } from "../copy-text"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { Empty, Waiting } from "../parts/empty"
import { Menu } from "../parts/menu"
import { Trouble } from "../parts/notice"
import { Tabs } from "../parts/tabs"
import { notify } from "../parts/toast"
import { messageOf, RequestError } from "../request-error"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { useMedia } from "../use-media"
import { useObservable } from "../use-observable"
import { useTitle } from "../use-title"
import { CheckView } from "./check-view"
import { addressesOf, namedAddress, recipientsOf, timeText } from "./describe"
import { type OpenMail, type TabName, tabCommand } from "./mail-commands"
import { CommandsDialog, DeleteDialog, ReleaseDialog, ResendDialog } from "./mail-dialogs"
import { listBox, type MailList } from "./mail-list"
import {
  changeView,
  FilesView,
  HeadersView,
  HtmlView,
  rawMail,
  SourceView,
  saveMail,
  TextView,
  view_choice,
} from "./mail-tabs"
import { TimelineView } from "./timeline-view"
import { useMailboxKeys } from "./use-mailbox-keys"

interface MailViewProps {
  mail_id: string
  list: MailList
  onStep: (by: number) => void
  onClose: () => void
  /** The mail was deleted; `place` is where it stood in the list. */
  onRemoved: (place: number | undefined) => void
}

/** One mail with all that is known of it. Opening it marks it as read. */
export function MailView({ mail_id, ...rest }: MailViewProps) {
  const { list, onClose } = rest
  const read = useCallback(async () => {
    const { data } = await call("GET /v1/mailbox/{mail_id}", { params: { mail_id } })
    return data
  }, [mail_id])
  const { value: mail, error, again } = useLoaded(read)
  const is_unread = mail?.read === false
  useEffect(() => {
    if (!is_unread) return
    const body = { read: true }
    call("PATCH /v1/mailbox/{mail_id}", { params: { mail_id }, body }).then(
      () => list.change(mail_id, body),
      () => undefined, // a key that only reads may not; the mail shows all the same
    )
  }, [is_unread, mail_id, list])
  if (error instanceof RequestError && error.status === 404) return <Gone onClose={onClose} />
  if (error !== undefined)
    return (
      <div class="opened">
        <Trouble error={error} onRetry={again} />
      </div>
    )
  if (!mail) return <Waiting />
  return <Opened {...{ ...rest, mail, again }} />
}

const Gone = ({ onClose }: { onClose: () => void }) => (
  <Empty title="This mail is gone">
    <p>It was deleted, or it belongs to another project.</p>
    <button type="button" class="button" onClick={onClose}>
      Back to the list
    </button>
  </Empty>
)

interface OpenedProps extends Omit<MailViewProps, "mail_id"> {
  mail: OpenMail
  again: () => Promise<void>
}

function Opened({ mail, again, ...rest }: OpenedProps) {
  const { list, onStep, onClose, onRemoved } = rest
  const choice = useObservable(view_choice)
  const tabs = tabsOf(mail)
  const tab = tabs.find(({ name }) => name === choice.tab)?.name ?? tabs[0]?.name ?? "text"
  const setTab = (name: TabName) => changeView({ tab: name })
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(mail.subject || "Mail")
  useEffect(() => {
    // On a phone the list that had the focus is gone.
    if (!listBox()?.checkVisibility()) heading.current?.focus()
  }, [])
  const turn = (by: number) => {
    const at = tabs.findIndex(({ name }) => name === tab) + by
    setTab(tabs[(at + tabs.length) % tabs.length]?.name ?? tab)
  }
  useMailboxKeys({ next_tab: () => turn(1), previous_tab: () => turn(-1) })
  return (
    <article class="opened">
      <header>
        <div class="title">
          <button type="button" class="icon back" aria-label="Back to the list" onClick={onClose}>
            <span aria-hidden="true">←</span>
          </button>
          <h2 ref={heading} tabIndex={-1}>
            <bdi>{mail.subject || "(no subject)"}</bdi>
          </h2>
          <span class="steps-through">
            <Button label="Previous mail" onClick={() => onStep(-1)}>
              ↑
            </Button>
            <Button label="Next mail" onClick={() => onStep(1)}>
              ↓
            </Button>
          </span>
        </div>
        <Envelope mail={mail} />
        <MailActions {...{ mail, list, onRemoved }} />
        {mail.parse_error && (
          <p class="problem">This mail could not be read whole: {mail.parse_error}</p>
        )}
      </header>
      <Tabs label="Views of the mail" tabs={tabs} chosen={tab} onChoose={setTab}>
        <Panel tab={tab} mail={mail} again={again} />
        {tab !== "check" && <Commands {...tabCommand(tab, mail)} />}
      </Tabs>
    </article>
  )
}

const Envelope = ({ mail: { from, to, headers, created_at } }: { mail: OpenMail }) => (
  <dl class="facts">
    <dt>From</dt>
    <dd>
      <bdi>{namedAddress(from, headers.from)}</bdi>
    </dd>
    <dt>To</dt>
    <dd>
      <AddressList addresses={recipientsOf(to, headers.to)} />
    </dd>
    {headers.cc !== undefined && (
      <>
        <dt>Cc</dt>
        <dd>
          <AddressList addresses={addressesOf(headers.cc)} />
        </dd>
      </>
    )}
    <dt>Received</dt>
    <dd>
      <time dateTime={created_at}>{timeText(created_at)}</time>
    </dd>
  </dl>
)

/** So many addresses stand in a row. Of more, all but the first ones are folded, so that the mail below is seen. */
const MOST_SHOWN = 6
const FIRST_SHOWN = 3

function AddressList({ addresses }: { addresses: string[] }) {
  const shown = addresses.length > MOST_SHOWN ? FIRST_SHOWN : MOST_SHOWN
  const folded = addresses.slice(shown)
  return (
    <>
      <bdi>{addresses.slice(0, shown).join(", ")}</bdi>
      {folded.length > 0 && (
        <details>
          <summary>and {folded.length} more</summary>
          <bdi>{folded.join(", ")}</bdi>
        </details>
      )}
    </>
  )
}

/** What can be done with the mail. What changes something asks first, and says how a terminal does it. */
function MailActions({ mail, list, onRemoved }: Pick<OpenedProps, "mail" | "list" | "onRemoved">) {
  const { id, email_id } = mail
  const [dialog, setDialog] = useState<"commands" | "release" | "resend" | "delete">()
  const is_resendable = email_id !== null
  const resend = () => is_resendable && setDialog("resend")
  const remove = () => setDialog("delete")
  const unread = () => markUnread(id, list)
  useMailboxKeys({ resend, delete: remove, unread, copy: () => copyId(id) })
  const is_narrow = useMedia("(max-width: 40rem)")
  const more = (
    <>
      {is_resendable && <Button onClick={resend}>Resend</Button>}
      <Button onClick={() => rawMail(id).then((bytes) => saveMail(id, bytes), failed)}>
        Download .eml
      </Button>
      <Button onClick={unread}>Mark unread</Button>
      <Button onClick={() => setDialog("commands")}>Commands</Button>
    </>
  )
  const onClose = () => setDialog(undefined)
  const onDeleted = () => {
    const place = list.pages.placeOf(id)
    list.remove(id)
    onRemoved(place)
  }
  const opened = { mail, onClose, onDone: list.refresh }
  return (
    <>
      <div class="buttons">
        <Button look="go" onClick={() => setDialog("release")}>
          Release
        </Button>
        {is_narrow ? <Menu text="More">{more}</Menu> : more}
        <Button look="danger" onClick={remove}>
          Delete
        </Button>
      </div>
      {dialog === "commands" && <CommandsDialog {...opened} />}
      {dialog === "release" && <ReleaseDialog {...opened} />}
      {dialog === "resend" && <ResendDialog {...opened} />}
      {dialog === "delete" && <DeleteDialog {...opened} onDone={onDeleted} />}
    </>
  )
}

const failed = (error: unknown) => notify(messageOf(error), "bad")

async function copyId(id: string) {
  if (await copyText(id)) notify(`the id ${id} is copied`)
  else notify(`the browser does not copy here; the id is ${id}`, "bad")
}

async function markUnread(mail_id: string, list: MailList) {
  const body = { read: false }
  try {
    await call("PATCH /v1/mailbox/{mail_id}", { params: { mail_id }, body })
    list.change(mail_id, body)
    notify(`the mail is unread again (belfry mailbox read ${mail_id} --unread)`)
  } catch (error) {
    failed(error)
  }
}

function tabsOf({ html, attachments, email_id }: OpenMail) {
  const files = attachments.length
  const all: { name: TabName; text: string; count?: number; is_there?: boolean }[] = [
    { name: "html", text: "HTML", is_there: html !== null },
    { name: "text", text: "Text" },
    { name: "source", text: "Source" },
    { name: "headers", text: "Headers" },
    { name: "attachments", text: "Files", count: files, is_there: files > 0 },
    { name: "check", text: "Check" },
    { name: "timeline", text: "Timeline", is_there: email_id !== null },
  ]
  return all.filter(({ is_there = true }) => is_there)
}

interface PanelProps {
  tab: TabName
  mail: OpenMail
  again: () => Promise<void>
}

function Panel({ tab, mail, again }: PanelProps) {
  if (tab === "html") return <HtmlView mail={mail} again={again} />
  if (tab === "text") return <TextView mail={mail} />
  if (tab === "source") return <SourceView mail={mail} />
  if (tab === "headers") return <HeadersView mail={mail} />
  if (tab === "attachments") return <FilesView mail={mail} />
  return tab === "check" ? <CheckView mail={mail} /> : <TimelineView mail={mail} />
}
