import type { AnyRoute, Call } from "../http/route"
import { type FormFields, type LinkVisit, refusedVisit } from "./recipient-page"
import * as pages from "./unsubscribe-page"

/** A form of one button. */
const SMALL_BYTES = 16_384

/** A form with hundreds of kinds of messages in each of four channels. */
const CHOICES_BYTES = 262_144

/** The pages behind the links of mail. What they show and do follows from the token alone. */
export const unsubscribeRoutes = (parts: pages.UnsubscribePageParts): AnyRoute[] => [
  // Mail providers and companies ask for many recipients from few addresses: only the wide limit holds.
  ...linkRows("/u/{token}", {
    titles: ["Show the page of an unsubscribe link", "Unsubscribe from one kind of mail"],
    description:
      "A mail program posts `List-Unsubscribe=One-Click` (RFC 8058), and people press the button of the page.",
    limit: SMALL_BYTES,
    show: (visit) => pages.showUnsubscribe(parts, visit),
    answer: (visit, form) => pages.answerUnsubscribe(parts, visit, form),
  }),
  ...linkRows("/p/{token}", {
    titles: ["Show the page of a recipient's preferences", "Choose which mail to get"],
    description: "The page posts its own form. The token in the address names the recipient.",
    limit: CHOICES_BYTES,
    show: (visit) => pages.showPreferences(parts, visit),
    answer: (visit, form) => pages.answerPreferences(parts, visit, form),
  }),
]

interface LinkPage {
  /** Of GET, and of POST. */
  titles: [string, string]
  description: string
  limit: number
  show: (visit: LinkVisit) => Promise<Response>
  answer: (visit: LinkVisit, form: FormFields) => Promise<Response>
}

type LinkCall = Call<FormFields, unknown, { token: string }>

function linkRows(path: string, { show, answer, titles, ...own }: LinkPage): AnyRoute[] {
  const open: Omit<AnyRoute, "method" | "handle" | "summary"> = {
    ...{ path, ...own, credentials: ["token"], callers: ["none"], scope: "-", status: [200] },
    ...{ page: refusedVisit, described: true, produces: "text/html" },
  }
  const visitOf = ({ request, params, ip }: LinkCall) => ({ request, token: params.token, ip })
  const get = { ...open, method: "GET" as const, summary: titles[0] }
  const post = { ...open, method: "POST" as const, summary: titles[1] }
  return [
    { ...get, handle: (call: LinkCall) => show(visitOf(call)) },
    { ...post, handle: (call: LinkCall) => answer(visitOf(call), call.body) },
  ]
}
