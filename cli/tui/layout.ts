/** Below this nothing is drawn but the wish for more room. */
export const LEAST = { columns: 60, lines: 12 }

/** From here on a list and what is in it stand side by side. */
const WIDE_COLUMNS = 120

/** Borders, tabs, and the line above the keys. */
const FRAME_LINES = 4
const FRAME_COLUMNS = 4

export interface Layout {
  /** Of the space between the borders. */
  width: number
  height: number
  is_wide: boolean
  /** Of the left part while something is opened on the right; else all of it. */
  list_width: number
  detail_width: number
}

export function layoutOf({ columns, lines }: { columns: number; lines: number }): Layout {
  const width = columns - FRAME_COLUMNS
  const height = lines - FRAME_LINES
  const is_wide = columns >= WIDE_COLUMNS
  const list_width = is_wide ? Math.floor(width * 0.5) : width
  return {
    width,
    height,
    is_wide,
    list_width,
    detail_width: is_wide ? width - list_width - 3 : width,
  }
}

/** Rows of a table below its head. */
export const tableRows = (height: number): number => Math.max(1, height - 1)

/** Lines of a detail below its own head of two lines. */
export const detailRows = (height: number): number => Math.max(1, height - 2)

/** How the webhooks screen shares its height between endpoints and their deliveries. */
export function webhookHeights(height: number, endpoints: number): [number, number] {
  const most = Math.floor(height / 2) - 1
  const upper = Math.max(3, Math.min(most, endpoints + 1))
  return [upper, height - upper - 1]
}
