/** What the finder of layout faults uses of a page; the types of this project know no browser. */
export interface Box {
  left: number
  right: number
  top: number
  bottom: number
  width: number
  height: number
}

export interface Looks extends Record<string, string> {
  display: string
  position: string
  overflowX: string
  overflowY: string
  textOverflow: string
  fontSize: string
}

export interface PageElement {
  tagName: string
  id: string
  className: unknown
  children: Iterable<PageElement>
  parentElement: PageElement | null
  textContent: string
  scrollWidth: number
  scrollHeight: number
  clientWidth: number
  clientHeight: number
  complete?: boolean
  naturalWidth?: number
  getBoundingClientRect(): Box
  checkVisibility(options: object): boolean
  contains(other: PageElement | null): boolean
  matches(selector: string): boolean
  closest(selector: string): PageElement | null
  querySelectorAll(selector: string): Iterable<PageElement>
}

export interface TextNode {
  data: string
  parentElement: PageElement
}

export interface PageDocument {
  body: PageElement
  documentElement: PageElement
  querySelectorAll(selector: string): Iterable<PageElement>
  elementFromPoint(x: number, y: number): PageElement | null
  createTreeWalker(root: PageElement, what: number): { nextNode(): TextNode | null }
  createRange(): PageRange
}

export interface PageRange {
  selectNodeContents(node: TextNode): void
  setStart(node: TextNode, at: number): void
  setEnd(node: TextNode, at: number): void
  getClientRects(): Iterable<Box>
}
