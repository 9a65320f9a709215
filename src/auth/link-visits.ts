import { and, eq, inArray } from "drizzle-orm"
import { isPast } from "../core/time"
import { withDefaults } from "../identity/caller"
import { type Branding, projects } from "../identity/tables"
import { issueLink, takeLink } from "../sign-in/links"
import { hashOfToken } from "../sign-in/tokens"
import type { Reader } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { confirmByToken } from "./email-verification"
import { type AuthEnvironment, environmentById } from "./environments"
import { expiredLink, LINKS } from "./mailed-links"
import { invitedTo } from "./organizations/taken-invitations"
import { userLinks } from "./tables"

export type MailedKind = keyof typeof LINKS

/** A link of a sign-in mail that somebody opened. */
export interface OpenedMailLink {
  kind: MailedKind
  token: string
  email: string
  redirect_url: string | null
  /** False once it was used or has expired. */
  works: boolean
  environment: AuthEnvironment
  /** The name of the organization that it invites to; null for Default, and for other links. */
  organization: string | null
  /** Of the project; what it leaves open is the application's. */
  branding: Branding
  row: typeof userLinks.$inferSelect
}

/** Looking changes nothing. Undefined for a token that no mail has, and for one that is long over. */
export async function openMailLink(db: Reader, token: string): Promise<OpenedMailLink | undefined> {
  const mailed = inArray(userLinks.kind, Object.keys(LINKS) as MailedKind[])
  const [found] = await db
    .select({ row: userLinks, settings: projects.settings })
    .from(userLinks)
    .innerJoin(projects, eq(projects.id, userLinks.project_id))
    .where(and(eq(userLinks.token_hash, hashOfToken(token)), mailed))
  const environment = found && (await environmentById(db, found.row.environment_id))
  if (!found || !environment) return undefined
  const { row, settings } = found
  const { branding } = withDefaults(settings)
  const { name, logo_url } = environment.application
  const look = { name: branding.name ?? name, logo_url: branding.logo_url ?? logo_url }
  const place = await invitedTo(db, environment, row)
  const works = row.used_at === null && !isPast(row.expires_at) && place.works
  return {
    ...{ kind: row.kind as MailedKind, token, works, environment, row },
    organization: place.name,
    ...{ email: row.email, redirect_url: row.redirect_url },
    branding: { ...branding, ...look },
  }
}

/** What the page of a link hands to the application in the redirect, and for how many seconds it works. */
const HANDED = {
  magic_link: { kind: "magic_link_code", seconds: 60 },
  password_reset: { kind: "password_reset_code", seconds: 900 },
  invitation: { kind: "invitation_code", seconds: 900 },
  organization_invitation: { kind: "organization_invitation_code", seconds: 900 },
} as const

/**
 * Uses up a link, and returns the address at which the application goes on, with a code that works once. Null where
 * the link did its work and leads nowhere. Throws 422 `otp_expired`; of two at once, one gets the code.
 */
export async function followLink(
  parts: AuthParts,
  { kind, token, redirect_url, environment, row }: OpenedMailLink,
  ip: string,
): Promise<string | null> {
  if (kind === "verify_email") {
    await confirmByToken(parts, environment, token, ip)
    return redirect_url
  }
  if (redirect_url === null) return null
  const { seconds, kind: handed } = HANDED[kind]
  const code = await parts.store.tx(async (tx) => {
    if (!(await takeLink(tx, userLinks, token))) expiredLink()
    return issueLink(tx, userLinks, { kind: "code", seconds }, { ...row, kind: handed })
  })
  const url = new URL(redirect_url)
  url.searchParams.set("code", code)
  return url.href
}
