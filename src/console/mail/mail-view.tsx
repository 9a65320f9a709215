import { useCallback, useEffect, useRef } from "preact/hooks"
import { Button } from "../parts/button"
import { Empty, Waiting } from "../parts/empty"
import { Trouble } from "../parts/notice"
import { Tabs } from "../parts/tabs"
import { RequestError } from "../request-error"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { useObservable } from "../use-observable"
import { useTitle } from "../use-title"
import { AddressList } from "./address-list"
import { AttachmentsView } from "./attachments-view"
import { CheckView } from "./check-view"
import { addressesOf, namedAddress, recipientsOf, timeText } from "./describe"
import { HeadersView } from "./headers-view"
import { HtmlView } from "./html-view"
import { MailActions } from "./mail-actions"
import type { OpenMail } from "./mail-records"
import { SourceView } from "./source-view"
import { TextView } from "./text-view"
import { TimelineView } from "./timeline-view"
import { type AskedAction, useAsked } from "./use-asked"
import type { MailList } from "./use-mail-list"
import { changeView, type TabName, view_choice } from "./view-choice"

interface MailViewProps {
  mail_id: string
  list: MailList
  asked: AskedAction | undefined
  onStep: (by: number) => void
  onClose: () => void
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
  const { change } = list
  const is_unread = mail?.read === false
  useEffect(() => {
    if (!is_unread) return
    const body = { read: true }
    call("PATCH /v1/mailbox/{mail_id}", { params: { mail_id }, body }).then(
      () => change(mail_id, body),
      () => undefined, // a key that only reads may not; the mail shows all the same
    )
  }, [is_unread, mail_id, change])
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
  const { list, asked, onStep, onClose, onRemoved } = rest
  const choice = useObservable(view_choice)
  const tabs = tabsOf(mail)
  const tab = tabs.find(({ name }) => name === choice.tab)?.name ?? tabs[0]?.name ?? "text"
  const setTab = (name: TabName) => changeView({ tab: name })
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(mail.subject || "Mail")
  useEffect(() => {
    // On a phone the list that had the focus is gone.
    const list_box = document.querySelector<HTMLElement>("[role=listbox]")
    if (!list_box?.checkVisibility()) heading.current?.focus()
  }, [])
  useAsked(asked, (action) => {
    const by = action === "next_tab" ? 1 : action === "previous_tab" ? -1 : 0
    const at = tabs.findIndex(({ name }) => name === tab) + by
    setTab(tabs[(at + tabs.length) % tabs.length]?.name ?? tab)
  })
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
        <MailActions {...{ mail, list, asked, onRemoved }} />
        {mail.parse_error && (
          <p class="problem">This mail could not be read whole: {mail.parse_error}</p>
        )}
      </header>
      <Tabs label="Views of the mail" tabs={tabs} chosen={tab} onChoose={setTab}>
        <Panel tab={tab} mail={mail} again={again} />
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
  if (tab === "attachments") return <AttachmentsView mail={mail} />
  return tab === "check" ? <CheckView mail={mail} /> : <TimelineView mail={mail} />
}
