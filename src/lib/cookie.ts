/** What a server says with a cookie that only it reads (RFC 6265bis, 4.1). */
export interface HostCookie {
  /** Begins with `__Host-`: no other host and no page over plain HTTP can have set it. */
  name: `__Host-${string}`
  /** Visible characters without comma, semicolon, quotes and backslash. */
  value: string
  /** Seconds until the browser forgets it; 0 forgets it at once. */
  max_age: number
  /** With which requests of other sites it is sent: none without it, those that open a page, or all. */
  same_site?: "Strict" | "Lax" | "None"
}

/** The value of `Set-Cookie`: no script reads the cookie. */
export const setCookie = ({ name, value, max_age, same_site = "Strict" }: HostCookie): string =>
  `${name}=${value}; Path=/; Max-Age=${max_age}; HttpOnly; Secure; SameSite=${same_site}`

/**
 * The value of a cookie in the header `Cookie`; undefined where there is none, and where two of the name
 * came. Only space and tab around the name are dropped: more would make another name into this one.
 */
export function readCookie(header: string | null, name: HostCookie["name"]): string | undefined {
  const found = (header ?? "").split(";").flatMap((pair) => {
    const [, key, value] = /^[ \t]*([^=]*)=(.*?)[ \t]*$/s.exec(pair) ?? []
    return key === name && value !== undefined ? [value] : []
  })
  return found.length === 1 ? found[0] : undefined
}
