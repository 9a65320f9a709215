const ANYWHERE = "http://page.invalid"

/**
 * The path, query and fragment that an address parameter such as `next` may lead to: one of this server.
 * `/` for everything that a browser would take elsewhere: other hosts, other schemes, `//host`, `/\host`.
 */
export function ownPath(text: string | null | undefined): string {
  if (!text?.startsWith("/") || !URL.canParse(text, ANYWHERE)) return "/"
  const { origin, pathname, search, hash } = new URL(text, ANYWHERE)
  // A browser drops tabs and line ends and resolves dots, so that the text itself is not compared.
  return origin === ANYWHERE && !pathname.startsWith("//") ? `${pathname}${search}${hash}` : "/"
}
