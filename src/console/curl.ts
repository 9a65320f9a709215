import {
  type AnyInput,
  type ApiRequest,
  type OperationInput,
  type OperationName,
  requestOf,
} from "../client/client"

/** One action, as a terminal and a program do it. */
export interface Command {
  belfry: string
  request: ApiRequest
}

export const commandOf = <Name extends OperationName>(
  belfry: string,
  operation: Name,
  ...[input]: OperationInput<Name>
): Command => ({ belfry, request: requestOf(operation, input as AnyInput | undefined) })

/** The request as a line of curl. The key is a variable of the shell, so that no history has it. */
export function curlOf(request: ApiRequest, origin: string): string {
  const { method, body, headers, accept } = request
  const words = [
    `curl -sS ${method === "GET" ? "" : `-X ${method} `}${quoted(origin + withQuery(request))}`,
    `-H "X-API-Key: $BELFRY_API_KEY"`,
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
    ...(accept === "application/json" ? [] : [SAVED_AS[accept] ?? "-OJ"]),
  ]
  return words.join(" \\\n  ")
}

/** A mail has no name of its own. All other files get the name that the server gives them. */
const SAVED_AS: Record<string, string> = { "message/rfc822": "-o mail.eml" }

export function withQuery({ path, query }: ApiRequest): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value))
  }
  return search.size === 0 ? path : `${path}?${search}`
}

/** One word of a POSIX shell; plain words stay as they are. */
export const quoted = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
