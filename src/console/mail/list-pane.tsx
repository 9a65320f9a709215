import { Button } from "../parts/button"
import { Check, Field } from "../parts/field"
import { Badge, Empty, type Tone, Trouble, Waiting } from "../parts/notice"
import { VirtualList } from "../parts/virtual-list"
import { agoText, counted, sizeText, timeText } from "./describe"
import { unheeded } from "./mail-filter"
import type { FilterState, MailList, MailSummary } from "./mail-list"

export type MailboxDialog = "compose" | "chaos" | "clear" | "keys"

interface ListPaneProps {
  list: MailList
  filter: FilterState
  onDialog: (dialog: MailboxDialog) => void
  is_chaotic: boolean
}

const ROW_PIXELS = 60

/** The list of the mails with its search above and what is for all of them below. */
export function ListPane({ list, filter, onDialog, is_chaotic }: ListPaneProps) {
  const [word] = unheeded(filter.line)
  return (
    <section class="pane list" aria-label="Mails">
      <div class="tools">
        <Field
          label="Search"
          is_label_hidden
          type="search"
          value={filter.line}
          onInput={filter.setLine}
          placeholder="Search, or to:ann@x.test since:2h"
          // One word at a time, since the server looks for one part of all texts.
          hint={word && `${word} needs a whole address beside other words.`}
        />
        <div class="buttons">
          <Check label="Unread" checked={filter.is_unread} onChange={filter.setUnread} />
          <LiveBadge list={list} />
          <Button look="go" onClick={() => onDialog("compose")}>
            Write
          </Button>
        </div>
      </div>
      <Trouble error={list.error} onRetry={list.refresh} />
      <Rows list={list} is_filtered={filter.is_set} onWrite={() => onDialog("compose")} />
      <footer class="tools bottom">
        <span class="soft">{countText(list)}</span>
        <span class="buttons">
          <Button look="quiet" onClick={() => onDialog("chaos")}>
            Chaos {is_chaotic && <Badge tone="warn">on</Badge>}
          </Button>
          <Button look="quiet" onClick={() => onDialog("keys")}>
            Keys
          </Button>
          <Button look="quiet" disabled={list.pages.total === 0} onClick={() => onDialog("clear")}>
            Delete all
          </Button>
        </span>
      </footer>
    </section>
  )
}

interface RowsProps {
  list: MailList
  is_filtered: boolean
  onWrite: () => void
}

function Rows({ list, is_filtered, onWrite }: RowsProps) {
  const { pages, is_loaded, now_ms } = list
  if (!is_loaded) return list.error === undefined ? <Waiting /> : null
  if (pages.count === 0 && is_filtered) return <Empty title="No mail fits the search" />
  if (pages.count === 0)
    return (
      <Empty title="The mailbox is empty">
        <p>Mail that your program sends to this server appears here.</p>
        <div class="buttons">
          <Button look="go" onClick={onWrite}>
            Write a first mail
          </Button>
        </div>
      </Empty>
    )
  return (
    <VirtualList
      label="Mails"
      count={pages.count}
      row_height={ROW_PIXELS}
      position={list.position}
      added={list.added}
      onView={list.load}
      onChoose={list.open}
      idOfRow={(at) => `mail-${pages.at(at)?.id ?? at}`}
      renderRow={(at) => <MailRow mail={pages.at(at)} now_ms={now_ms} />}
    />
  )
}

function MailRow({ mail, now_ms }: { mail: MailSummary | undefined; now_ms: number }) {
  if (!mail) return <div class="mail-row loading">…</div>
  const { to, from, subject, status, created_at, read, attachments, size } = mail
  return (
    <div class={read ? "mail-row" : "mail-row unread"}>
      <div class="line">
        <span class="to">
          {!read && <span class="unseen">Unread. </span>}
          <bdi>{to}</bdi>
        </span>
        {status && <Badge tone={TONES[status] ?? "plain"}>{status}</Badge>}
        <time dateTime={created_at} title={timeText(created_at)}>
          {agoText(created_at, now_ms)}
        </time>
      </div>
      {/* Each in its own direction and cut by itself: of a text from right to left a narrow column cuts the left end. */}
      <div class="line">
        <span class="subject" dir="auto">
          {subject || "(no subject)"}
        </span>
        <span class="soft from" dir="auto">
          {from}
        </span>
        <span class="soft size">
          {attachments ? `${counted(attachments, "file")} · ` : ""}
          {sizeText(size)}
        </span>
      </div>
    </div>
  )
}

/** Of what became of the mail; all other words are plain. */
const TONES: Partial<Record<NonNullable<MailSummary["status"]>, Tone>> = {
  bounced: "bad",
  failed: "bad",
  complained: "warn",
}

const LIVE = {
  live: <Badge tone="good">Live</Badge>,
  lost: <Badge tone="warn">Polling</Badge>,
  paused: <Badge>Paused</Badge>,
}

function LiveBadge({ list: { state, keys } }: { list: MailList }) {
  const is_paused = state === "paused"
  return (
    <Button
      look="quiet"
      pressed={is_paused}
      title="Space pauses the list, or continues it"
      onClick={keys.pause}
    >
      {LIVE[state]}
      <span class="unseen">{is_paused ? "Continue the list" : "Pause the list"}</span>
    </Button>
  )
}

function countText({ pages, is_loaded }: MailList): string {
  if (!is_loaded) return ""
  const { total, count } = pages
  if (total > count) return `Newest ${count.toLocaleString()} of ${total.toLocaleString()} mails`
  return counted(total, "mail")
}
