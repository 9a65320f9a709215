import { type Observable, observable } from "./observable"
import { findPage } from "./page-paths"

/** Where the page is: the path, and the query without its question mark. */
interface Position {
  path: string
  query: string
}

export const place: Observable<Position> = observable<Position>({ path: "/", query: "" })

/** Opens a page of the console. With `replace` the way back passes this one by. */
export function navigate(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to)
  else history.pushState(null, "", to)
  readPlace()
  if (!replace) scrollTo(0, 0)
}

/** Follows the address of the tab, and takes over the links that lead to pages of the console. */
export function startRouter(): void {
  readPlace()
  addEventListener("popstate", readPlace)
  document.addEventListener("click", (event) => {
    const link = (event.target as Element | null)?.closest?.("a")
    if (!link || event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (link.target !== "" || link.hasAttribute("download")) return
    if (link.origin !== location.origin || !findPage(link.pathname)) return
    if (link.hash !== "" && link.pathname === location.pathname) return
    event.preventDefault()
    navigate(`${link.pathname}${link.search}${link.hash}`)
  })
}

function readPlace(): void {
  const path = location.pathname
  const query = location.search.slice(1)
  if (place.value.path !== path || place.value.query !== query) place.set({ path, query })
}

/** The code of a one-time link (`/#link=…`). It leaves the address at once, so that nothing keeps it. */
export function takeLinkCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("link")
  if (code === null) return undefined
  history.replaceState(null, "", `${location.pathname}${location.search}`)
  return code
}
