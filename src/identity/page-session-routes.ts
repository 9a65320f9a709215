import { Type as t } from "@sinclair/typebox"
import { ApiError } from "../core/errors"
import { log } from "../core/log"
import { requireThisMachine } from "../http/cors"
import {
  type AnyRoute,
  anonymousRow,
  type Call,
  type Method,
  route,
  SHORT_BYTES,
} from "../http/route"
import { type HostCookie, readCookie, setCookie } from "../lib/cookie"
import { answerChallenge, signIn } from "./console-sign-in"
import * as pages from "./page-sessions"
import { Challenged, Credentials, MfaAnswer, PageSession, Success, Token } from "./schemas"
import { clientOf, REFRESH_SECONDS } from "./sessions"

const LinkCode = t.Object({ code: Token })

/**
 * The session of the pages of this server: its refresh token stands in a cookie that no script reads. These
 * routes are no part of the API. Programs use `/v1/session`.
 */
export const pageSessionRoutes = (parts: pages.PageSessionParts): AnyRoute[] => [
  ...entryRoutes(parts),
  route({
    ...own("POST", "/session/token"),
    summary: "Exchange the cookie for an access token",
    response: PageSession,
    handle: async (call) => {
      try {
        return answer(parts, await pages.exchange(parts, cookieOf(parts, call), call.ip))
      } catch (error) {
        throw withoutCookie(parts, error)
      }
    },
  }),
  route({
    ...own("DELETE", "/session"),
    summary: "Sign out",
    response: Success,
    handle: async (call) => {
      await pages.leave(parts, cookieOf(parts, call), call.ip)
      return { data: { success: true as const }, headers: headersOf(parts, "", 0) }
    },
  }),
]

/** Guesses are worth a try here, so that an address has few of them. */
const entryRoutes = (parts: pages.PageSessionParts): AnyRoute[] => [
  route({
    ...anonymousRow("POST", "/session"),
    own_page: true,
    summary: "Sign in with email and password",
    body: Credentials,
    response: t.Union([PageSession, Challenged]),
    handle: async (call) => {
      const found = await signIn(parts, call.body, clientOf(call))
      return "mfa_required" in found
        ? { data: found, headers: NOT_STORED }
        : begin(parts, call, pages.ofPerson(found))
    },
  }),
  route({
    ...anonymousRow("POST", "/session/mfa"),
    own_page: true,
    summary: "Complete a sign-in with a code of the second factor",
    body: MfaAnswer,
    response: PageSession,
    handle: async (call) => {
      const found = await answerChallenge(parts, call.body, clientOf(call))
      return begin(parts, call, pages.ofPerson(found))
    },
  }),
  route({
    ...anonymousRow("POST", "/session/link"),
    own_page: true,
    summary: "Sign in with the link that `belfry up` prints",
    body: LinkCode,
    response: PageSession,
    handle: async (call) => {
      requireThisMachine(call.request, call.ip)
      const kept = await pages.redeem(parts, call.body.code, call.ip)
      log.info("a page signed in with a link", { ip: call.ip })
      return begin(parts, call, kept)
    },
  }),
]

/** Nobody guesses the 256 bits of the cookie. So one IP may send these requests as often as it opens pages. */
const own = <const Path extends string>(method: Method, path: Path) => ({
  method,
  path,
  own_page: true as const,
  callers: ["none" as const],
  scope: "-",
  status: [200] as [number],
  limit: SHORT_BYTES,
})

/** A sign-in never goes on with the cookie that the browser brought: that session ends. */
async function begin(parts: pages.PageSessionParts, call: Asking, kept: pages.KeptSession) {
  await pages.leave(parts, cookieOf(parts, call), call.ip)
  return answer(parts, kept)
}

type Asking = Pick<Call, "request" | "ip">

const answer = (parts: Addressed, { session, token }: pages.KeptSession) => ({
  data: session,
  headers: headersOf(parts, token, REFRESH_SECONDS),
})

const NOT_STORED = { "cache-control": "no-store" }

type Addressed = Pick<pages.PageSessionParts, "base_url">

const headersOf = (parts: Addressed, value: string, max_age: number) => ({
  ...NOT_STORED,
  "set-cookie": setCookie({ name: nameOfCookie(parts), value, max_age }),
})

const cookieOf = (parts: Addressed, { request }: Asking) =>
  readCookie(request.headers.get("cookie"), nameOfCookie(parts))

/** Browsers keep one jar for all ports of a host: by the name, servers side by side have their own. */
function nameOfCookie({ base_url }: Addressed): HostCookie["name"] {
  const { port } = new URL(base_url())
  return port === "" ? "__Host-belfry" : `__Host-belfry-${port}`
}

/** A cookie that opens nothing any more goes. */
function withoutCookie(parts: Addressed, error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== "unauthorized") return error
  const { code, message, details } = error
  return new ApiError(code, message, details, { headers: headersOf(parts, "", 0) })
}
