import { fail } from "../core/errors"
import { newId } from "../core/ids"
import type { Caller } from "../identity/caller"
import { findAudience, subscribersOf } from "../messages/send-fields"
import type { Reader } from "../store/store"
import { findExternal, type SubscriberRow } from "../subscribers/find-subscriber"
import type { TemplateRendering } from "../templates/rendering"
import type { UsableTemplate } from "../templates/usable-template"
import type { SendNote } from "./inbox-input"
import { renderNotes } from "./render-note"
import type { InboxContent } from "./tables"

export interface InboxRules {
  read: Reader
  templates: TemplateRendering
}

/** What one recipient is told. */
interface PreparedNote {
  subscriber: SubscriberRow
  content: InboxContent
  /** The id under which its content is stored once for several. */
  shared_id: string | null
}

interface PreparedSend {
  notes: PreparedNote[]
  used?: UsableTemplate["template"]
}

/** Everything that may be refused or must wait before the transaction: recipients, category and texts. */
export async function prepare(
  send: SendNote,
  caller: Caller,
  { read, templates }: InboxRules,
): Promise<PreparedSend> {
  const { project_id } = caller
  const recipients = await recipientsOf(read, project_id, send.to)
  await findAudience(read, project_id, { category: send.category })
  const { texts, used } = await renderNotes(templates, caller, send, recipients)
  const notes = recipients.flatMap((subscriber, at): PreparedNote[] => {
    const said = texts[at]
    return said ? [{ subscriber, content: { ...said, ...send.others }, shared_id: null }] : []
  })
  return { notes: withShared(notes), ...(used && { used }) }
}

/** Each once. Throws 404 `subscriber_not_found` with the names that nobody has. */
async function recipientsOf(
  db: Reader,
  project_id: string,
  to: SendNote["to"],
): Promise<SubscriberRow[]> {
  if ("external_id" in to) return [await findExternal(db, project_id, to.external_id)]
  const asked = to.names.map((subscriber_id) => ({ subscriber_id }))
  const known = (await subscribersOf(db, project_id, asked)) ?? new Map<string, SubscriberRow>()
  const missing = to.names.filter((name) => !known.has(name))
  if (missing.length > 0) {
    const names = missing.slice(0, MOST_NAMED).join(", ")
    const more = missing.length > MOST_NAMED ? ` and ${missing.length - MOST_NAMED} more` : ""
    fail("subscriber_not_found", `The project has no subscriber ${names}${more}.`, { missing })
  }
  return [...new Map([...known.values()].map((row) => [row.id, row])).values()]
}

const MOST_NAMED = 10

/** What several recipients are told in the same words is stored once. */
function withShared(notes: PreparedNote[]): PreparedNote[] {
  const shared_ids = new Map<string, string>()
  for (const [said, same] of Map.groupBy(notes, saidBy))
    if (same.length > 1) shared_ids.set(said, newId())
  return notes.map((note) => ({ ...note, shared_id: shared_ids.get(saidBy(note)) ?? null }))
}

/** The texts alone: everything else is the same for all. */
const saidBy = ({ content: { title, body, action_url, action_label } }: PreparedNote): string =>
  JSON.stringify([title, body, action_url, action_label])
