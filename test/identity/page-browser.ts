import { type Ask, client } from "../harness/client"
import type { TestService } from "../harness/service"

/** As browsers send it with a request of a page to its own server. */
export const SAME_ORIGIN = {
  origin: "http://belfry.test",
  "sec-fetch-site": "same-origin",
  "x-belfry-csrf": "1",
}

let last_address = 0

/** A browser with one cookie, from an address of its own, that shows a page of this server. */
export function pageBrowser({ app }: TestService, cookie = "") {
  const plain = client(app, undefined)
  last_address += 1
  const ip = `198.52.${last_address >> 8}.${last_address & 255}`
  const jar = { cookie }

  /** What one tab sends; the browser keeps the cookie that comes back. */
  async function call(method: string, path: string, { headers, ...ask }: Ask = {}) {
    const own = jar.cookie === "" ? {} : { cookie: `theme=dark; __Host-belfry=${jar.cookie}` }
    const all = { "x-forwarded-for": ip, ...SAME_ORIGIN, ...own, ...headers }
    const reply = await plain.call(method, path, { ...ask, headers: all })
    jar.cookie = cookieIn(reply.headers) ?? jar.cookie
    return reply
  }

  return {
    jar,
    call,
    signIn: (email: string, password: string) =>
      call("POST", "/session", { body: { email, password } }),
    exchange: (headers = {}) => call("POST", "/session/token", { headers }),
    signOut: () => call("DELETE", "/session"),
    /** As a page does: with the access token, and without the cookie's help. */
    me: (token: string) => plain.call("GET", "/v1/session", { headers: bearer(token) }),
    api: (path: string, token: string) => plain.call("GET", path, { headers: bearer(token) }),
  }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Undefined where the answer sets none. */
export const cookieIn = (headers: Headers): string | undefined =>
  /^__Host-belfry=([^;]*);/.exec(headers.get("set-cookie") ?? "")?.[1]
