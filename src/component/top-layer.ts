/** Between a box and what it belongs to, and the edge of the window. In CSS pixels. */
const GAP = 8

/**
 * Places a box of the top layer at an element: at its end, below it or, where that has more room, above. A style
 * sheet says where, because a strict policy of the page forbids style attributes.
 */
export function placer(root: ShadowRoot, selector: string, media = "all") {
  const sheet = new CSSStyleSheet()
  root.adoptedStyleSheets.push(sheet)
  return (box: HTMLElement, at: Element): void => {
    const { left, right, top, bottom } = at.getBoundingClientRect()
    const width = box.offsetWidth
    const wanted = getComputedStyle(box).direction === "rtl" ? left : right - width
    const x = Math.max(GAP, Math.min(wanted, innerWidth - width - GAP))
    const [above, below] = [top - 2 * GAP, innerHeight - bottom - 2 * GAP]
    const is_above = above > below && box.scrollHeight > below
    const y = is_above ? `auto auto ${innerHeight - top + GAP}px` : `${bottom + GAP}px auto auto`
    const room = Math.max(is_above ? above : below, 0)
    const rule = `${selector}{inset:${y} ${x}px;max-height:min(38em,${room}px)}`
    sheet.replaceSync(`@media ${media}{${rule}}`)
  }
}
