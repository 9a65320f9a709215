/** The reference was one page once: `/docs#getEmails` now has a page of its own. */
export function openOldAddress(): void {
  if (location.pathname !== "/docs") return
  const name = location.hash.slice(1)
  const selector = `a[href="/docs/${CSS.escape(name)}"]`
  const link = document.getElementById(name)?.querySelector<HTMLAnchorElement>(selector)
  if (link) location.replace(link.href)
}

/** A place inside of what is closed is opened, also where the browser does not do it by itself. */
export function openPlace(): void {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (place instanceof HTMLDetailsElement) place.open = true
}
