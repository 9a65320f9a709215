import type { AnyRoute } from "./route"

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

/** As `shownPath`, for a path that no route answers: one that begins like a route's is masked. */
export function shownAnyway(routes: readonly Declared[], given: string): string {
  const route = routes.find((one) => beginsLike(one, given.split("/")))
  return route ? shownPath(route, given) : given
}

/** Whether a path is that of the route as far as its first credential. */
function beginsLike({ path, credentials = [] }: Declared, parts: string[]): boolean {
  const names = path.split("/")
  const first = names.findIndex((name) => credentials.includes(name.slice(1, -1)))
  const begins = names.slice(0, first)
  return first > 0 && begins.every((name, at) => name.startsWith("{") || name === parts[at])
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
