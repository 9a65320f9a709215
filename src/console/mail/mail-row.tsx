import { agoText, sizeText, timeText } from "./describe"
import type { MailSummary } from "./mail-records"

interface MailRowProps {
  mail: MailSummary | undefined
  now_ms: number
}

/** Two lines: the recipient and the time, the subject and the sender. */
export function MailRow({ mail, now_ms }: MailRowProps) {
  if (!mail) return <div class="mail-row loading">…</div>
  const { to, from, subject, created_at, read, attachments, size } = mail
  return (
    <div class={read ? "mail-row" : "mail-row unread"}>
      <span class="to">
        {!read && <span class="unseen">Unread. </span>}
        <bdi>{to}</bdi>
      </span>
      <time dateTime={created_at} title={timeText(created_at)}>
        {agoText(created_at, now_ms)}
      </time>
      {/* In its own direction, so that a narrow column cuts the end and not the beginning: of `bdi` no direction is
      taken. */}
      <span class="subject" dir="auto">
        <span class="words">{subject || "(no subject)"}</span>
        <span class="soft">
          {" "}
          · <bdi>{from}</bdi>
        </span>
      </span>
      <span class="soft size">
        {attachments ? `${attachments} ${attachments === 1 ? "file" : "files"} · ` : ""}
        {sizeText(size)}
      </span>
    </div>
  )
}
