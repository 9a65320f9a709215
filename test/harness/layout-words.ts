import { isPressable, layerOf, nameOf, visibleBox } from "./layout"
import type { Box, Looks, PageDocument, PageElement } from "./layout-page"

/** The rules about text. As those of `layout.ts`, they run in the page. */
declare const document: PageDocument
declare const getComputedStyle: (element: PageElement) => Looks

interface TextLine {
  element: PageElement
  /** The first of its text. */
  is_first: boolean
  text: string
  box: Box
}

/** Each line of text with its box, as far as it is to be seen; from the top. */
export function textLines(elements: PageElement[]): TextLine[] {
  const TEXT = 4
  const shown = new Set(elements)
  const walker = document.createTreeWalker(document.body, TEXT)
  const found: TextLine[] = []
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement
    if (node.data.trim() === "" || !shown.has(element)) continue
    const clip = visibleBox(element)
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const [at, { left, right, top, bottom }] of [...range.getClientRects()].entries()) {
      const box = {
        left: Math.max(left, clip.left),
        right: Math.min(right, clip.right),
        top,
        bottom,
        width: right - left,
        height: bottom - top,
      }
      if (box.right - box.left > 1)
        found.push({ element, is_first: at === 0, text: node.data.trim().slice(0, 40), box })
    }
  }
  return found.sort((a, b) => a.box.top - b.box.top)
}

export function textFaults(elements: PageElement[]): string[] {
  const lines = textLines(elements)
  return lines.flatMap((one, at) => {
    const found: string[] = []
    for (let next = at + 1; next < lines.length; next++) {
      const other = lines[next]
      if (!other || other.box.top >= one.box.bottom) break
      if (other.element === one.element) continue
      const down = Math.min(one.box.bottom, other.box.bottom) - other.box.top
      const across =
        Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left)
      const is_over = across > 1 && down > 0.4 * Math.min(one.box.height, other.box.height)
      if (is_over && layerOf(one.element) === layerOf(other.element))
        found.push(`text over text: "${one.text}" and "${other.text}"`)
    }
    return found
  })
}

/** A word of ordinary length stands on one line; only what is longer may break, as a path does. */
export function brokenWords(elements: PageElement[]): string[] {
  const [TEXT, LONG] = [4, 16]
  const shown = new Set(elements)
  const walker = document.createTreeWalker(document.body, TEXT)
  const found: string[] = []
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!shown.has(node.parentElement)) continue
    const code = node.parentElement.closest("code")
    if (code && /[^\p{L}]/u.test(code.textContent)) continue
    const range = document.createRange()
    range.selectNodeContents(node)
    if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size < 2) continue
    for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      if (word.length > LONG) continue
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const tops = [...range.getClientRects()].filter(({ width }) => width > 0.5)
      if (new Set(tops.map(({ top }) => Math.round(top))).size > 1)
        found.push(`"${word}" breaks in ${nameOf(node.parentElement)}`)
    }
  }
  return found
}

/** Buttons and fields keep at least 3 px from text above and below them. */
export function crowdFaults(elements: PageElement[]): string[] {
  const CLOSE = 3
  const lines = textLines(elements)
  return elements
    .filter((one) => isPressable(one) && isBoxed(one))
    .flatMap((element) => {
      const box = element.getBoundingClientRect()
      const layer = layerOf(element)
      const close = lines.find((line) => {
        const across = Math.min(box.right, line.box.right) - Math.max(box.left, line.box.left)
        const apart = Math.max(box.top - line.box.bottom, line.box.top - box.bottom)
        const is_other = !element.contains(line.element) && !isBoxed(line.element)
        return (
          is_other &&
          across > 1 &&
          apart > -CLOSE &&
          apart < CLOSE &&
          layerOf(line.element) === layer
        )
      })
      return close ? [`${nameOf(element)} stands too close to "${close.text}"`] : []
    })
}

/** Has an edge of its own all around. */
export function isBoxed(element: PageElement): boolean {
  const { borderTopWidth, borderBottomWidth, borderTopColor } = getComputedStyle(element)
  const has_edge = borderTopWidth !== "0px" && borderBottomWidth !== "0px"
  return has_edge && !/^rgba\(.*, 0\)$|transparent/.test(borderTopColor ?? "")
}

/** What begins a row begins at the same place as what begins another one, or clearly elsewhere. */
export function edgeFaults(elements: PageElement[]): string[] {
  const boxed = elements.filter((one) => isBoxed(one) || one.tagName === "IMG")
  const inBox = (element: PageElement) =>
    boxed.some((box) => box !== element && box.contains(element))
  const lines = textLines(elements).filter(
    ({ element }) => !boxed.some((box) => box.contains(element)),
  )
  const boxes = boxed
    .filter((one) => !inBox(one))
    .map((element) => ({
      element,
      is_first: true,
      text: nameOf(element),
      box: element.getBoundingClientRect(),
    }))
  const all = [...lines, ...boxes]
  const first = all.filter((one) => !all.some((other) => isBefore(other.box, one.box)))
  return [lines, boxes].flatMap((kind) => nearMisses(first.filter((one) => kind.includes(one))))
}

export function nearMisses(lines: TextLine[]): string[] {
  const edges = new Map<number, string>()
  for (const { element, is_first, box, text } of lines) {
    const { direction, display } = getComputedStyle(element)
    const is_in_line = display === "inline" && element.tagName !== "IMG"
    const is_sign = text.length < 2 || element.tagName === "SUMMARY" // behind its own marker
    if (
      !is_first ||
      is_sign ||
      is_in_line ||
      direction !== "ltr" ||
      box.bottom <= 0 ||
      isCentred(element)
    )
      continue
    edges.set(Math.round(box.left * 2) / 2, text)
  }
  const sorted = [...edges].sort(([a], [b]) => a - b)
  return sorted.flatMap(([left, text], at) => {
    const [next = Number.POSITIVE_INFINITY, other] = sorted[at + 1] ?? []
    const is_miss = next - left > 0.75 && next - left < 4
    return is_miss ? [`"${text}" begins at ${left} px, and "${other}" at ${next} px`] : []
  })
}

export function isBefore(other: Box, one: Box): boolean {
  const shared = Math.min(other.bottom, one.bottom) - Math.max(other.top, one.top)
  return shared > 1 && other.left < one.left - 4
}

export function isCentred(element: PageElement): boolean {
  const { textAlign, justifyContent } = getComputedStyle(element)
  if (/center|right|end/.test(`${textAlign} ${justifyContent}`)) return true
  const parent = element.parentElement?.getBoundingClientRect()
  const box = element.getBoundingClientRect()
  if (!parent || box.width > parent.width - 8) return false
  return Math.abs(parent.left + parent.right - box.left - box.right) < 2
}
