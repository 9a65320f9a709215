import type { RefObject } from "preact"
import { useLayoutEffect, useState } from "preact/hooks"

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
