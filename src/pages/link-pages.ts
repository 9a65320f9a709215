import type { AuthParts } from "../auth/auth-parts"
import { followLink, type OpenedMailLink, openMailLink } from "../auth/link-visits"
import { resetPassword } from "../auth/password-reset"
import { clientOf } from "../auth/sign-in"
import { ApiError } from "../core/errors"
import { html, type Markup, unkept } from "./html"
import { LINK_WORDS, type LinkWords } from "./link-words"
import {
  type FormFields,
  type LinkVisit,
  lookOf,
  notValid,
  type PageLook,
  recipientPage,
} from "./recipient-page"
import { fieldMarkup } from "./small-page"

/** A link that is known, and how its pages look and read for the visitor. */
interface SeenLink {
  link: OpenedMailLink
  look: PageLook
  words: LinkWords
}

async function behindLink(
  { store }: AuthParts,
  { request, token }: LinkVisit,
  show: (seen: SeenLink) => Response | Promise<Response>,
): Promise<Response> {
  const link = await openMailLink(store.read, token)
  if (!link) return notValid(request)
  const look = lookOf(request, link.branding)
  return show({ link, look, words: LINK_WORDS[look.language] })
}

/** Looking changes nothing: scanners of mail follow links. */
export const showLink = (parts: AuthParts, visit: LinkVisit): Promise<Response> =>
  behindLink(parts, visit, (seen) => (seen.link.works ? question(seen) : over(seen, 404)))

/** Does what the link is for, once. The browser is sent on to the application where the link has its address. */
export const answerLink = (
  parts: AuthParts,
  visit: LinkVisit,
  { new_password = "" }: FormFields,
): Promise<Response> =>
  behindLink(parts, visit, async (seen) => {
    const { link, words } = seen
    try {
      if (isForm(link)) {
        await resetPassword(parts, link.environment, { ...visit, new_password }, clientOf(visit))
        return done(seen, words.changed, words.sign_in_now)
      }
      const location = await followLink(parts, link, visit.ip)
      if (location === null) return done(seen, words.verified, words.close)
      return new Response(null, { status: 302, headers: { ...unkept, location } })
    } catch (error) {
      const code = error instanceof ApiError ? error.code : undefined
      if (code === "otp_expired") return over(seen, 422)
      if (code === "weak_password") return question(seen, needsOf(seen))
      if (code === "password_recently_used") return question(seen, words.used_before)
      throw error
    }
  })

/** Where the application has no page for it, the new password is typed here. */
const isForm = ({ kind, redirect_url }: OpenedMailLink) =>
  kind === "password_reset" && redirect_url === null

const needsOf = ({ link, words }: SeenLink) =>
  words.needs(link.environment.settings.password_policy.min_length)

function question(seen: SeenLink, problem?: string): Response {
  const { link, look, words } = seen
  const { title, go } =
    link.kind === "organization_invitation" ? words.invitation : words[link.kind]
  const content = html`
<p>${aboutOf(seen)}</p>
${problem && html`<p class="complaint" role="alert">${problem}</p>`}
<form method="post" action="?lang=${look.language}">
${isForm(link) && passwordField(seen)}
<button class="go">${isForm(link) ? words.save : go}</button>
</form>`
  const form_target = link.redirect_url === null ? undefined : sourceOf(link.redirect_url)
  return recipientPage(look, { title, content, status: problem ? 422 : 200, form_target })
}

function aboutOf({ link, words }: SeenLink): Markup {
  const app = html`<bdi>${link.branding.name}</bdi>`
  const address = html`<bdi dir="ltr">${link.email}</bdi>`
  if (link.kind !== "organization_invitation") return words[link.kind].about(app, address)
  if (link.organization === null) return words.invitation.about(app, address)
  return words.join(html`<bdi>${link.organization}</bdi>`, app, address)
}

/** The hidden address tells password managers whose password it is. */
const passwordField = (seen: SeenLink): Markup => html`
<input type="hidden" name="email" autocomplete="username" value="${seen.link.email}">
${fieldMarkup({
  name: "new_password",
  label: seen.words.new_password,
  type: "password",
  autocomplete: "new-password",
  hint: needsOf(seen),
})}`

/** As a policy of a page writes it. It has no word for an application on a phone, nor for an IPv6 address. */
function sourceOf(redirect_url: string): string {
  const { origin, protocol } = new URL(redirect_url)
  return protocol === "https:" ? origin : protocol
}

const over = ({ look, words }: SeenLink, status: number): Response =>
  recipientPage(look, {
    title: words.expired,
    content: html`<p>${words.ask_again}</p>`,
    status,
  })

const done = ({ look }: SeenLink, title: string, text: string): Response =>
  recipientPage(look, { title, content: html`<p>${text}</p>` })
