import { and, asc, desc, gt } from "drizzle-orm"
import { log } from "../core/log"
import { isSettled } from "../store/columns"
import type { Reader, Store } from "../store/store"
import { bearersAmong, refusalOf } from "./inbox-bearers"
import { type ChangePage, frameOfWhole, InboxPages } from "./inbox-pages"
import { followInboxes, type InboxChange, type InboxTotals } from "./ledger"
import { inboxChanges } from "./tables"

/** Open sockets of one subscriber on this node. One more closes the oldest (4429). */
export const SOCKETS_PER_SUBSCRIBER = 10

const INBOXES = "belfry_inboxes"
const PACKET_MILLISECONDS = 20

/** Of 44 bytes each: Postgres carries less than 8,000 in one notification. */
const MOST_TOLD = 170
/** What is left out then is found by the poll. */
const MOST_PACKETS = 20

/** Changes of one look at the log. With more of them, every inbox that is followed here is read. */
const MOST_CHANGES = 5000

/** Subscribers that one look asks for. */
const MOST_LOOKED_AT = 1000

/** Behind every change. */
const NEWEST = Number.MAX_SAFE_INTEGER

export const RESYNC = JSON.stringify({ type: "resync" })

/** One socket that follows an inbox. */
export interface FollowingSocket {
  /** Of the page that opened it. */
  readonly origin: string | null
  /** Whether it was told of all that the inbox's sockets were told of. */
  readonly is_live: boolean
  inbox: FollowedInbox | undefined
  push(frames: string[]): void
  close(why: "too_many" | "unauthorized" | "forbidden" | "broken"): void
}

/** An inbox with open sockets on this node. */
export interface FollowedInbox {
  subscriber_id: string
  sockets: FollowingSocket[]
  /** The last change that its sockets were told of, and the totals behind it. */
  sent_seq: number
  counts: InboxTotals
  /** Whether it was read where the inbox is. */
  is_known: boolean
  /** While it is read what its sockets are told next. */
  reading: Promise<void> | undefined
  /** Something changed that the next reading brings. */
  is_behind: boolean
}

/**
 * Tells the changes of inboxes to their open sockets on this node, each once, in the order of their numbers, without a
 * gap and after its commit. A change that follows the last one is told at once. Otherwise the log is read: after
 * changes of other nodes, after changes without their message, and where commits came in another order.
 */
export class InboxHub {
  readonly pages: InboxPages
  readonly #store: Store
  readonly #followed = new Map<string, FollowedInbox>()
  readonly #outbox = new Map<string, number>()
  #sending: Timer | undefined
  /** Behind it the log was not looked at yet. */
  #position: Promise<number> | undefined
  #turn: IterableIterator<string> | undefined

  constructor(store: Store) {
    this.#store = store
    this.pages = new InboxPages(store.read)
  }

  start(): () => void {
    if (!this.#store.isAlone) void this.#store.listen(INBOXES, (payload) => this.#hear(payload))
    const leave = followInboxes(this.#store.read, (changes) => this.#follow(changes))
    return () => {
      leave()
      clearTimeout(this.#sending)
    }
  }

  /** Adds a socket, which is told nothing before it is live. Resolves when it is known where the inbox is. */
  async join(socket: FollowingSocket, subscriber_id: string): Promise<FollowedInbox> {
    const inbox = this.#followed.get(subscriber_id) ?? this.#open(subscriber_id)
    socket.inbox = inbox
    inbox.sockets.push(socket)
    if (inbox.sockets.length > SOCKETS_PER_SUBSCRIBER) inbox.sockets[0]?.close("too_many")
    if (!inbox.is_known) await inbox.reading
    return inbox
  }

  leave(socket: FollowingSocket): void {
    const { inbox } = socket
    if (!inbox) return
    inbox.sockets = inbox.sockets.filter((one) => one !== socket)
    if (inbox.sockets.length === 0) this.#followed.delete(inbox.subscriber_id)
  }

  #open(subscriber_id: string): FollowedInbox {
    const inbox: FollowedInbox = {
      ...{ subscriber_id, sockets: [], sent_seq: 0, counts: { unread: 0, unseen: 0, total: 0 } },
      ...{ is_known: false, reading: undefined, is_behind: false },
    }
    this.#followed.set(subscriber_id, inbox)
    inbox.reading = this.#load(inbox)
    return inbox
  }

  async #load(inbox: FollowedInbox) {
    const { subscriber_id } = inbox
    // Before the inbox is read: what comes later is found in the log.
    if (!this.#store.isAlone) await this.#looked()
    const { last_seq, counts } = await this.pages.behind({ subscriber_id, after: NEWEST })
    Object.assign(inbox, { sent_seq: last_seq, counts, is_known: true, reading: undefined })
    if (inbox.is_behind) void this.catchUp(inbox)
  }

  #follow(changes: readonly InboxChange[]) {
    for (const change of changes) {
      if (!this.#store.isAlone) this.#carry(change)
      const inbox = this.#followed.get(change.subscriber_id)
      if (inbox) this.#tell(inbox, change)
    }
  }

  #tell(inbox: FollowedInbox, change: InboxChange) {
    const { seq, kind, counts } = change
    if (inbox.reading) return void this.catchUp(inbox)
    if (seq <= inbox.sent_seq && kind !== "counts") return
    const text = seq === inbox.sent_seq + 1 ? frameOfWhole(change) : undefined
    if (text === undefined) return void this.catchUp(inbox)
    inbox.sent_seq = seq
    inbox.counts = counts
    say(inbox, [text, countsFrame(counts)])
  }

  /** Resolves when the sockets of the inbox were told of all that is on disk now. */
  catchUp(inbox: FollowedInbox): Promise<void> {
    inbox.is_behind = true
    inbox.reading ??= this.#readAll(inbox)
    return inbox.reading
  }

  /** While it reads, more may come: then it reads again. */
  async #readAll(inbox: FollowedInbox): Promise<void> {
    const { subscriber_id } = inbox
    try {
      while (inbox.is_behind && inbox.sockets.length > 0) {
        inbox.is_behind = false
        const page = await this.pages.behind({ subscriber_id, after: inbox.sent_seq })
        this.#sayPage(inbox, page)
      }
    } catch (error) {
      log.error("the changes of an inbox could not be read", { error })
      for (const socket of inbox.sockets) socket.close("broken") // it comes back, and asks for them
    } finally {
      inbox.reading = undefined
    }
  }

  #sayPage(inbox: FollowedInbox, page: ChangePage) {
    const { last_seq, counts } = page
    const texts = textsBehind(page, inbox.sent_seq)
    inbox.sent_seq = texts ? inbox.sent_seq + texts.length : last_seq
    const told = texts ?? [RESYNC]
    if (inbox.sent_seq < last_seq) inbox.is_behind = true
    else if (told.length > 0 || !isSame(counts, inbox.counts)) {
      told.push(countsFrame(counts))
      inbox.counts = counts
    }
    if (told.length > 0) say(inbox, told)
  }

  /** For the other nodes: many changes share a notification, because each costs the whole database a lock. */
  #carry({ subscriber_id, seq, kind }: InboxChange) {
    // Totals that change afterwards have no number of their own, so they are read wherever they are shown.
    this.#outbox.set(subscriber_id, kind === "counts" ? Number.POSITIVE_INFINITY : seq)
    this.#sending ??= setTimeout(() => void this.#sendAll(), PACKET_MILLISECONDS)
  }

  async #sendAll() {
    const told = [...this.#outbox].slice(0, MOST_PACKETS * MOST_TOLD)
    this.#outbox.clear()
    for (let at = 0; at < told.length; at += MOST_TOLD) {
      const some = told.slice(at, at + MOST_TOLD)
      await this.#store.notify(INBOXES, some.map(([id, seq]) => `${id}:${seq}`).join(","))
    }
    this.#sending = undefined
    if (this.#outbox.size > 0)
      this.#sending = setTimeout(() => void this.#sendAll(), PACKET_MILLISECONDS)
  }

  #hear(payload: string) {
    for (const told of payload.split(",")) {
      const [id = "", seq] = told.split(":")
      this.#catchUpTo(id, Number(seq))
    }
  }

  #catchUpTo(subscriber_id: string, seq: number) {
    const inbox = this.#followed.get(subscriber_id)
    if (inbox && (inbox.reading || seq > inbox.sent_seq)) void this.catchUp(inbox)
  }

  /** Looks in the log for changes of other nodes of which no notification came: once for all sockets of this node. */
  async poll(): Promise<void> {
    if (this.#followed.size === 0) this.#position = undefined
    if (this.#position === undefined) return
    const db = this.#store.read
    const behind = await this.#looked()
    const { subscriber_id, seq, position } = inboxChanges
    const rows = await db
      .select({ subscriber_id, seq, position })
      .from(inboxChanges)
      .where(and(gt(position, behind), isSettled(db, position)))
      .orderBy(asc(position))
      .limit(MOST_CHANGES)
    const is_all = rows.length < MOST_CHANGES
    this.#position = is_all ? Promise.resolve(rows.at(-1)?.position ?? behind) : lastSettled(db)
    await this.#looked()
    if (is_all) for (const row of rows) this.#catchUpTo(row.subscriber_id, row.seq)
    else for (const inbox of this.#followed.values()) void this.catchUp(inbox)
  }

  async #looked(): Promise<number> {
    try {
      this.#position ??= lastSettled(this.#store.read)
      return await this.#position
    } catch (error) {
      this.#position = undefined
      throw error
    }
  }

  /**
   * Closes the sockets of those that may not have one any more, and tells totals that changed without a number and a
   * notification. Each look asks for some of them, in turn.
   */
  async look(): Promise<void> {
    const ids = this.#nextOf(MOST_LOOKED_AT)
    if (ids.length === 0) return
    const bearers = await bearersAmong(this.#store.read, ids)
    for (const id of ids) {
      const inbox = this.#followed.get(id)
      if (!inbox) continue
      const bearer = bearers.get(id)
      for (const socket of inbox.sockets) {
        const refusal = refusalOf(bearer, socket.origin)
        if (refusal) socket.close(refusal)
      }
      if (bearer?.counts && !isSame(bearer.counts, inbox.counts)) void this.catchUp(inbox)
    }
  }

  #nextOf(most: number): string[] {
    const ids: string[] = []
    this.#turn ??= this.#followed.keys()
    while (ids.length < most) {
      const next = this.#turn.next()
      if (!next.done) ids.push(next.value)
      else {
        this.#turn = undefined
        break
      }
    }
    return ids
  }
}

/** The next ones without a gap; undefined where the log does not go back so far. */
export function textsBehind(
  { changes, last_seq }: ChangePage,
  after: number,
): string[] | undefined {
  const is_gap = changes.some(({ seq }, at) => seq !== after + 1 + at)
  if (is_gap || (changes.length === 0 && last_seq > after)) return undefined
  return changes.map(({ text }) => text)
}

function say({ sockets }: FollowedInbox, texts: string[]) {
  for (const socket of sockets) if (socket.is_live) socket.push(texts)
}

export const countsFrame = (counts: InboxTotals): string =>
  JSON.stringify({ type: "counts", ...counts })

const isSame = (one: InboxTotals, other: InboxTotals) =>
  one.unread === other.unread && one.unseen === other.unseen && one.total === other.total

/** The end of what may be read of the log by now. */
async function lastSettled(db: Reader): Promise<number> {
  const { position } = inboxChanges
  const rows = db.select({ position }).from(inboxChanges).where(isSettled(db, position))
  const [last] = await rows.orderBy(desc(position)).limit(1)
  return last?.position ?? 0
}
