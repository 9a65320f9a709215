import type { RefObject } from "preact"
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { isolated } from "../lib/text"
import type { Observable } from "./observable"

/**
 * What `load` resolves to. It must keep its identity, as of `useCallback`: another one loads anew. `again` loads
 * again, and the old value stands until the new one is there.
 */
export function useLoaded<Value>(load: () => Promise<Value>) {
  const [value, setValue] = useState<Value>()
  const [error, setError] = useState<unknown>()
  const latest = useRef(load)
  const again = useCallback(async () => {
    latest.current = load
    try {
      const found = await load()
      if (latest.current !== load) return // asked for something else meanwhile
      setValue(() => found)
      setError(undefined)
    } catch (thrown) {
      if (latest.current === load) setError(thrown)
    }
  }, [load])
  useEffect(() => {
    setValue(undefined)
    setError(undefined)
    void again()
  }, [again])
  return { value, error, again }
}

/**
 * Calls `run` at once and then again and again, but never while nobody sees the page: a hidden tab costs
 * the server nothing. It looks again as soon as the page shows.
 */
export function usePoll(every_ms: number | undefined, run: () => unknown): void {
  const latest = useRef(run)
  latest.current = run
  useEffect(() => {
    if (every_ms === undefined) return undefined
    const look = () => {
      if (document.visibilityState === "visible") latest.current()
    }
    look()
    const timer = setInterval(look, every_ms)
    document.addEventListener("visibilitychange", look)
    return () => {
      clearInterval(timer)
      document.removeEventListener("visibilitychange", look)
    }
  }, [every_ms])
}

export function useMedia(query: string): boolean {
  const [fits, setFits] = useState(() => matchMedia(query).matches)
  useEffect(() => {
    const media = matchMedia(query)
    const look = () => setFits(media.matches)
    look()
    media.addEventListener("change", look)
    return () => media.removeEventListener("change", look)
  }, [query])
  return fits
}

/** The width of an element inside its borders, in CSS pixels; undefined until it is known. */
export function useWidth(element: RefObject<HTMLElement | null>): number | undefined {
  const [width, setWidth] = useState<number>()
  useLayoutEffect(() => {
    const { current } = element
    if (!current) return undefined
    const look = () => setWidth(current.clientWidth)
    look()
    const observer = new ResizeObserver(look)
    observer.observe(current)
    return () => observer.disconnect()
  }, [element])
  return width
}

/** The value, and a new rendering after each change of it. */
export function useObservable<Value>(source: Observable<Value>): Value {
  const [value, setValue] = useState(source.value)
  useEffect(() => {
    const follow = () => setValue(() => source.value)
    follow() // it may have changed between rendering and now
    return source.subscribe(follow)
  }, [source])
  return value
}

/** The title of the tab, which screen readers read at each new page. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "Belfry" ? title : `${isolated(title)} · Belfry`
  }, [title])
}
