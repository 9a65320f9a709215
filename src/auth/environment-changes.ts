import { and, eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import { Problems } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { now } from "../core/time"
import { requireSendable, type SendRules } from "../emails/prepare"
import type { Caller } from "../identity/caller"
import { domainOf } from "../lib/address"
import { fieldsOf } from "../lib/record-fields"
import { maskedText } from "../providers/credentials"
import { forUpdate } from "../store/columns"
import type { Tx } from "../store/store"
import * as applications from "./applications"
import { Environment, type EnvironmentChange, GROUPS } from "./environment-input"
import { type EnvironmentSettings, MAIL_TYPES, type MailType } from "./environment-settings"
import { type AuthEnvironment, findEnvironment, noEnvironment } from "./environments"
import { requireMailTemplate } from "./mail-templates"
import { readOrigins, readRedirects } from "./redirects"
import { type EnvironmentName, environments } from "./tables"

/** The record of the contract. The secret of the captcha shows its end. */
export const toResponse = ({ name, default_organization_id, settings }: AuthEnvironment) => {
  const none = Object.fromEntries(MAIL_TYPES.map((type) => [type, null]))
  return fieldsOf(Environment, {
    ...settings,
    templates: { ...none, ...settings.templates },
    ...{ name, status: "active", default_organization_id },
  })
}

/** Throws what a send does whose sender has this domain; in `test`, everything goes to the embedded mailbox. */
export async function requireSender(
  rules: SendRules,
  caller: Caller,
  name: EnvironmentName,
  { sender }: EnvironmentChange,
): Promise<void> {
  if (sender && name !== "test") await requireSendable(rules, caller, domainOf(sender.email), [])
}

/**
 * Changes settings of an environment: what is absent stays, null is the default again. Throws 422 `invalid_url` and
 * `invalid_template`, 404 `template_not_found`.
 */
export async function change(
  tx: Tx,
  { caller, secrets }: { caller: Caller; secrets: Secrets },
  { application_id, name }: { application_id: string; name: EnvironmentName },
  wanted: EnvironmentChange,
): Promise<AuthEnvironment> {
  const { project_id, account_id } = caller
  const application = await applications.forUpdate(tx, project_id, application_id)
  const own = and(eq(environments.application_id, application.id), eq(environments.name, name))
  const [row] = await forUpdate(tx.select().from(environments).where(own))
  if (!row) return noEnvironment()
  requireAddresses(wanted, application)
  const { captcha } = wanted
  const given = {
    ...wanted,
    ...(captcha && { captcha: { ...captcha, secret: maskedText(captcha.secret) } }),
    ...(wanted.templates && { templates: await templateIds(tx, project_id, wanted.templates) }),
  }
  const settings = merged(row.settings, given)
  const captcha_secret = captcha && secrets.seal(captcha.secret, contextOf(row.id))
  const { passkey_rp_id = null } = settings
  const changes = {
    ...{ settings, passkey_rp_id },
    ...(captcha_secret !== undefined && { captcha_secret }),
  }
  await tx
    .update(environments)
    .set({ ...changes, updated_at: now() })
    .where(own)
  const before = { name, ...row.settings }
  const after = { name, ...settings }
  const target = { type: "environment", id: row.id }
  const action = "environment.updated"
  await audit.record(tx, caller, { account_id, project_id, action, target, before, after })
  return findEnvironment(tx, project_id, application.id, name)
}

function requireAddresses(
  { allowed_origins, redirect_urls }: EnvironmentChange,
  { type }: Pick<AuthEnvironment["application"], "type">,
) {
  const problems = new Problems()
  readOrigins(allowed_origins ?? [], "allowed_origins", problems, type)
  readRedirects(redirect_urls ?? [], "redirect_urls", problems, type)
  problems.throwIfAny()
}

/** The templates by their ids, each locked. */
async function templateIds(
  tx: Tx,
  project_id: string,
  given: Partial<Record<MailType, string | null>>,
): Promise<Partial<Record<MailType, string | null>>> {
  const ids: Partial<Record<MailType, string | null>> = {}
  for (const [type, name] of Object.entries(given) as [MailType, string | null][])
    ids[type] = name === null ? null : await requireMailTemplate(tx, project_id, type, name)
  return ids
}

/** Only what differs from the defaults of its time is kept. */
function merged(
  stored: Partial<EnvironmentSettings>,
  wanted: EnvironmentChange,
): Partial<EnvironmentSettings> {
  const groups = GROUPS.filter((name) => wanted[name]).map((name) => [
    name,
    withoutNulls({ ...stored[name], ...wanted[name] }),
  ])
  return withoutNulls({ ...stored, ...wanted, ...Object.fromEntries(groups) })
}

const withoutNulls = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

/** The context in which the secret of an environment's captcha is sealed. */
export const contextOf = (environment_id: string) =>
  `auth_environments:${environment_id}:captcha_secret`
