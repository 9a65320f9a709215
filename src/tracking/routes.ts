import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { type AnyRoute, anonymousRow, type Call } from "../http/route"
import { refusalPage } from "../pages/small-page"
import type { Hits } from "./hits"
import { readClickToken, readOpenToken, TOKEN_PURPOSE, tokenKeys } from "./tracking-tokens"

export interface TrackingParts {
  secrets: Secrets
  hits: Pick<Hits, "add">
}

type OfToken = Call<unknown, unknown, { token: string }>

/** What mail programs and browsers ask for. Any host name may lead here. */
export function trackingRoutes({ secrets, hits }: TrackingParts): AnyRoute[] {
  const keys = () => tokenKeys(secrets.mac(TOKEN_PURPOSE, "v1"))
  const note = (
    { request, ip }: OfToken,
    type: "open" | "click",
    { message_id, url }: { message_id: string; url: string | null },
  ) => {
    if (request.method !== "HEAD") hits.add({ type, message_id, url, request, ip })
  }
  return [
    {
      ...row("/t/o/{token}"),
      summary: "The picture that reports an opening",
      description:
        "Mail programs fetch it from a mail with tracking. A wrong token gets the same picture.",
      page: () => picture(), // whatever is wrong, a mail shows no broken picture
      produces: "image/gif",
      handle: (call: OfToken) => {
        const message_id = readOpenToken(keys(), call.params.token)
        if (message_id !== undefined) note(call, "open", { message_id, url: null })
        return picture()
      },
    },
    {
      ...row("/t/c/{token}"),
      status: [302],
      summary: "A link that reports a click, and leads to its target",
      description:
        "The signed token names the mail and the target. No other address can be reached by it.",
      page: refusalPage,
      produces: "text/html",
      handle: (call: OfToken) => {
        const found = readClickToken(keys(), call.params.token)
        if (!found) return fail("not_found", NOT_OURS)
        note(call, "click", found)
        return redirect(found.url)
      },
    },
  ]
}

const NOT_OURS = "This link is not valid. Copy the whole link from the email."

/** Pictures and links have 6,000 requests a minute of one address each. */
function row(path: string) {
  const { per_minute: _, ...plain } = anonymousRow("GET", path)
  return { ...plain, credentials: ["token"], unlogged: true as const, described: true as const }
}

const NEVER_KEPT = { "cache-control": "no-store", "x-robots-tag": "noindex" }

/** A transparent GIF of 1 × 1. */
const GIF = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64")

const picture = () =>
  new Response(GIF, {
    headers: {
      ...NEVER_KEPT,
      "content-type": "image/gif",
      "cross-origin-resource-policy": "cross-origin",
      "x-content-type-options": "nosniff",
    },
  })

const redirect = (url: string) =>
  new Response(null, {
    status: 302,
    headers: { ...NEVER_KEPT, location: locationOf(url), "referrer-policy": "no-referrer" },
  })

/** As it was written, where a header can hold it; else as a browser would ask for it. */
const locationOf = (url: string) => (/^[!-~]+$/.test(url) ? url : new URL(url).href)
