import { InboxLine, type LineFrame } from "./inbox-line"
import type {
  InboxCounts,
  InboxMark,
  InboxMessage,
  InboxPreferences,
  InboxState,
  InboxView,
} from "./inbox-message"
import { type InboxProblem, InboxRequests, type TokenSource } from "./inbox-requests"
import {
  type ChangeFrame,
  changeOf,
  countsAfter,
  InboxShelf,
  isWithin,
  type PendingChange,
  seqOf,
} from "./inbox-shelf"
import { InboxTabs, type TabNote, tabsName } from "./inbox-tabs"
import { onPageChange } from "./page-words"

export interface InboxClientOptions {
  /** Where the server is; without it the origin of this script. */
  url?: string
  /** A function is asked again when the server wants a newer token. */
  token: TokenSource
}

const PAGE = 25
const LONGEST_PAGE = 100
const MOST_IDS = 500
const RECOUNT_MS = 2_000

/** The marks of all messages at once, by their requests. */
const OF_ALL: Partial<Record<InboxMark, string>> = {
  read: "/read-all",
  seen: "/seen-all",
  archived: "/archive-all",
}

/**
 * The inbox of one subscriber without a look: its connection, its messages and its counts. It dispatches `change`,
 * `message` and `action` with `{message}`, `opened` with `{message}` (cancelable), and `problem` with `{code, message}`.
 */
export class InboxClient extends EventTarget {
  readonly #url: string
  readonly #requests: InboxRequests
  readonly #shelf = new InboxShelf()
  readonly #early = new Set<ChangeFrame[]>()
  #state: InboxState = "idle"
  #view: InboxView = {}
  #shown: InboxMessage[] | undefined
  /** The newest change that is known to be applied with all before it; undefined where some may lack. */
  #seq: number | undefined
  #newest: string | undefined
  /** Of the loads; the newest one counts. */
  #turns = 0
  /** Another object for each start; undefined while nothing is followed. */
  #run: object | undefined
  #tabs: InboxTabs | undefined
  #line: InboxLine | undefined
  #forget: () => void = () => {}
  #counting: ReturnType<typeof setTimeout> | undefined

  constructor({ url = new URL(import.meta.url).origin, token }: InboxClientOptions) {
    super()
    this.#url = url
    this.#requests = new InboxRequests(url, token)
  }

  /** Of the view, newest first. */
  get messages(): readonly InboxMessage[] {
    this.#shown ??= this.#shelf.shown()
    return this.#shown
  }

  get counts(): InboxCounts {
    return this.#shelf.shownCounts()
  }

  get state(): InboxState {
    return this.#state
  }

  /** Whether `more` finds older messages of the view. */
  get hasMore(): boolean {
    return this.#shelf.cursor !== null
  }

  /** Loads the view and follows the inbox until `stop`. What fails is told by `problem` and `state`. */
  async start(): Promise<void> {
    if (this.#state !== "idle" && this.#state !== "ended") return
    this.#turn("connecting")
    const run = {}
    this.#run = run
    let name: string | undefined
    try {
      name = tabsName(this.#url, await this.#requests.token())
    } catch (error) {
      this.#report(error)
    }
    if (this.#run !== run) return
    this.#tabs = new InboxTabs(name, (note) => this.#hearTab(note))
    this.#forget = onPageChange(() => this.#look())
    await this.#load({ is_position: true }).catch((error) => this.#report(error))
    if (this.#run === run) this.#tabs.take(() => this.#lead())
  }

  stop(): void {
    this.#leave()
    this.#turn("idle")
  }

  /** Shows other messages, and loads their first page. */
  async show(view: InboxView): Promise<void> {
    this.#view = view
    await this.#load({ is_position: false })
  }

  /** Loads the next older page of the view. */
  async more(): Promise<void> {
    const { cursor } = this.#shelf
    if (cursor === null) return
    const turn = this.#turns
    await this.#during(this.#requests.page(this.#view, { limit: PAGE, cursor }), (page) => {
      if (turn === this.#turns) this.#shelf.append(page)
      return false
    })
  }

  /**
   * Marks one message, or with `*` all (of a category, where it is named). It shows at once, and is taken back where
   * the server refuses. The promise rejects then, as those of all other changes.
   */
  async mark(id: string, as: InboxMark, of: { category?: string } = {}): Promise<void> {
    const change = changeOf(as)
    const all = id === "*" ? OF_ALL[as] : undefined
    if (all) {
      const count = (counts: InboxCounts) => countsAfter(as, counts, of.category)
      const pending = { change, isOf: isWithin(of), ...(as !== "archived" && { count }) }
      const body = { ...of, ...(as === "archived" && { read_only: false }) }
      await this.#attempt(pending, () => this.#requests.ask("POST", all, body))
      return
    }
    const loaded = this.messages.map((message) => message.id)
    const ids = id === "*" ? loaded.slice(0, MOST_IDS) : [id]
    const pending = { change, isOf: (message: InboxMessage) => ids.includes(message.id) }
    await this.#attempt(pending, () => this.#requests.ask("POST", "/mark", { ids, as }))
  }

  /** Hides a message until a time (ISO 8601); null shows it again. */
  async snooze(id: string, until: string | null): Promise<void> {
    const body = { snoozed_until: until }
    const pending = one(id, (message) => ({ ...message, ...body }))
    await this.#attempt(pending, () => this.#requests.ask("PATCH", `/${id}`, body))
  }

  async remove(id: string): Promise<void> {
    const pending = one(id, () => undefined)
    await this.#attempt(pending, () => this.#requests.ask("DELETE", `/${id}`))
  }

  /** Reads a message and dispatches `opened`. False where a listener prevented that its `action_url` opens. */
  open(id: string): boolean {
    const message = this.#shelf.find(id)
    if (!message) return true
    this.#shelf.opened = id
    if (!message.read_at) this.mark(id, "read").catch(() => {})
    return this.#tell("opened", { message })
  }

  /** Takes an action of a message. */
  async act(id: string, key: string, data?: unknown): Promise<void> {
    const path = `/${id}/actions/${encodeURIComponent(key)}`
    const body = data === undefined ? {} : { data }
    const ask = () => this.#requests.ask<InboxMessage>("POST", path, body)
    const message = await this.#attempt(
      one(id, (before) => before),
      ask,
    )
    this.#shelf.apply({ type: "message.updated", seq: message.seq, message })
    this.#changed()
    this.#tell("action", { message, key })
  }

  preferences(): Promise<InboxPreferences> {
    return this.#requests.ask("GET", "/preferences")
  }

  /** Changes only the preferences that are named. */
  choose(changes: object): Promise<InboxPreferences> {
    return this.#requests.ask("PUT", "/preferences", changes)
  }

  /**
   * Frames that come while a page is on its way may be newer than the page: they are applied again. `take` gives whether
   * frames go on from the page.
   */
  async #during<Page>(loading: Promise<Page>, take: (page: Page, early: number) => boolean) {
    const early: ChangeFrame[] = []
    this.#early.add(early)
    try {
      const page = await loading
      const is_position = take(page, early.map(seqOf).at(-1) ?? 0)
      for (const frame of early) this.#shelf.apply(frame)
      this.#changed()
      if (!is_position) return
      this.#tellTabs()
      this.#greet()
    } finally {
      this.#early.delete(early)
    }
  }

  /** Loads the first page; the newest call wins. A position is where frames go on from. */
  async #load({ is_position }: { is_position: boolean }): Promise<void> {
    const turn = ++this.#turns
    const view = this.#view
    const limit = is_position ? Math.min(LONGEST_PAGE, Math.max(PAGE, this.#shelf.size)) : PAGE
    const counting = is_position ? this.#requests.counts() : undefined
    const loading = Promise.all([this.#requests.page(view, { limit }), counting])
    await this.#during(loading, ([found, counts], early) => {
      if (turn !== this.#turns) return false
      // The totals that a socket told are newer.
      const { by_category = {} } = counts ?? {}
      if (counts) this.#shelf.count(this.#state === "live" ? { by_category } : counts)
      this.#shelf.replace(view, found)
      if (!is_position && this.#seq !== undefined) return false
      this.#seq = Math.max(found.last_seq, early)
      return true
    })
  }

  /** What came while nobody listened is told like what comes by the socket. */
  #greet(): void {
    const before = this.#newest
    const fresh = this.messages.filter(({ id }) => id > (before ?? ""))
    this.#newest = fresh[0]?.id ?? before ?? ""
    if (before === undefined) return
    for (const message of fresh.reverse()) this.#tell("message", { message })
  }

  #lead(): void {
    this.#line = new InboxLine({
      requests: this.#requests,
      after: () => this.#seq,
      hear: (frame) => {
        this.#hear(frame)
        this.#tabs?.tell({ frame })
      },
      poll: () => this.#load({ is_position: true }),
      turn: (state, why) => {
        if (why) this.#report(why)
        else this.#turn(state)
      },
    })
    this.#line.open()
  }

  #hear(frame: LineFrame): void {
    if (frame.type === "ready") this.#shelf.count(frame.counts)
    if (frame.type === "counts") {
      const { unread = 0, unseen = 0, total = 0 } = frame
      this.#shelf.count({ unread, unseen, total })
    }
    // A load from before cannot know all that came until now.
    const is_lost = this.#seq === undefined && (frame.type === "ready" || this.#early.size === 0)
    if (frame.type === "resync" || is_lost) this.#reload()
    if ("seq" in frame || "upto_seq" in frame) this.#apply(frame)
    this.#changed()
  }

  #apply(frame: ChangeFrame): void {
    const seq = seqOf(frame)
    for (const early of this.#early) early.push(frame)
    const is_new = this.#seq !== undefined && seq > this.#seq
    const is_known = this.#shelf.apply(frame)
    if (!is_new) return
    this.#seq = seq
    if (frame.type === "message.created") this.#welcome(frame.message)
    else if (!is_known && frame.type !== "messages.seen") this.#recount()
    // What it brings into this view, it does not hold.
    if (frame.type === "messages.archived" && this.#view.filter === "archived")
      this.#load({ is_position: false }).catch(() => {})
  }

  #welcome(message: InboxMessage): void {
    this.#shelf.countUnread(message, 1)
    if (message.id > (this.#newest ?? "")) this.#newest = message.id
    this.#changed()
    this.#tell("message", { message })
  }

  #reload(): void {
    this.#seq = undefined
    // The next frame tries again, and if only a ping.
    this.#load({ is_position: true }).catch(() => {})
  }

  /** Asks for the counts by category, which no frame tells: soon, and once for many changes. */
  #recount(): void {
    this.#counting ??= setTimeout(
      async () => {
        this.#counting = undefined
        const counts = await this.#requests.counts().catch(() => undefined)
        if (counts) this.#shelf.count({ by_category: counts.by_category })
        this.#changed()
      },
      RECOUNT_MS * (0.5 + Math.random()),
    )
  }

  #hearTab(note: TabNote): void {
    if ("frame" in note) this.#hear(note.frame)
    else if ("ask" in note) {
      this.#line?.check()
      this.#tellTabs()
    } else {
      const { seq, counts, state } = note
      this.#shelf.count(counts)
      this.#turn(state)
      if (seq !== undefined && this.#seq !== undefined && seq > this.#seq) this.#reload()
      this.#changed()
    }
  }

  /** Says how far this tab is, where it holds the socket. */
  #tellTabs(): void {
    const { counts } = this.#shelf
    if (this.#line) this.#tabs?.tell({ state: this.#state, seq: this.#seq, counts })
  }

  /** The page is seen again, or its network has changed. */
  #look(): void {
    if (this.#line) this.#line.check()
    else this.#tabs?.tell({ ask: true })
  }

  /** Shows a change before the server has confirmed it. */
  async #attempt<Answer>(pending: PendingChange, send: () => Promise<Answer>): Promise<Answer> {
    const { keep, drop } = this.#shelf.begin(pending)
    this.#changed()
    try {
      const answer = await send()
      keep()
      return answer
    } catch (error) {
      drop()
      this.#report(error)
      throw error
    } finally {
      this.#changed()
    }
  }

  #report(error: unknown): void {
    const { status = 0, code = "failed", message = String(error) } = error as Partial<InboxProblem>
    if (status === 401 || status === 403) {
      this.#leave()
      this.#turn("ended")
    }
    this.#tell("problem", { code, message })
  }

  #leave(): void {
    this.#turns++
    this.#line?.close()
    this.#tabs?.leave()
    this.#forget()
    clearTimeout(this.#counting)
    this.#line = this.#tabs = this.#counting = this.#run = undefined
  }

  #turn(state: InboxState): void {
    if (this.#state === state) return
    this.#state = state
    this.#tellTabs()
    this.#changed()
  }

  #changed(): void {
    this.#shown = undefined
    this.#tell("change", {})
  }

  #tell(name: string, detail: object): boolean {
    return this.dispatchEvent(new CustomEvent(name, { detail, cancelable: name === "opened" }))
  }
}

const one = (id: string, change: PendingChange["change"]): PendingChange => ({
  change,
  isOf: (message) => message.id === id,
})
