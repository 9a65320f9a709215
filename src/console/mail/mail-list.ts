import { useEffect, useReducer, useRef, useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { now, wait } from "../clock"
import { followEvents } from "../event-stream"
import { usePoll } from "../hooks"
import { navigate, place } from "../router"
import { call } from "../transport"
import { type MailQuery, readFilter, widerQuery } from "./mail-filter"
import { MailPages, PAGE_ROWS, withNeighbours } from "./mail-pages"
import { actionOf, type MailboxAction } from "./mailbox-keys"

export type MailSummary = Components["MailboxMailSummary"]

/** Mail of a message arrives with these, or has another status then. Mail of another program is found by the poll. */
const TYPES = "email.sent,email.delivered,email.bounced,email.complained,email.failed"

const POLL_LIVE = 30_000
const POLL_ALONE = 4000

/** A scroll bar that is dragged passes pages by; only those that it shows at such moments are asked for. */
const SCROLL_PAUSE = 60

/** The event tells of a message; its mail is in the mailbox a moment later. */
const FIRST_LOOK = 100

/** Pages of many people hear of an event at one moment, and look one after the other. */
const SPREAD = 300

/** Requests for one page of a filter that finds few mails. */
const MOST_LOOKS = 10

/** Between two looks, however much happens. */
const LEAST_GAP = 600

/** The same where more mail comes in than a page of the list shows: nobody reads along. */
const LONG_GAP = 3000

/** Rows are to follow a key within 200 ms, in a large mailbox as well. */
const FILTER_PAUSE = 40

/** The search line and the unread switch, kept in the address. */
export function useFilter() {
  const [first] = useState(() => new URLSearchParams(place.value.query))
  const [line, setLine] = useState(first.get("q") ?? "")
  const [is_unread, setUnread] = useState(first.get("unread") === "true")
  const [query, setQuery] = useState<MailQuery>(() => readFilter(line, is_unread, now()))
  useEffect(() => {
    const timer = setTimeout(() => {
      setQuery(readFilter(line, is_unread, now()))
      const search = new URLSearchParams({
        ...(line && { q: line }),
        ...(is_unread && { unread: "true" }),
      })
      const path = place.value.path
      navigate(search.size === 0 ? path : `${path}?${search}`, { replace: true })
    }, FILTER_PAUSE)
    return () => clearTimeout(timer)
  }, [line, is_unread])
  const clear = () => {
    setLine("")
    setUnread(false)
  }
  return { line, setLine, is_unread, setUnread, query, clear, is_set: line !== "" || is_unread }
}

export type FilterState = ReturnType<typeof useFilter>

/** The list of the mailbox: loaded by pages as they come into view, and kept up to date. */
export function useMailList(query: MailQuery, open_id: string | undefined): MailList {
  const [, onChange] = useReducer((version: number) => version + 1, 0)
  const [list] = useState(() => new MailList(() => onChange(undefined)))
  list.open_id = open_id
  const key = JSON.stringify(query)
  useEffect(() => list.ask(JSON.parse(key) as MailQuery), [list, key])
  const { state } = list
  const is_paused = state === "paused"
  useEffect(() => (is_paused ? undefined : list.follow()), [list, is_paused])
  usePoll(is_paused ? undefined : state === "live" ? POLL_LIVE : POLL_ALONE, list.refresh)
  return list
}

const PAGE_STEP = 10

/** What is loaded of the list, and where a person is in it. `onChange` is called for each change. */
export class MailList {
  pages = new MailPages<MailSummary>()
  /** Rows that came in above the others since the list began: what is in view stays in place. */
  added = 0
  state: "live" | "lost" | "paused" = "lost"
  error: unknown
  is_loaded = false
  now_ms = now()
  /** The mail that the page shows beside the list. */
  open_id: string | undefined
  #row: number | undefined
  #is_following = false
  #query: MailQuery = {}
  #in_view = { from: 0, to: 0 }
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  /** Another query begins anew; late answers of the old one are dropped. */
  ask(query: MailQuery): void {
    this.#query = query
    this.pages = new MailPages()
    clearTimeout(this.#timer)
    this.#timer = undefined
    void this.refresh()
  }

  /** Looks at once. */
  readonly refresh = (): Promise<void> =>
    this.#load(1, (page) => {
      const added = this.pages.merge(page) ?? 0
      this.added += added
      if (this.#row !== undefined) this.#row += added
    })

  /** Loads the rows from `from` to `to` and the rows beside them. Rows that are loaded already stay. */
  readonly load = (from: number, to: number): void => {
    this.#in_view = { from, to }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      for (const number of this.pages.claimMissing(...withNeighbours(this.#in_view)))
        void this.#load(number, (page) => this.pages.put(number, page))
    }, SCROLL_PAUSE)
  }

  /** The row that the keyboard is on: by its mail, so that it stays when mail comes in above. */
  get position(): number | undefined {
    if (this.#is_following) return 0
    const known = this.open_id === undefined ? undefined : this.pages.placeOf(this.open_id)
    return known ?? this.#row
  }

  readonly open = (row: number): void => {
    this.#row = row
    this.#onChange()
    const mail = this.pages.at(row)
    if (mail) openMail(mail.id)
  }

  /** Opens the mail `by` rows further down. */
  step(by: number): void {
    const to = this.#from + by
    if (to >= 0 && to < this.pages.count) this.open(to)
  }

  #moveTo(row: number): void {
    this.#is_following = false
    this.#row = Math.max(0, Math.min(this.pages.count - 1, row))
    this.#onChange()
  }

  get #from(): number {
    return this.position ?? -1
  }

  readonly keys = {
    down: () => this.#moveTo(this.#from + 1),
    up: () => this.#moveTo(this.#from - 1),
    page_down: () => this.#moveTo(this.#from + PAGE_STEP),
    page_up: () => this.#moveTo(this.#from - PAGE_STEP),
    first: () => this.#moveTo(0),
    last: () => this.#moveTo(this.pages.count - 1),
    open: () => this.open(this.#from),
    next: () => this.step(1),
    previous: () => this.step(-1),
    follow: () => {
      this.#is_following = !this.#is_following
      this.#onChange()
    },
    pause: () => {
      this.state = this.state === "paused" ? "lost" : "paused"
      this.#onChange()
    },
  } satisfies Partial<Record<MailboxAction, () => void>>

  /** Shows a change that this page made. */
  change(id: string, change: Partial<MailSummary>): void {
    this.pages.change(id, change)
    this.#show()
  }

  /** The open mail is gone: the next one opens where the list stands beside it, and the list has the focus. */
  remove(id: string): void {
    const { pages } = this
    const gone = pages.placeOf(id) ?? pages.count
    pages.remove(id)
    this.#show()
    const next = Math.min(gone, pages.count - 1)
    if (pages.at(next) && listBox()?.checkVisibility()) this.open(next)
    else openMail(undefined)
    setTimeout(() => listBox()?.focus()) // after the dialog gave it back to a button that is gone
  }

  async #load(number: number, take: (page: Awaited<ReturnType<typeof readPage>>) => void) {
    const { pages } = this
    try {
      const page = await readPage(this.#query, number)
      if (pages !== this.pages) return
      take(page)
      this.#show()
    } catch (error) {
      pages.release(number)
      if (pages !== this.pages) return
      this.error = error
      this.#onChange()
    }
  }

  #show(): void {
    this.error = undefined
    this.is_loaded = true
    this.now_ms = now()
    this.#onChange()
  }

  /** Looks after each event, and some time after the look before: many events are one look. Returns how it ends. */
  follow(): () => void {
    let has_news = false
    let is_looking = false
    let is_over = false
    const lookAgain = async () => {
      is_looking = true
      while (has_news && !is_over) {
        await wait(FIRST_LOOK + Math.random() * SPREAD)
        has_news = false
        const before = this.pages.total
        // What comes while the tab is hidden is looked at when it shows again.
        if (!is_over && document.visibilityState === "visible") await this.refresh()
        await wait(this.pages.total - before > PAGE_ROWS ? LONG_GAP : LEAST_GAP)
      }
      is_looking = false
    }
    const onEvent = () => {
      has_news = true
      if (!is_looking) void lookAgain()
    }
    const onState = (state: "live" | "lost") => {
      this.state = state
      this.#onChange()
    }
    const unfollow = followEvents({ types: TYPES, onEvent, onState })
    return () => {
      is_over = true
      unfollow()
    }
  }
}

/** What is typed of an address may look whole, and finds as a part what it does not find as an address. */
async function readPage(query: MailQuery, page: number) {
  const found = await askForPage(query, page)
  const wider = found.total === 0 ? widerQuery(query) : undefined
  return wider ? askForPage(wider, page) : found
}

/** In a long mailbox a filter stops before the end. The page goes on for some time, and shows what it found. */
async function askForPage(query: MailQuery, page: number) {
  let { data, meta } = await call("GET /v1/mailbox", {
    query: { ...query, page, per_page: PAGE_ROWS },
  })
  const rows = [...data]
  for (let looks = 1; looks < MOST_LOOKS && meta.incomplete && meta.next_cursor; looks++) {
    const per_page = PAGE_ROWS - rows.length
    if (per_page === 0) break
    const further = { ...query, per_page, cursor: meta.next_cursor }
    ;({ data, meta } = await call("GET /v1/mailbox", { query: further }))
    rows.push(...data)
  }
  return { rows, total: meta.total ?? rows.length }
}

/** Opens a mail, or the list alone; the filter stays in the address. */
export function openMail(id: string | undefined): void {
  const { query } = place.value
  const search = query ? `?${query}` : ""
  navigate(id === undefined ? `/mailbox${search}` : `/mailbox/${id}${search}`)
}

/** The list of mails as it stands in the page, to see whether it shows and to give it the focus. */
export const listBox = () => document.querySelector<HTMLElement>("[role=listbox]")

/**
 * Calls what a part of the page does for a key, unless somebody types into a field or a dialog is open. What a part
 * does not name is for the other parts.
 */
export function useMailboxKeys(actions: Partial<Record<MailboxAction, () => unknown>>): void {
  const latest = useRef(actions)
  latest.current = actions
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (document.querySelector("dialog[open]")) return
      const target = event.target instanceof HTMLElement ? event.target : null
      if (target?.matches(FIELDS) && !leavesField(target, event.key)) return
      const action = actionAt(event.key, target)
      const act = action && latest.current[action]
      if (!act) return
      event.preventDefault()
      act()
    }
    document.addEventListener("keydown", press)
    return () => document.removeEventListener("keydown", press)
  }, [])
}

const FIELDS = "input:not([type=checkbox]), textarea, select"

/** Escape leaves a field, and then works as everywhere. Enter in the search goes to what it found. */
function leavesField(field: HTMLElement, key: string): boolean {
  if (key === "Escape") field.blur()
  if (key === "Enter" && field.matches("[type=search]")) listBox()?.focus()
  return key === "Escape"
}

/** A control that has the focus keeps the keys that work it. */
const CONTROLS = "button, a, summary, input, [role=tab], pre, section.scroll"
const OF_CONTROLS = ["Enter", " ", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]

/** In the list beside an open mail the keys of the mail work, too. */
function actionAt(key: string, target: Element | null): MailboxAction | undefined {
  if (target?.matches(CONTROLS) && OF_CONTROLS.includes(key)) return undefined
  const is_open = place.value.path.startsWith("/mailbox/")
  const is_in_list = target?.closest("[role=listbox]") != null
  const of_list = is_in_list || !is_open ? actionOf(key, "list") : undefined
  return of_list ?? (is_open ? actionOf(key, "mail") : undefined)
}
