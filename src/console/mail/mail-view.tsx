import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { copyText } from "../browser"
import { useLoaded, useMedia, useTitle } from "../hooks"
import { Button, Menu } from "../parts/button"
import { Empty, Trouble, Waiting } from "../parts/notice"
import { notify } from "../parts/toast"
import { messageOf, RequestError } from "../requests"
import { call } from "../transport"
import { addressesOf, namedAddress, recipientsOf, timeText } from "./describe"
import { type OpenMail, withoutText } from "./mail-commands"
import { CommandsDialog, DeleteDialog, ReleaseDialog, ResendDialog } from "./mail-dialogs"
import { listBox, type MailList, openMail, useMailboxKeys } from "./mail-list"
import { downloadMail, MailTabs } from "./mail-tabs"

interface MailViewProps {
  mail_id: string
  list: MailList
}

/** One mail with all that is known of it. Opening it marks it as read. */
export function MailView({ mail_id, list }: MailViewProps) {
  const load = useCallback(async () => {
    const { data } = await call("GET /v1/mailbox/{mail_id}", { params: { mail_id } })
    return withoutText(data)
  }, [mail_id])
  const { value: mail, error, again } = useLoaded(load)
  const is_unread = mail?.read === false
  useEffect(() => {
    // A key that only reads may not; the mail shows all the same.
    if (is_unread) markRead(mail_id, true, list).catch(() => undefined)
  }, [is_unread, mail_id, list])
  if (error instanceof RequestError && error.status === 404) return <Gone />
  if (error !== undefined)
    return (
      <div class="opened">
        <Trouble error={error} onRetry={again} />
      </div>
    )
  return mail ? <Opened mail={mail} again={again} list={list} /> : <Waiting />
}

async function markRead(mail_id: string, read: boolean, list: MailList) {
  await call("PATCH /v1/mailbox/{mail_id}", { params: { mail_id }, body: { read } })
  list.change(mail_id, { read })
}

const toList = () => openMail(undefined)

const Gone = () => (
  <Empty title="This mail does not exist any more">
    <p>It was deleted, or it belongs to another project.</p>
    <button type="button" class="button" onClick={toList}>
      Back to the list
    </button>
  </Empty>
)

interface OpenedProps {
  mail: OpenMail
  again: () => Promise<void>
  list: MailList
}

function Opened({ mail, again, list }: OpenedProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useTitle(mail.subject || "Mail")
  useEffect(() => {
    // On a phone the list that had the focus is gone.
    if (!listBox()?.checkVisibility()) heading.current?.focus()
  }, [])
  return (
    <article class="opened">
      <header>
        <div class="title">
          <button type="button" class="icon back" aria-label="Back to the list" onClick={toList}>
            <span aria-hidden="true">←</span>
          </button>
          <h2 ref={heading} tabIndex={-1} dir="auto" title={mail.subject}>
            {beginOf(mail.subject) || "(no subject)"}
          </h2>
          <span class="steps-through">
            <Button label="Previous mail" onClick={list.keys.previous}>
              ↑
            </Button>
            <Button label="Next mail" onClick={list.keys.next}>
              ↓
            </Button>
          </span>
        </div>
        <Envelope mail={mail} />
        <MailActions mail={mail} list={list} />
        {mail.parse_error && (
          <p class="problem">This mail could not be read whole: {mail.parse_error}</p>
        )}
      </header>
      <MailTabs mail={mail} again={again} />
    </article>
  )
}

/** The whole of a longer subject stands among the headers, so that the mail below is seen. */
const MOST_OF_SUBJECT = 100

const beginOf = (subject: string): string =>
  subject.length > MOST_OF_SUBJECT
    ? `${subject.slice(0, MOST_OF_SUBJECT).toWellFormed()}…`
    : subject

const Envelope = ({ mail: { from, to, headers, created_at } }: { mail: OpenMail }) => (
  <dl class="facts">
    <dt>From</dt>
    <dd>
      <bdi>{namedAddress(from, headers.from)}</bdi>{" "}
      <time class="soft" dateTime={created_at}>
        {timeText(created_at)}
      </time>
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
  </dl>
)

/** So many addresses stand in a row. Of more, all but the first one are folded, so that the mail below is seen. */
const MOST_SHOWN = 3
const FIRST_SHOWN = 1

function AddressList({ addresses }: { addresses: string[] }) {
  const shown = addresses.length > MOST_SHOWN ? FIRST_SHOWN : MOST_SHOWN
  const folded = addresses.slice(shown)
  return (
    <>
      {inOneLine(addresses.slice(0, shown))}
      {folded.length > 0 && (
        <details>
          <summary>and {folded.length} more</summary>
          {inOneLine(folded)}
        </details>
      )}
    </>
  )
}

/** A name from right to left turns neither the comma nor the next address around. */
const inOneLine = (addresses: string[]) =>
  addresses.map((address, at) => (
    <span key={at}>
      {at > 0 && ", "}
      <bdi>{address}</bdi>
    </span>
  ))

const DIALOGS = {
  commands: CommandsDialog,
  release: ReleaseDialog,
  resend: ResendDialog,
  delete: DeleteDialog,
}

/** What can be done with the mail. What changes something asks first, and says how a terminal does it. */
function MailActions({ mail, list }: Omit<OpenedProps, "again">) {
  const { id, email_id, release_refusal } = mail
  const [dialog, setDialog] = useState<keyof typeof DIALOGS>()
  const is_narrow = useMedia("(max-width: 40rem)")
  const ask = (name: keyof typeof DIALOGS) => () => setDialog(name)
  const run = {
    ...(email_id !== null && { resend: ask("resend") }),
    delete: ask("delete"),
    unread: () => markRead(id, false, list).then(() => notify(unreadText(id)), failed),
    copy: () => copyId(id),
  }
  useMailboxKeys(run)
  const rare = (
    <>
      {run.resend && <Button onClick={run.resend}>Resend</Button>}
      <Button onClick={() => downloadMail(id).catch(failed)}>Download .eml</Button>
      <Button onClick={run.unread}>Mark unread</Button>
      <Button onClick={ask("commands")}>Commands</Button>
    </>
  )
  const OpenDialog = dialog && DIALOGS[dialog]
  return (
    <>
      <div class="buttons">
        <Button look={release_refusal === null ? "go" : "plain"} onClick={ask("release")}>
          Release
        </Button>
        {is_narrow ? <Menu text="More">{rare}</Menu> : rare}
        <Button look="danger" onClick={run.delete}>
          Delete
        </Button>
      </div>
      {OpenDialog && (
        <OpenDialog
          mail={mail}
          onClose={() => setDialog(undefined)}
          onDone={dialog === "delete" ? () => list.remove(id) : list.refresh}
        />
      )}
    </>
  )
}

const failed = (error: unknown) => notify(messageOf(error), "bad")

const unreadText = (id: string) => `the mail is unread again (belfry mailbox read ${id} --unread)`

async function copyId(id: string) {
  if (await copyText(id)) notify(`the id ${id} is copied`)
  else notify(`the browser does not copy here; the id is ${id}`, "bad")
}
