import { refuse } from "../identity/authenticate"
import { isForBrowsers } from "./cors"
import type { AnyRoute } from "./route"
import { offeredTokens } from "./sockets"

/** What a request shows of its caller. */
export interface ShownCredentials {
  secret: string | null
  public_key: string | null
  credential: string | undefined
}

interface CredentialBearer {
  route: AnyRoute
  request: Request
}

/** Throws 401 for two of a kind that differ. */
export const shownCredentials = (asking: CredentialBearer): ShownCredentials => ({
  secret: asking.request.headers.get("x-application-secret"),
  public_key: publicKeyOf(asking),
  credential: credentialOf(asking),
})

/**
 * Whether the row lets the request in as anybody's. A browser's program may send a credential there, and is known
 * by it then. On a socket it does so later.
 */
export function isAnybodys({ route, request: { headers } }: CredentialBearer) {
  if (!route.callers.includes("none")) return false
  const is_named = CREDENTIALS.some((name) => headers.has(name))
  return route.socket !== undefined || !isForBrowsers(route) || !is_named
}

const CREDENTIALS = ["authorization", "x-api-key", "x-application-key", "x-application-secret"]

export const isKey = (credential: string) => credential.startsWith("svc_")

/**
 * One credential, in either header, and for a WebSocket also among its protocols. Two that differ are
 * none; undefined where there is none.
 */
export function credentialOf({ route, request }: CredentialBearer): string | undefined {
  const { headers } = request
  const key = headers.get("x-api-key")
  const [offered, ...others] = route.socket ? offeredTokens(request) : []
  if (others.length > 0) return refuse()
  const authorization =
    headers.get("authorization") ?? (offered === undefined ? null : `Bearer ${offered}`)
  if (offered !== undefined && authorization !== `Bearer ${offered}`) return refuse()
  if (authorization === null) return key === null || isKey(key) ? (key ?? undefined) : refuse()
  const bearer = /^Bearer +(\S+)$/i.exec(authorization)?.[1]
  if (bearer === undefined || (key !== null && key !== bearer)) return refuse()
  return bearer
}

/** A link has no headers, so a route may take the key in its query. Two that differ are none. */
function publicKeyOf(asking: CredentialBearer): string | null {
  const sent = asking.request.headers.get("x-application-key")
  const named = asked(asking, "application_key")
  return sent !== null && named && sent !== named ? refuse() : (sent ?? named ?? null)
}

type Asked = "account_id" | "project_id" | "application_key"

/** What stands in the query, where the route has such a parameter. */
export const asked = ({ route, request }: CredentialBearer, name: Asked) =>
  route.query?.properties[name] ? new URL(request.url).searchParams.get(name) : undefined
