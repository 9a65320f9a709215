interface View {
  /** How far the list is scrolled, and how much of it shows, in pixels. */
  top: number
  height: number
}

/** Rows beyond each edge, so that a quick scroll shows no gap. */
const SPARE_ROWS = 8

/** The rows to render: `from` is one of them, `to` is the first behind them. */
export function rowsInView({
  top,
  height,
  row_height,
  count,
}: View & { row_height: number; count: number }): { from: number; to: number } {
  const first = Math.floor(top / row_height) - SPARE_ROWS
  const last = Math.ceil((top + height) / row_height) + SPARE_ROWS
  const to = Math.min(count, Math.max(0, last))
  return { from: Math.min(to, Math.max(0, first)), to }
}

/** The least scrolling that shows the whole row. */
export function scrollToShow(position: number, { top, height }: View, row_height: number): number {
  const start = position * row_height
  const end = start + row_height
  if (start < top) return start
  return end > top + height ? end - height : top
}
