import type { ComponentChildren, RefObject } from "preact"
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { rowsInView, scrollToShow } from "../rows-in-view"

interface VirtualListProps {
  label: string
  count: number
  /** Of each row, in CSS pixels at the normal size of type; it grows with the type. */
  row_height: number
  /** The row that the keyboard is on; it is scrolled into view. */
  position: number | undefined
  /** Rows that came in above the others since the list began. What is in view stays where it is. */
  added?: number
  /** What the page does when rows come into view, to load them. */
  onView: (from: number, to: number) => void
  onChoose: (at: number) => void
  renderRow: (at: number) => ComponentChildren
  idOfRow: (at: number) => string
}

const NORMAL_TYPE_PIXELS = 16

/**
 * A list of many rows of one height: only those in view are in the document, so ten thousand cost as much
 * as twenty. It takes the focus as a whole, and `aria-activedescendant` names the chosen row.
 */
export function VirtualList(props: VirtualListProps) {
  const { label, count, row_height, position, added = 0, onView, onChoose } = props
  const { renderRow, idOfRow } = props
  const box = useRef<HTMLDivElement>(null)
  const [view, follow] = useView(box)
  const height = Math.round(row_height * view.scale)
  const { from, to } = rowsInView({ ...view, row_height: height, count })
  useKeptPlace(box, added, height)
  usePresses(box, onChoose)
  useEffect(() => onView(from, to), [onView, from, to])
  useLayoutEffect(() => {
    const element = box.current
    if (!element || position === undefined) return
    element.scrollTop = scrollToShow(position, viewOf(element), height)
  }, [position, height])

  const rows = Array.from({ length: to - from }, (_, at) => from + at)
  const is_chosen_in_view = position !== undefined && position >= from && position < to
  return (
    <div
      ref={box}
      class="virtual"
      role="listbox"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={is_chosen_in_view ? idOfRow(position) : undefined}
      onScroll={follow}
    >
      <div class="length" style={{ height: `${count * height}px` }}>
        {rows.map((at) => (
          <div
            key={idOfRow(at)}
            id={idOfRow(at)}
            class="row"
            role="option"
            aria-selected={at === position}
            aria-posinset={at + 1}
            aria-setsize={count}
            tabIndex={-1}
            style={{ height: `${height}px`, transform: `translateY(${at * height}px)` }}
          >
            {renderRow(at)}
          </div>
        ))}
      </div>
    </div>
  )
}

type Box = RefObject<HTMLDivElement | null>

/** What shows of the list, and the function that looks again. */
function useView(box: Box) {
  const [view, setView] = useState({ top: 0, height: 0, scale: 1 })
  const follow = useCallback(() => {
    if (box.current) setView(viewOf(box.current))
  }, [box])
  useLayoutEffect(() => {
    follow()
    const observer = new ResizeObserver(follow)
    if (box.current) observer.observe(box.current)
    return () => observer.disconnect()
  }, [box, follow])
  return [view, follow] as const
}

/** Rows that come in above move the scrolled list by as much, so that it seems to stand still. */
function useKeptPlace(box: Box, added: number, height: number) {
  const known = useRef(added)
  useLayoutEffect(() => {
    const element = box.current
    if (element && element.scrollTop > 0) element.scrollTop += (added - known.current) * height
    known.current = added
  }, [box, added, height])
}

/** One listener for all rows. */
function usePresses(box: Box, onChoose: (at: number) => void) {
  useEffect(() => {
    const press = ({ target }: MouseEvent) => {
      const row = target instanceof Element ? target.closest("[role=option]") : null
      if (row) onChoose(Number(row.getAttribute("aria-posinset")) - 1)
    }
    const element = box.current
    element?.addEventListener("click", press)
    return () => element?.removeEventListener("click", press)
  }, [box, onChoose])
}

function viewOf(element: HTMLElement) {
  const type = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
  const scale = Number.isFinite(type) ? type / NORMAL_TYPE_PIXELS : 1
  return { top: element.scrollTop, height: element.clientHeight, scale }
}
