import { useEffect, useState } from "preact/hooks"
import { now } from "../clock"
import { navigate, place } from "../router"
import { type MailQuery, readFilter } from "./mail-filter"

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
