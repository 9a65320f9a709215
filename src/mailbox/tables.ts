import { sql } from "drizzle-orm"
import { STORED } from "../plans/stored-bytes"
import { bytes, id, index, int, json, primaryKey, ref, table, text, time } from "../store/columns"
import { life } from "../store/life"

/** Mail that the embedded server took: the bytes as they came, and what lists need of them. */
export const mailboxMails = table(
  "mailbox_mails",
  {
    id: id(),
    project_id: ref().notNull(),
    account_id: ref().notNull(),
    /** The message it came from; null for mail that we did not send. */
    email_id: ref(),
    mail_from: text().notNull(),
    recipients: json<string[]>().notNull(),
    to_address: text().notNull(),
    from_address: text().notNull(),
    subject: text().notNull(),
    /** As it is searched: SQLite lower-cases ASCII only. */
    subject_key: text().notNull(),
    raw: bytes().notNull(),
    size: int().notNull(),
    created_at: time().notNull(),
    /** When it was marked as read; null while nobody read it. */
    read_at: time(),
    /** The number of its files; null where nobody counted them. */
    attachments: int(),
    /** Subject, sender and recipient in one, at most 2,000 bytes, since an index holds it. Null: mail of an earlier version. */
    search_key: text(),
  },
  (mail) => [
    index("mailbox_mails_by_project").on(mail.project_id, mail.id),
    index("mailbox_mails_searched").on(mail.project_id, mail.id, mail.search_key),
    index("mailbox_mails_unread").on(mail.project_id, mail.id).where(sql`read_at IS NULL`),
  ],
)
life(mailboxMails, {
  owner: "project",
  ends: "bodies_days",
  sealed: {
    raw: {
      what: "mail of the instance itself in the mailbox",
      remedy: "nothing; ask for the mail again",
    },
  },
  counts: { name: "mailbox_mails", bytes: { name: STORED.mailbox, of: sql`${mailboxMails.size}` } },
})

/** One row a recipient, because `?to=` must find a copy too and JSON is never searched. */
export const mailboxRecipients = table(
  "mailbox_recipients",
  {
    mail_id: ref()
      .notNull()
      .references(() => mailboxMails.id, { onDelete: "cascade" }),
    project_id: ref().notNull(),
    /** In comparable form; of a text also the number. */
    address: text().notNull(),
  },
  (recipient) => [
    primaryKey({ columns: [recipient.mail_id, recipient.address] }),
    index("mailbox_recipients_by_address").on(
      recipient.project_id,
      recipient.address,
      recipient.mail_id,
    ),
  ],
)
life(mailboxRecipients, {
  owner: "project",
  ends: "with row",
  names: { mail_id: "mailbox_mails" },
  personal: { found_by: { address: "address", phone: "address" } },
})
