import type { InboxCounts, InboxMark, InboxMessage, InboxView } from "./inbox-message"
import type { InboxPage } from "./inbox-requests"
import { now } from "./now"

/** What the server tells of the inbox itself, in the order of `seq`. */
export type ChangeFrame =
  | { type: "message.created" | "message.updated"; seq: number; message: InboxMessage }
  | { type: "message.deleted"; seq: number; id: string }
  | ({ type: "messages.read" | "messages.seen" | "messages.archived"; upto_seq: number } & Bulk)

/** Which messages a change of many is about. */
export interface Bulk {
  category?: string | null
  before?: string | null
  read_only?: boolean | null
}

export const seqOf = (frame: ChangeFrame): number =>
  "upto_seq" in frame ? frame.upto_seq : frame.seq

/** What a change makes of a message; undefined where it is gone. */
export type Change = (message: InboxMessage) => InboxMessage | undefined

/** A change that shows before the server has confirmed it. */
export interface PendingChange {
  change: Change
  isOf: (message: InboxMessage) => boolean
  /** What it makes of the counts, where it is about more messages than are loaded. */
  count?: (counts: InboxCounts) => InboxCounts
}

/**
 * The messages of a view and the counts, as the server has told them, and above them what the page has changed and the
 * server has not confirmed. What was not confirmed leaves no trace when it is taken back.
 */
export class InboxShelf {
  counts: InboxCounts = { unread: 0, unseen: 0, total: 0, by_category: {} }
  /** Where the next page begins; null where all is here. */
  cursor: string | null = null
  /** The message that was opened last. It stays among the unread ones, so that it can be read. */
  opened: string | undefined
  #view: InboxView = {}
  #told = new Map<string, InboxMessage>()
  /** The oldest of the pages that came: what is older belongs to a page that did not. */
  #oldest: InboxMessage | undefined
  readonly #pending = new Set<PendingChange>()
  /** Grows with each change of the counts by the server. */
  #counted = 0

  get size(): number {
    return this.#told.size
  }

  /** Shows a first page in place of everything. */
  replace(view: InboxView, page: InboxPage): void {
    this.#view = view
    this.opened = undefined
    this.#told.clear()
    this.#oldest = undefined
    this.append(page)
  }

  append({ messages, cursor }: InboxPage): void {
    this.cursor = cursor
    this.#oldest = messages.at(-1) ?? this.#oldest
    for (const message of messages) this.#put(message)
  }

  count(counts: Partial<InboxCounts>): void {
    this.#counted++
    this.counts = withoutNone({ ...this.counts, ...counts })
  }

  /** Counts an unread message by category, which no frame tells. */
  countUnread(message: InboxMessage | undefined, by: 1 | -1): void {
    const name = message?.category
    if (!name || weightOf(message).unread === 0) return
    const { by_category } = this.counts
    const changes = { by_category: { ...by_category, [name]: (by_category[name] ?? 0) + by } }
    this.counts = withoutNone({ ...this.counts, ...changes })
  }

  /** Applies a frame; a second time it changes nothing. False where messages are concerned that are not loaded. */
  apply(frame: ChangeFrame): boolean {
    const id = "message" in frame ? frame.message.id : "id" in frame ? frame.id : ""
    const is_known = this.#told.has(id)
    if ("message" in frame) this.#put(frame.message)
    else if ("id" in frame) this.#keep(id, undefined)
    else {
      const { upto_seq: seq } = frame
      const change = changeOf(frame.type.slice("messages.".length) as InboxMark)
      const isOf = isWithin(frame)
      this.#patch(
        (message) => ({ ...(change(message) as InboxMessage), seq }),
        (message) => message.seq < seq && isOf(message),
      )
    }
    return is_known
  }

  /** Shows a change at once. `keep` confirms it, and `drop` takes it back. */
  begin(pending: PendingChange): { keep(): void; drop(): void } {
    this.#pending.add(pending)
    const counted = this.#counted
    const seqs = new Map([...this.#told.values()].map(({ id, seq }) => [id, seq]))
    const drop = () => {
      this.#pending.delete(pending)
    }
    const keep = () => {
      const { by_category } = this.counts
      if (this.#counted === counted) this.counts = { ...this.#countsWith([pending]), by_category }
      // What the server has told since then is newer than this.
      this.#patch(pending.change, (one) => pending.isOf(one) && seqs.get(one.id) === one.seq)
      drop()
    }
    return { keep, drop }
  }

  find = (id: string): InboxMessage | undefined => this.#told.get(id)

  /** Newest first, with what is pending. */
  shown(): InboxMessage[] {
    const pending = [...this.#pending]
    const all = [...this.#told.values()].flatMap((message) => changed(message, pending) ?? [])
    return all.filter((message) => this.#belongs(message)).sort(byAge)
  }

  shownCounts = (): InboxCounts => this.#countsWith([...this.#pending])

  #countsWith(pending: PendingChange[]): InboxCounts {
    let counts = { ...this.counts, by_category: { ...this.counts.by_category } }
    const alone = pending.filter(({ count }) => !count)
    for (const message of this.#told.values()) {
      const [was, is] = [weightOf(message), weightOf(changed(message, alone))]
      const unread = is.unread - was.unread
      counts.unread += unread
      counts.unseen += is.unseen - was.unseen
      counts.total += is.total - was.total
      const name = message.category
      if (unread && name) counts.by_category[name] = (counts.by_category[name] ?? 0) + unread
    }
    for (const { count } of pending) if (count) counts = count(counts)
    return withoutNone(counts)
  }

  #patch(change: Change, isOf: (message: InboxMessage) => boolean): void {
    for (const message of [...this.#told.values()])
      if (isOf(message)) this.#keep(message.id, change(message))
  }

  #put(message: InboxMessage): void {
    const known = this.#told.get(message.id)
    if (known ? known.seq < message.seq : this.#isLoaded(message)) this.#keep(message.id, message)
  }

  #keep(id: string, message: InboxMessage | undefined): void {
    const known = this.#told.get(id)
    if (known) {
      this.countUnread(known, -1)
      this.countUnread(message, 1)
    }
    if (message && this.#belongs(message)) this.#told.set(id, message)
    else this.#told.delete(id)
  }

  #belongs = (message: InboxMessage) =>
    belongs(message, this.#view) ||
    (message.id === this.opened && belongs({ ...message, read_at: null }, this.#view))

  #isLoaded = (message: InboxMessage) =>
    this.cursor === null || !this.#oldest || byAge(message, this.#oldest) <= 0
}

const changed = (message: InboxMessage, pending: PendingChange[]) =>
  pending.reduce<InboxMessage | undefined>(
    (one, { change, isOf }) => (one && isOf(one) ? change(one) : one),
    message,
  )

/** As lists are sorted: newest first. Ids begin with their time. */
const byAge = (a: InboxMessage, b: InboxMessage): number => (a.id < b.id ? 1 : -1)

const isInSight = ({ archived_at, snoozed_until }: InboxMessage) => !archived_at && !snoozed_until

function belongs(message: InboxMessage, { filter, category, tag }: InboxView): boolean {
  if (category !== undefined && message.category !== category) return false
  if (tag !== undefined && !message.tags.includes(tag)) return false
  if (filter === "archived") return message.archived_at !== null
  if (filter === "snoozed") return message.snoozed_until !== null
  return isInSight(message) && (filter !== "unread" || !message.read_at)
}

function weightOf(message: InboxMessage | undefined) {
  if (!message || !isInSight(message)) return { unread: 0, unseen: 0, total: 0 }
  return { unread: message.read_at ? 0 : 1, unseen: message.seen_at ? 0 : 1, total: 1 }
}

/** Whether a change of many is about a message. */
export const isWithin =
  ({ category, before, read_only }: Bulk) =>
  (message: InboxMessage): boolean =>
    (!category || message.category === category) &&
    (!before || message.created_at < before) &&
    (!read_only || message.read_at !== null)

/** A category is named while it has something unread. */
function withoutNone(counts: InboxCounts): InboxCounts {
  const some = Object.entries(counts.by_category).filter(([, unread]) => unread > 0)
  return { ...counts, by_category: Object.fromEntries(some) }
}

/** What a mark of all messages, or of all of a category, makes of the counts. */
export function countsAfter(as: InboxMark, counts: InboxCounts, category?: string): InboxCounts {
  if (as === "seen") return { ...counts, unseen: 0 }
  if (category === undefined) return { ...counts, unread: 0, unseen: 0, by_category: {} }
  const unread = counts.unread - (counts.by_category[category] ?? 0)
  return { ...counts, unread, by_category: { ...counts.by_category, [category]: 0 } }
}

/** What a mark makes of a message. */
export function changeOf(as: InboxMark): Change {
  const at = new Date(now()).toISOString()
  const changes: Record<InboxMark, Change> = {
    read: (one) => ({ ...one, read_at: one.read_at ?? at, seen_at: one.seen_at ?? at }),
    unread: (one) => ({ ...one, read_at: null }),
    seen: (one) => ({ ...one, seen_at: one.seen_at ?? at }),
    archived: (one) => ({ ...one, archived_at: one.archived_at ?? at }),
    unarchived: (one) => ({ ...one, archived_at: null }),
  }
  return changes[as]
}
