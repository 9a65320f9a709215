import type { Box, Looks, PageDocument, PageElement } from "./layout-page"
import {
  brokenWords,
  crowdFaults,
  edgeFaults,
  isBefore,
  isBoxed,
  isCentred,
  nearMisses,
  textFaults,
  textLines,
} from "./layout-words"

/**
 * What is wrong with the places and sizes of a page's visible elements, one line each: text that
 * spills out of its box or is cut off, elements outside of the window or on top of each other, and
 * neighbours that miss a common edge by less than 4 px. The functions below run in the page, so
 * each uses only the others and what a page has.
 */
export const layoutScript = (): string =>
  `(() => {${[
    visibleElements,
    isShown,
    visibleBox,
    layerOf,
    nameOf,
    overflowFaults,
    spillOf,
    outsideFaults,
    isInScroller,
    coveredFaults,
    isPressable,
    overlapFaults,
    textLines,
    textFaults,
    brokenWords,
    crowdFaults,
    isBoxed,
    edgeFaults,
    nearMisses,
    isBefore,
    isCentred,
    alignmentFaults,
    rowFault,
    columnFault,
    baselineOf,
    isNearMiss,
    pictureFaults,
    layoutFaults,
  ].join("\n")}; return layoutFaults()})()`

declare const document: PageDocument
declare const getComputedStyle: (element: PageElement) => Looks
declare const innerHeight: number

function layoutFaults(): string[] {
  const elements = visibleElements()
  return [
    ...overflowFaults(elements),
    ...outsideFaults(elements),
    ...coveredFaults(elements),
    ...overlapFaults(elements),
    ...textFaults(elements),
    ...brokenWords(elements),
    ...crowdFaults(elements),
    ...edgeFaults(elements),
    ...alignmentFaults(elements),
    ...pictureFaults(elements),
  ]
}

/** With an open dialog only what stands in it: the rest of the page waits behind it. */
function visibleElements(): PageElement[] {
  const dialog = [...document.querySelectorAll("dialog:modal")].at(-1)
  return [...(dialog ?? document.body).querySelectorAll("*")].filter(isShown)
}

/** Of at least 2 px each way: less is how text is hidden from all but screen readers. */
function isShown(element: PageElement): boolean {
  const looks = { opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true }
  if (!element.checkVisibility(looks)) return false
  if (element.closest("svg, option, noscript, wbr, br, head") && element.tagName !== "svg")
    return false
  const box = visibleBox(element)
  return box.width > 1 && box.height > 1
}

/** What the boxes around it leave of its box. */
export function visibleBox(element: PageElement): Box {
  const full = element.getBoundingClientRect()
  const box = { left: full.left, right: full.right, top: full.top, bottom: full.bottom }
  let fixed = getComputedStyle(element).position === "fixed"
  for (let around = element.parentElement; around && !fixed; around = around.parentElement) {
    const { overflowX, overflowY, position } = getComputedStyle(around)
    const clip = around.getBoundingClientRect()
    if (around !== document.body && around !== document.documentElement) {
      if (overflowX !== "visible") {
        box.left = Math.max(box.left, clip.left)
        box.right = Math.min(box.right, clip.right)
      }
      if (overflowY !== "visible") {
        box.top = Math.max(box.top, clip.top)
        box.bottom = Math.min(box.bottom, clip.bottom)
      }
    }
    fixed = position === "fixed"
  }
  return { ...box, width: box.right - box.left, height: box.bottom - box.top }
}

/** What floats above the page may cover it. */
export function layerOf(element: PageElement): PageElement | null {
  for (let one: PageElement | null = element; one; one = one.parentElement) {
    if (one.matches("dialog, [popover]")) return one
    if (["fixed", "sticky"].includes(getComputedStyle(one).position)) return one
  }
  return null
}

export function nameOf(element: PageElement): string {
  const classes = typeof element.className === "string" ? element.className.trim() : ""
  const tag = element.tagName.toLowerCase()
  const id = element.id ? `#${element.id}` : ""
  const text = element.textContent.trim().replaceAll(/\s+/g, " ").slice(0, 40)
  return `${tag}${id}${classes && `.${classes.replaceAll(/\s+/g, ".")}`}${text && ` "${text}"`}`
}

/** The deepest only: what spills from a box spills from those around it, too. */
function overflowFaults(elements: PageElement[]): string[] {
  const page = document.documentElement
  const sideways =
    page.scrollWidth > page.clientWidth + 1
      ? [`the page scrolls sideways by ${page.scrollWidth - page.clientWidth} px`]
      : []
  const found = elements.flatMap((element) => {
    const fault = spillOf(element)
    return fault ? [{ element, fault }] : []
  })
  const deepest = found.filter(
    ({ element }) =>
      !found.some((other) => other.element !== element && element.contains(other.element)),
  )
  return [...sideways, ...deepest.map(({ element, fault }) => `${fault}: ${nameOf(element)}`)]
}

/** Lines that stand close reach a few pixels out of their box, and nobody sees it. */
function spillOf(element: PageElement): string | undefined {
  const CLOSE_LINES = 5
  const { display, overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(element)
  if (display === "inline" || display === "contents" || element.tagName === "svg") return undefined
  if (element.matches("input, textarea, select, iframe, img")) return undefined
  const across = element.scrollWidth - element.clientWidth
  const down = element.scrollHeight - element.clientHeight
  if (across > 1 && overflowX === "visible" && !isInScroller(element))
    return `spills sideways by ${across} px`
  if (across > 1 && /hidden|clip/.test(overflowX) && textOverflow !== "ellipsis")
    return `is cut off sideways by ${across} px`
  if (down > CLOSE_LINES && overflowY === "visible" && !isInScroller(element))
    return `spills down by ${down} px`
  const is_clamped = webkitLineClamp !== undefined && webkitLineClamp !== "none"
  if (down > CLOSE_LINES && /hidden|clip/.test(overflowY) && !is_clamped)
    return `is cut off below by ${down} px`
  return undefined
}

function outsideFaults(elements: PageElement[]): string[] {
  const width = document.documentElement.clientWidth
  const outside = elements.filter((element) => {
    const { left, right, bottom } = element.getBoundingClientRect()
    return bottom > 0 && (left < -1 || right > width + 1) && !isInScroller(element)
  })
  const deepest = outside.filter(
    (element) => !outside.some((other) => other !== element && element.contains(other)),
  )
  return deepest.map((element) => `reaches out of the window: ${nameOf(element)}`)
}

function isInScroller(element: PageElement): boolean {
  for (let one = element.parentElement; one && one !== document.body; one = one.parentElement) {
    if (getComputedStyle(one).overflowX !== "visible") return true
  }
  return false
}

/** Whatever a person may press takes the press in its middle. */
function coveredFaults(elements: PageElement[]): string[] {
  const width = document.documentElement.clientWidth
  return elements.filter(isPressable).flatMap((element) => {
    const { left, right, top, bottom } = visibleBox(element)
    const [x, y] = [(left + right) / 2, (top + bottom) / 2]
    if (x < 0 || y < 0 || x >= width || y >= innerHeight) return []
    const hit = document.elementFromPoint(x, y)
    if (!hit || element.contains(hit) || hit.contains(element)) return []
    if (layerOf(hit) !== layerOf(element)) return []
    const is_its_label = hit.closest("label") !== null && element.matches("input, select")
    return is_its_label ? [] : [`${nameOf(element)} is covered by ${nameOf(hit)}`]
  })
}

export function isPressable(element: PageElement): boolean {
  return element.matches("a[href], button, input, select, textarea, summary, [role=tab]")
}

function overlapFaults(elements: PageElement[]): string[] {
  const some = elements.filter(isPressable).map((element) => ({
    element,
    box: visibleBox(element),
    layer: layerOf(element),
  }))
  return some.flatMap((one, at) =>
    some.slice(at + 1).flatMap((other) => {
      if (one.layer !== other.layer) return []
      if (one.element.contains(other.element) || other.element.contains(one.element)) return []
      const across =
        Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left)
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top)
      return across > 1 && down > 1 && getComputedStyle(one.element).display !== "inline"
        ? [`${nameOf(one.element)} and ${nameOf(other.element)} overlap`]
        : []
    }),
  )
}

/** Neighbours in a row or a column share an edge or a middle, or are clearly apart. */
function alignmentFaults(elements: PageElement[]): string[] {
  const shown = new Set(elements)
  const isPlaced = (element: PageElement) => {
    const { display, position } = getComputedStyle(element)
    return !["inline", "contents"].includes(display) && !["absolute", "fixed"].includes(position)
  }
  const parents = new Set(elements.map(({ parentElement }) => parentElement))
  return [...parents].flatMap((parent) => {
    if (!parent || parent.matches("table, thead, tbody, tr")) return []
    const children = [...parent.children].filter((one) => shown.has(one) && isPlaced(one))
    return children.flatMap((one, at) => {
      const next = children[at + 1]
      return next ? [...rowFault(one, next), ...columnFault(one, next)] : []
    })
  })
}

/** By 1 to 3 px: nobody would choose that. */
function isNearMiss(distances: number[]): boolean {
  const least = Math.min(...distances.map(Math.abs))
  return least > 0.75 && least < 4
}

function rowFault(one: PageElement, next: PageElement): string[] {
  const TALL = 200
  const [a, b] = [one.getBoundingClientRect(), next.getBoundingClientRect()]
  const shared = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
  const is_row = shared > Math.min(a.height, b.height) / 2 && Math.min(a.height, b.height) < TALL
  const is_apart = a.right <= b.left + 1 || b.right <= a.left + 1
  if (!is_row || !is_apart) return []
  const [first, second] = [baselineOf(one), baselineOf(next)]
  const distances = [a.top - b.top, a.bottom - b.bottom, (a.top + a.bottom - b.top - b.bottom) / 2]
  if (first !== undefined && second !== undefined) distances.push(first - second)
  return isNearMiss(distances) ? [`a crooked row: ${nameOf(one)} beside ${nameOf(next)}`] : []
}

/** Columns that are centred, or that end together, begin elsewhere with reason. */
function columnFault(one: PageElement, next: PageElement): string[] {
  const [a, b] = [one.getBoundingClientRect(), next.getBoundingClientRect()]
  if (a.bottom > b.top + 1 || !isNearMiss([a.left - b.left])) return []
  const middle = a.left + a.right - b.left - b.right
  const is_meant = Math.abs(a.right - b.right) < 1 || Math.abs(middle) < 1
  return is_meant ? [] : [`a crooked column: ${nameOf(one)} above ${nameOf(next)}`]
}

/** Of its first line, by the measures of the font of the fixtures. */
function baselineOf(element: PageElement): number | undefined {
  const [TEXT, DESCENT] = [4, 0.236]
  const walker = document.createTreeWalker(element, TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.data.trim() === "") continue
    const range = document.createRange()
    range.selectNodeContents(node)
    const [box] = range.getClientRects()
    const size = Number.parseFloat(getComputedStyle(node.parentElement).fontSize)
    if (box) return box.bottom - DESCENT * size
  }
  return undefined
}

function pictureFaults(elements: PageElement[]): string[] {
  return elements
    .filter((one) => one.tagName === "IMG" && one.complete && one.naturalWidth === 0)
    .map((one) => `a broken picture: ${nameOf(one)}`)
}
