import type { AuthParts } from "../auth/auth-parts"
import { type AnyRoute, type Call, SHORT_BYTES } from "../http/route"
import { answerLink, showLink } from "./link-pages"
import { type FormFields, refusedVisit } from "./recipient-page"

type LinkCall = Call<FormFields, unknown, { token: string }>

/**
 * The pages behind the links of sign-in mails. What they show and do follows from the token alone. Companies scan mail
 * for many people from few addresses: only the wide limit holds, and nobody guesses a token.
 */
export function linkRoutes(parts: AuthParts): AnyRoute[] {
  const open: Omit<AnyRoute, "method" | "handle" | "summary" | "status"> = {
    ...{ path: "/a/{token}", credentials: ["token"], callers: ["none"], scope: "-" },
    limit: SHORT_BYTES,
    ...{ page: refusedVisit, described: true, produces: "text/html" },
    description:
      "Links to sign in, to verify an address, to reset a password and to accept an invitation lead here. Only the button of the page uses a link up. It sends the browser to the redirect URL with a one-time `code`; without a redirect URL it shows a page.",
  }
  const visitOf = ({ request, params, ip }: LinkCall) => ({ request, token: params.token, ip })
  return [
    {
      ...{ ...open, method: "GET", status: [200] },
      summary: "Show the page of a link in a sign-in mail",
      handle: (call: LinkCall) => showLink(parts, visitOf(call)),
    },
    {
      ...{ ...open, method: "POST", status: [302, 200] },
      summary: "Use a link of a sign-in mail",
      handle: (call: LinkCall) => answerLink(parts, visitOf(call), call.body),
    },
  ]
}
