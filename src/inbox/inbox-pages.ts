import { and, eq, gt, lte, or } from "drizzle-orm"
import { idList, isAmong } from "../store/columns"
import { prepared } from "../store/statements"
import type { Reader } from "../store/store"
import { countsOf, findInboxes, type InboxChange, type InboxTotals } from "./ledger"
import { type OwnMessage, ownMessage, ownMessages } from "./records"
import { type InboxEntry, inboxChanges, inboxEntries } from "./tables"

/** Changes of one inbox that are read at once, and of all that are read together: each comes with its message. */
const AT_ONCE = 100
const MOST_TOGETHER = 500

/** Inboxes whose changes are read together. */
const MOST_PLACES = 50

/** Where a reader of an inbox is: behind the change of this number. */
export interface InboxPlace {
  subscriber_id: string
  after: number
}

/** A change as its sockets get it. */
interface ToldChange {
  seq: number
  text: string
}

/** What comes next in an inbox. */
export interface ChangePage {
  /** The totals were these when the last change was this one. There may be more of them than this page has. */
  last_seq: number
  counts: InboxTotals
  changes: ToldChange[]
}

interface WaitingPlace {
  place: InboxPlace
  resolve: (page: ChangePage) => void
  reject: (error: unknown) => void
}

/**
 * Reads what follows in inboxes, for many at once, and one group after the other: so that a thousand sockets that come
 * back together neither ask a thousand times nor fill the memory.
 */
export class InboxPages {
  readonly #db: Reader
  #waiting: WaitingPlace[] = []
  #is_reading = false

  constructor(db: Reader) {
    this.#db = db
  }

  behind(place: InboxPlace): Promise<ChangePage> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ place, resolve, reject })
      if (this.#is_reading) return
      this.#is_reading = true
      setImmediate(() => void this.#readAll()) // what is asked in the same turn comes along
    })
  }

  async #readAll() {
    while (this.#waiting.length > 0) {
      const some = this.#waiting.splice(0, MOST_PLACES)
      try {
        const places = some.map(({ place }) => place)
        const pages = await read(this.#db, places)
        for (const [at, { resolve }] of some.entries()) resolve(pages[at] as ChangePage)
      } catch (error) {
        for (const { reject } of some) reject(error)
      }
    }
    this.#is_reading = false
  }
}

async function read(db: Reader, places: InboxPlace[]): Promise<ChangePage[]> {
  const ids = places.map(({ subscriber_id }) => subscriber_id)
  const rows = new Map((await findInboxes(db, { ids })).map((row) => [row.id, row]))
  const at_once = Math.min(AT_ONCE, Math.ceil(MOST_TOGETHER / places.length))
  // The totals first: each change that they contain is in the log, then.
  const ranges = places.flatMap(({ subscriber_id, after }) => {
    const { last_seq = 0 } = rows.get(subscriber_id) ?? {}
    return after < last_seq
      ? [rangeOf(subscriber_id, after, Math.min(last_seq, after + at_once))]
      : []
  })
  const changes = ranges.length > 0 ? await findChanges(db, ranges) : []
  const messages = await messagesOf(db, changes)
  const changesOf = Map.groupBy(changes, ({ subscriber_id }) => subscriber_id)
  return places.map(({ subscriber_id, after }) => {
    const row = rows.get(subscriber_id)
    const own = changesOf.get(subscriber_id) ?? []
    return {
      last_seq: row?.last_seq ?? 0,
      counts: row ? countsOf(row) : { unread: 0, unseen: 0, total: 0 },
      changes: own
        .filter(({ seq }) => seq > after && seq <= after + at_once) // another place may be in the same inbox
        .map((one) => ({ seq: one.seq, text: frameOf(one, messages.get(one.entry_id ?? "")) })),
    }
  })
}

const rangeOf = (subscriber_id: string, after: number, last: number) =>
  and(
    eq(inboxChanges.subscriber_id, subscriber_id),
    gt(inboxChanges.seq, after),
    lte(inboxChanges.seq, last),
  )

/** Sorted here: a database that sorts might walk the whole log for it. */
async function findChanges(db: Reader, ranges: ReturnType<typeof rangeOf>[]) {
  const { subscriber_id, seq, kind, entry_id, scope } = inboxChanges
  const rows = db.select({ subscriber_id, seq, kind, entry_id, scope }).from(inboxChanges)
  return (await rows.where(or(...ranges))).sort((a, b) => a.seq - b.seq)
}

/** The messages that changed, as they are now, by their ids. */
async function messagesOf(db: Reader, changes: { entry_id: string | null }[]) {
  const ids = [...new Set(changes.flatMap(({ entry_id }) => entry_id ?? []))]
  const entries: InboxEntry[] = ids.length > 0 ? await findEntries(db, { ids }) : []
  return new Map((await ownMessages(db, entries)).map((one) => [one.id, one]))
}

/** The frame of a change that came with all that it says; undefined where something has to be read. */
export function frameOfWhole(change: InboxChange): string | undefined {
  const { kind, created } = change
  if (created) return frameOf(change, ownMessage(created.entry, created))
  return kind === "updated" || kind === "counts" ? undefined : frameOf(change)
}

type LoggedChange = Pick<InboxChange, "subscriber_id" | "seq" | "kind" | "entry_id" | "scope">

/** A message that is gone by now, or in another inbox, is told as one that was deleted. */
function frameOf(
  { subscriber_id, seq, kind, entry_id, scope }: LoggedChange,
  message?: OwnMessage,
): string {
  if (entry_id === null)
    return JSON.stringify({ type: `messages.${kind}`, upto_seq: seq, ...scope })
  if (kind === "deleted" || message?.subscriber_id !== subscriber_id)
    return JSON.stringify({ type: "message.deleted", seq, id: entry_id })
  return JSON.stringify({ type: `message.${kind}`, seq, message })
}

const findEntries = prepared({ ids: idList }, (db: Reader, slot) =>
  db
    .select()
    .from(inboxEntries)
    .where(isAmong(db, inboxEntries.id, slot.ids)),
)
