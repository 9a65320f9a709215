import { useCallback, useEffect, useRef, useState } from "preact/hooks"
import { now, wait } from "../clock"
import { followEvents } from "../event-stream"
import { call } from "../transport"
import { usePoll } from "../use-poll"
import { type MailQuery, widerQuery } from "./mail-filter"
import { MailPages, PAGE_ROWS, withNeighbours } from "./mail-pages"
import type { MailSummary } from "./mail-records"

/** Mail of a message arrives with these. Mail of another program is found by the poll. */
const TYPES = "email.sent,email.delivered"

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

export type LiveState = "live" | "lost" | "paused"

export interface MailList {
  pages: MailPages<MailSummary>
  /** Rows that came in above the others since the list began: what is in view stays in place. */
  added: number
  state: LiveState
  error: unknown
  is_loaded: boolean
  now_ms: number
  setPaused: (is_paused: boolean) => void
  load: (from: number, to: number) => void
  /** Looks at once. */
  refresh: () => Promise<void>
  /** Shows a change that this page made. */
  change: (id: string, change: Partial<MailSummary>) => void
  remove: (id: string) => void
}

/** The list of the mailbox: loaded by pages as they come into view, and kept up to date. */
export function useMailList(query: MailQuery): MailList {
  const { pages, view, error, show, refresh, load } = useLoadedPages(query)
  const [link, setLink] = useState<Exclude<LiveState, "paused">>("lost")
  const [is_paused, setPaused] = useState(false)
  const look = useCallback(async () => {
    const before = pages.current.total
    await refresh()
    return pages.current.total - before
  }, [pages, refresh])
  useFollowed(is_paused, look, setLink)
  const every = link === "live" ? POLL_LIVE : POLL_ALONE
  usePoll(is_paused ? undefined : every, refresh)

  const change = useCallback(
    (id: string, fields: Partial<MailSummary>) => {
      pages.current.change(id, fields)
      show(0)
    },
    [pages, show],
  )
  const remove = useCallback(
    (id: string) => {
      pages.current.remove(id)
      show(0)
    },
    [pages, show],
  )
  const { added, is_loaded, now_ms } = view
  const state: LiveState = is_paused ? "paused" : link
  const shown = { pages: pages.current, added, state, error, is_loaded, now_ms }
  return { ...shown, setPaused, load, refresh, change, remove }
}

/** The pages of one query; another query begins anew, and late answers of the old one are dropped. */
function useLoadedPages(query: MailQuery) {
  const key = JSON.stringify(query)
  const pages = useRef(new MailPages<MailSummary>())
  const generation = useRef(0)
  const [view, setView] = useState({ added: 0, version: 0, is_loaded: false, now_ms: now() })
  const [error, setError] = useState<unknown>()

  const show = useCallback((added: number | undefined) => {
    setError(undefined)
    setView((old) => ({
      added: old.added + (added ?? 0),
      version: old.version + 1,
      is_loaded: true,
      now_ms: now(),
    }))
  }, [])

  const refresh = useCallback(async () => {
    const own = generation.current
    try {
      const page = await readPage(JSON.parse(key) as MailQuery, 1)
      if (own === generation.current) show(pages.current.merge(page))
    } catch (thrown) {
      if (own === generation.current) setError(thrown)
    }
  }, [key, show])

  const loadPage = useCallback(
    async (number: number) => {
      const own = generation.current
      try {
        const page = await readPage(JSON.parse(key) as MailQuery, number)
        if (own !== generation.current) return
        pages.current.put(number, page)
        show(0)
      } catch (thrown) {
        pages.current.release(number)
        setError(thrown)
      }
    },
    [key, show],
  )
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const looked_at = useRef({ from: 0, to: 0 })
  const load = useCallback(
    (from: number, to: number) => {
      looked_at.current = { from, to }
      timer.current ??= setTimeout(() => {
        timer.current = undefined
        const missing = pages.current.claimMissing(...withNeighbours(looked_at.current))
        for (const number of missing) void loadPage(number)
      }, SCROLL_PAUSE)
    },
    [loadPage],
  )

  useEffect(() => {
    generation.current += 1
    clearTimeout(timer.current)
    timer.current = undefined
    pages.current = new MailPages()
    void refresh()
  }, [refresh])
  return { pages, view, error, show, refresh, load }
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

/** What came meanwhile is looked at when the tab shows again. */
const isHidden = () => document.visibilityState !== "visible"

/** Looks after each event, and some time after the look before: many events are one look. */
function useFollowed(
  is_paused: boolean,
  look: () => Promise<number>,
  onState: (state: "live" | "lost") => void,
): void {
  const latest = useRef(look)
  latest.current = look
  useEffect(() => {
    if (is_paused) return undefined
    onState("lost") // until it is connected: then the list is looked at once more
    let has_news = false
    let is_looking = false
    let is_over = false
    const lookAgain = async () => {
      is_looking = true
      while (has_news && !is_over) {
        await wait(FIRST_LOOK + Math.random() * SPREAD)
        has_news = false
        const came = is_over || isHidden() ? 0 : await latest.current()
        await wait(came > PAGE_ROWS ? LONG_GAP : LEAST_GAP)
      }
      is_looking = false
    }
    const onEvent = () => {
      has_news = true
      if (!is_looking) void lookAgain()
    }
    const unfollow = followEvents({ types: TYPES, onEvent, onState })
    return () => {
      is_over = true
      unfollow()
    }
  }, [is_paused, onState])
}
