/** The pages of the console by name; `{name}` in a path is one segment. */
export const PATHS = {
  start: "/",
  mailbox: "/mailbox",
  mail: "/mailbox/{mail_id}",
  inbox: "/inbox",
  "sign-in": "/sign-in",
  parts: "/parts",
} as const

export type PageName = keyof typeof PATHS

export interface FoundPage {
  name: PageName
  params: Record<string, string>
}

export type PageProps = Pick<FoundPage, "params">

/** The page at a path, or undefined where the console has none. */
export function findPage(path: string): FoundPage | undefined {
  for (const [name, pattern] of Object.entries(PATHS)) {
    const form = pattern.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)")
    const found = new RegExp(`^${form}$`).exec(path)
    const params = Object.entries(found?.groups ?? {}).map(([key, text]) => [key, decoded(text)])
    if (found) return { name: name as PageName, params: Object.fromEntries(params) }
  }
  return undefined
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/**
 * The address of `?next=` where it is a page of this server, or the start page: never another server, nor the page
 * that asks.
 */
export function safeNext(next: string | null): string {
  const own = ownPath(next)
  const path = pathOf(own)
  if (path === PATHS["sign-in"]) return PATHS.start
  return findPage(path) || /^\/docs(\/|$)/.test(path) ? own : PATHS.start
}

/** Whether the console itself shows what is at an address. The reference has pages of its own. */
export const isOfConsole = (address: string): boolean => findPage(pathOf(address)) !== undefined

const pathOf = (address: string) => address.split(/[?#]/, 1)[0] ?? ""

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
