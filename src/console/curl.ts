import type { ApiRequest } from "../client/client"

/** The request as a line of curl. The key is a variable of the shell, so that no history has it. */
export function curlOf(
  {
    method,
    path,
    query,
    body,
    headers,
    accept,
  }: Omit<ApiRequest, "headers"> & {
    headers?: ApiRequest["headers"]
  },
  origin: string,
): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value))
  }
  const url = `${origin}${path}${search.size === 0 ? "" : `?${search}`}`
  const words = [
    `curl -sS ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`,
    `-H "X-API-Key: $BELFRY_API_KEY"`,
    ...Object.entries(headers ?? {}).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
    ...(accept === "application/json" ? [] : [SAVED_AS[accept] ?? "-OJ"]),
  ]
  return words.join(" \\\n  ")
}

/** A mail has no name of its own. All other files get the name that the server gives them. */
const SAVED_AS: Record<string, string> = { "message/rfc822": "-o mail.eml" }

/** One word of a POSIX shell; plain words stay as they are. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
