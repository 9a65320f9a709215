import { and, eq, inArray } from "drizzle-orm"
import { fail } from "../core/errors"
import { issueLink } from "../sign-in/links"
import { newToken, type TokenKind } from "../sign-in/tokens"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import type { MailType } from "./environment-settings"
import type { AuthEnvironment } from "./environments"
import { type LinkKind, userLinks } from "./tables"

/** How long the links of mails work (contract 50, section 1), and what mails them. */
export const LINKS = {
  magic_link: { token: "magic", mail: "magic_link", seconds: 900 },
  verify_email: { token: "verify", mail: "verify_email", seconds: 86_400 },
  password_reset: { token: "reset", mail: "password_reset", seconds: 900 },
  invitation: { token: "invitation", mail: "invitation", seconds: 7 * 86_400 },
  organization_invitation: {
    token: "invitation",
    mail: "organization_invitation",
    seconds: 7 * 86_400,
  },
} as const satisfies Partial<
  Record<LinkKind, { token: TokenKind; mail: MailType; seconds: number }>
>

export interface LinkWish {
  kind: keyof typeof LINKS
  to: { email: string; name?: string | null; locale?: string | null }
  redirect_url?: string | null | undefined
  /** What the sign-in with it does. */
  purpose?: string | null
  /** Of an organization. */
  invitation_id?: string
  /** For the mail, beside the link. */
  variables?: Record<string, string | null>
}

/** A mail with a link. Its token works from when it is accepted, which resolves with the id of the message. */
export interface MailedLink {
  accept(tx: Tx, user_id: string | null): Promise<string>
}

/** Renders a mail with a link for the page of this server. Throws 503 `email_not_configured`. */
export async function prepareLink(
  { mail, base_url }: Pick<AuthParts, "mail" | "base_url">,
  environment: AuthEnvironment,
  { kind, to, redirect_url = null, purpose = null, invitation_id, variables }: LinkWish,
): Promise<MailedLink> {
  const { token: form, mail: type, seconds } = LINKS[kind]
  const token = newToken(form)
  const link = `${base_url()}/a/${token}`
  const letter = await mail.prepare(environment, {
    ...{ type, to, ends_in_seconds: seconds },
    variables: { ...variables, link },
  })
  return {
    async accept(tx, user_id) {
      const message_id = await letter.accept(tx)
      const { id: environment_id, project_id } = environment
      const about = { email: to.email, redirect_url, purpose, invitation_id, message_id }
      const columns = { project_id, environment_id, kind, user_id, ...about }
      await issueLink(tx, userLinks, { kind: form, seconds, token }, columns)
      return message_id
    },
  }
}

/** Selects the links of an environment that have one of the named kinds. */
export const linksAmong = ({ id, project_id }: AuthEnvironment, ...kinds: LinkKind[]) =>
  and(
    eq(userLinks.project_id, project_id),
    eq(userLinks.environment_id, id),
    inArray(userLinks.kind, kinds),
  )

export const expiredLink = () =>
  fail("otp_expired", "This link has expired or was used already. Ask for a new one.")
