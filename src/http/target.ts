import ipaddr from "ipaddr.js"
import { ApiError } from "../core/errors"
import { isAddress, isWithin } from "../lib/ip-ranges"
import type { AnyRoute } from "./route"

/**
 * Path and query of a request. The client chooses `Host`, and a name that makes no URL leaves
 * `request.url` a bare path.
 */
function targetOf({ url }: Pick<Request, "url">): string {
  if (url.startsWith("/")) return url
  const path = url.indexOf("/", url.indexOf("://") + 3)
  return path === -1 ? "/" : url.slice(path)
}

/** Without the query. */
export function pathOf(request: Pick<Request, "url">): string {
  const [path = "/"] = targetOf(request).split(/[?#]/, 1)
  return path
}

/** Whether a person follows a link, and no program: the API answers in its own form. */
export const asksForPage = (request: Request): boolean =>
  request.method === "GET" &&
  !/^\/v1(\/|$)/.test(pathOf(request)) &&
  (request.headers.get("accept") ?? "").includes("text/html")

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
 * Several slashes inside it are one: a base URL with a final slash makes them. Guard and router read
 * the same address. The request object stays the same, because the runtime knows its socket by it.
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

/**
 * The caller's address. `X-Forwarded-For` counts only from a trusted proxy: then the right-most
 * address that is not one of them. An IPv4-mapped address is told in its IPv4 form.
 */
export function clientAddress(peer: string, headers: Headers, trusted: string[]): string {
  const direct = plain(peer)
  if (trusted.length === 0 || !isWithin(direct, trusted)) return direct
  const hops = (headers.get("x-forwarded-for") ?? "").split(",").map((hop) => hop.trim())
  for (const hop of hops.reverse()) {
    if (!isAddress(hop)) return direct
    if (!isWithin(hop, trusted)) return plain(hop)
  }
  return direct
}

const plain = (address: string) =>
  address.startsWith("::ffff:") && ipaddr.isValid(address)
    ? ipaddr.process(address).toString()
    : address

type Declared = Pick<AnyRoute, "path" | "credentials">

/** The path as it may be shown: in place of each credential stands its name in the route. */
export function shownPath({ path, credentials = [] }: Declared, given: string): string {
  const names = path.split("/")
  const isCredential = (name: string | undefined) =>
    credentials.some((credential) => name === `{${credential}}`)
  if (!names.some(isCredential)) return given
  const parts = given.split("/")
  return parts.map((part, at) => (isCredential(names[at]) ? names[at] : part)).join("/")
}

/** Whether a path is that of the route as far as its first credential. */
function beginsLike({ path, credentials = [] }: Declared, parts: string[]): boolean {
  const names = path.split("/")
  const first = names.findIndex((name) => credentials.includes(name.slice(1, -1)))
  const begins = names.slice(0, first)
  return first > 0 && begins.every((name, at) => name.startsWith("{") || name === parts[at])
}

/** Each row with the form of its path, and the number of its parameters. */
const shapesOf = (routes: AnyRoute[]) =>
  routes.map(({ method, path }) => {
    const form = path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")
    return { method, path, shape: new RegExp(`^${form}$`), parameters: path.split("{").length - 1 }
  })

/** Methods that a literal path does not have, and a path with a parameter in its place has: the literal wins. */
export function hiddenByLiterals(routes: AnyRoute[]) {
  const shapes = shapesOf(routes)
  return [...Map.groupBy(routes, ({ path }) => path)].flatMap(([path, rows]) => {
    const own = rows.map(({ method }) => method)
    const others = shapes.filter((one) => one.shape.test(path) && !own.includes(one.method))
    return others.map(({ method }) => ({ method, path }))
  })
}

/** Says why there is no answer: no such path, or a path that names its methods in `Allow`. */
export function absence(routes: AnyRoute[]) {
  const shapes = shapesOf(routes)
  return (request: Request): ApiError => {
    const pathname = pathOf(request)
    const found = shapes.filter(({ shape }) => shape.test(pathname))
    const fewest = Math.min(...found.map(({ parameters }) => parameters))
    const literal = found.filter(({ parameters }) => parameters === fewest)
    const allowed = literal.map(({ method }) => method)
    const like = routes.find((one) => beginsLike(one, pathname.split("/")))
    const shown = like ? shownPath(like, pathname) : pathname
    if (allowed.length === 0)
      return new ApiError(
        "not_found",
        `There is no path ${shown}. The reference at /docs has all paths.`,
      )
    const all = [...new Set(allowed.includes("GET") ? [...allowed, "HEAD"] : allowed)].join(", ")
    const message = `${shown} does not accept ${request.method}. It accepts ${all}.`
    return new ApiError("not_found", message, {}, { headers: { allow: all } })
  }
}

/** How a credential of a route looks inside of any text; its first group may be shown. */
export function looksOf({ path, credentials = [] }: Declared): RegExp[] {
  return credentials.map((name) => {
    const [before, after] = path.split(`{${name}}`)
    if (after === undefined) return new RegExp(`([?&]${name}=)[^&#\\s"']+`, "g")
    const start = (before ?? "").replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/\\s]+")
    return new RegExp(`(${start})[^/?#\\s"']+`, "g")
  })
}
