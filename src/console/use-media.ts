import type { RefObject } from "preact"
import { useEffect, useLayoutEffect, useState } from "preact/hooks"

/** Whether the window fits a media query now. */
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
