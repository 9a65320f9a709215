/**
 * What a request asks for. `Host` is anybody's word: a server answers for whatever name it was
 * found under, and a name that makes no URL leaves `request.url` a bare path.
 */
export function targetOf({ url }: Pick<Request, "url">): string {
  if (url.startsWith("/")) return url
  const path = url.indexOf("/", url.indexOf("://") + 3)
  return path === -1 ? "/" : url.slice(path)
}

/** Without the query. */
export function pathOf(request: Pick<Request, "url">): string {
  const [path = "/"] = targetOf(request).split(/[?#]/, 1)
  return path
}

/** The query, read as forms are. */
export function queryOf(request: Pick<Request, "url">): URLSearchParams {
  const target = targetOf(request)
  const start = target.indexOf("?")
  return new URLSearchParams(start === -1 ? "" : target.slice(start).split("#", 1)[0])
}

/** The router looks for the path behind this many characters, and takes shorter hosts for paths. */
const SHORTEST_ORIGIN = 11

/** Slashes in a row behind a word of the path. At its beginning they would name a host. */
const REPEATED = /(?<=[^/])\/{2,}/

/**
 * The same request under a host that the router can cut off, and with the path that `..`, `%2e` and
 * `\\` in it lead to. The runtime resolves them itself, but not behind a host that makes no URL.
 * Several slashes inside it are one: a base URL with a final slash makes them. Everybody reads the
 * address from here, so nobody judges another path than the router. The request's socket stays known.
 */
export function routable(request: Request): Request {
  const target = targetOf(request)
  const is_readable = request.url.length - target.length >= SHORTEST_ORIGIN
  const is_plain = !target.includes("#") && !target.includes("//")
  if (is_readable && (is_plain || (!target.includes("#") && !REPEATED.test(pathOf(request))))) {
    return request
  }
  const { pathname, search } = new URL(`http://localhost${target}`)
  const path = pathname.replaceAll(new RegExp(REPEATED, "g"), "/")
  return Object.defineProperty(request, "url", { value: `http://localhost${path}${search}` })
}

/** The runtime joins the values of a header that comes twice; no name of a host has a comma. */
export const hasTwoHosts = ({ headers }: Request): boolean =>
  headers.get("host")?.includes(",") ?? false
