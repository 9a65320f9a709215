import { and, asc, eq } from "drizzle-orm"
import { type ApiError, fail, invalid, Problems, tooMany } from "../../core/errors"
import { newId } from "../../core/ids"
import { assertPublic, NetError } from "../../core/net"
import type { Secrets } from "../../core/secrets"
import { noun, type ProjectActor } from "../../identity/noun"
import { maskedText } from "../../providers/credentials"
import { privateKey } from "../../push/providers/vendor"
import { forUpdate } from "../../store/columns"
import { countRows } from "../../store/rows"
import type { Reader, Store } from "../../store/store"
import * as applications from "../applications"
import type { AuthParts } from "../auth-parts"
import { type AuthEnvironment, findEnvironment } from "../environments"
import { ENVIRONMENT_NAMES, type EnvironmentName } from "../tables"
import type { OAuthConfigChange } from "./oauth-provider-schemas"
import { NAMED_PROVIDERS, type OAuthSetup } from "./providers/oauth-adapter"
import { oauthProviders } from "./tables"

type OAuthProviderRow = typeof oauthProviders.$inferSelect

type SetupParts = Pick<AuthParts, "store" | "secrets" | "settings" | "base_url">

/** Of an environment. */
const MOST_PROVIDERS = 20

const noProvider = (): never => fail("not_found", "This provider is not set up.")

const oauthProvider = noun({ name: "oauth_provider", table: oauthProviders, missing: noProvider })

/** Where a browser comes back from a provider. */
export const callbackUrl = (base_url: string, provider: string): string =>
  `${base_url}/v1/auth/oauth/${provider}/callback`

/** The records of the contract, of both environments. */
export async function list(parts: SetupParts, project_id: string, application_id: string) {
  const { read } = parts.store
  const lists = ENVIRONMENT_NAMES.map(async (name) => {
    const { id } = await findEnvironment(read, project_id, application_id, name)
    const rows = await providersOf(read, id).orderBy(asc(oauthProviders.provider))
    return rows.map((row) => toResponse(parts, name, row))
  })
  return (await Promise.all(lists)).flat()
}

const providersOf = (db: Reader, environment_id: string, provider?: string) =>
  db
    .select()
    .from(oauthProviders)
    .where(
      and(
        eq(oauthProviders.environment_id, environment_id),
        provider === undefined ? undefined : eq(oauthProviders.provider, provider),
      ),
    )

function toResponse(
  { secrets, base_url }: Pick<SetupParts, "secrets" | "base_url">,
  environment: EnvironmentName,
  row: OAuthProviderRow,
) {
  const { provider, client_id, scopes, enabled, issuer, updated_at } = row
  const secret = opened(secrets, row, "client_secret")
  return {
    ...{ provider, environment, client_id },
    client_secret: secret === null ? null : maskedText(secret),
    ...{ scopes, enabled, issuer },
    callback_url: callbackUrl(base_url(), provider),
    updated_at,
  }
}

interface ProviderPlace {
  environment: AuthEnvironment
  provider: string
}

/**
 * Replaces what an environment set up at a provider. An absent secret stays. Throws 404 `not_found`, 409 `conflict` at the limit, 422 `invalid_url` for an issuer that may not be asked.
 */
export async function put(
  parts: SetupParts,
  by: ProjectActor,
  { environment, provider }: ProviderPlace,
  wanted: OAuthConfigChange,
) {
  const { store, secrets } = parts
  requireName(provider)
  requireFields(provider, wanted)
  if (wanted.issuer)
    await requireIssuer(wanted.issuer, wayTo(parts.settings, provider).allow_private)
  const application_id = environment.application.id
  const row = await store.tx(async (tx) => {
    await applications.forUpdate(tx, by.project_id, application_id)
    const [before] = await forUpdate(providersOf(tx, environment.id, provider))
    const id = before?.id ?? newId()
    const changes = columnsOf(secrets, { id, before }, wanted)
    if (before) return oauthProvider.update(tx, by, before, changes)
    const others = eq(oauthProviders.environment_id, environment.id)
    if ((await countRows(tx, oauthProviders, others)) >= MOST_PROVIDERS)
      tooMany(`An environment has at most ${MOST_PROVIDERS} providers.`, MOST_PROVIDERS)
    const where = { id, application_id, environment_id: environment.id, provider }
    return oauthProvider.insert(tx, by, { ...where, ...changes })
  })
  return toResponse(parts, environment.name, row)
}

function columnsOf(
  secrets: Secrets,
  { id, before }: { id: string; before: OAuthProviderRow | undefined },
  wanted: OAuthConfigChange,
) {
  const { client_id, scopes = [], enabled, issuer = null } = wanted
  const { team_id = null, key_id = null } = wanted
  const kept = before && opened(secrets, before, "client_secret")
  // A new issuer gets the secret at the next sign-in, so only people that know it may name one.
  if (kept && wanted.client_secret === undefined && before.issuer !== issuer)
    throw invalid("client_secret", "required", "Another issuer needs the secret again.")
  const sealed = (column: SealedColumn, text: string | null | undefined) => {
    if (text === undefined) return before?.[column] ?? null
    return text === null ? null : secrets.seal(text, contextOf(id, column))
  }
  return {
    ...{ client_id, scopes: [...new Set(scopes)], enabled, issuer, team_id, key_id },
    client_secret: sealed("client_secret", wanted.client_secret),
    private_key: sealed("private_key", wanted.private_key),
  }
}

/** Throws 404 `not_found`. Answers the id. */
export const remove = (
  store: Store,
  by: ProjectActor,
  { environment, provider }: ProviderPlace,
): Promise<string> =>
  store.tx(async (tx) => {
    await applications.forUpdate(tx, by.project_id, environment.application.id)
    const [row] = await forUpdate(providersOf(tx, environment.id, provider))
    if (!row) return noProvider()
    await oauthProvider.remove(tx, by, row)
    return row.id
  })

/** Throws 404 `not_found` where the environment has no such provider, or it is not enabled. */
export async function providerConfig(
  { store, secrets, settings }: Pick<AuthParts, "store" | "secrets" | "settings">,
  environment: Pick<AuthEnvironment, "id">,
  provider: string,
): Promise<OAuthSetup> {
  const [row] = await providersOf(store.read, environment.id, provider)
  if (!row?.enabled) return noProvider()
  const { client_id, scopes, issuer, team_id, key_id } = row
  return {
    ...{ provider, client_id, scopes, issuer, team_id, key_id },
    client_secret: opened(secrets, row, "client_secret"),
    private_key: opened(secrets, row, "private_key"),
    ...wayTo(settings, provider),
  }
}

/** Where the instance finds a provider, and what of that may be private. */
function wayTo(settings: AuthParts["settings"], provider: string) {
  const endpoint = settings[`auth.oauth.${provider}.endpoint`] ?? null
  if (endpoint !== null) return { endpoint, allow_private: [new URL(endpoint).hostname] }
  return {
    endpoint,
    allow_private: OIDC.test(provider) ? settings["auth.oauth.allow_private"] : [],
  }
}

type SealedColumn = "client_secret" | "private_key"

const contextOf = (id: string, column: SealedColumn) => `oauth_providers:${id}:${column}`

function opened(secrets: Secrets, row: OAuthProviderRow, column: SealedColumn): string | null {
  const sealed = row[column]
  return sealed === null ? null : secrets.open(sealed, contextOf(row.id, column))
}

const OIDC = /^oidc-[a-z0-9][a-z0-9-]{0,39}$/

/** Throws 404 `not_found` for another word in a path. */
export function requireName(provider: string): void {
  if (OIDC.test(provider) || NAMED_PROVIDERS.some((name) => name === provider)) return
  const text = "A provider is google, apple, github, microsoft, or oidc- and a name of your choice."
  fail("not_found", text)
}

/** Which provider takes a field that not all have. */
const OWN_FIELDS = { issuer: OIDC, team_id: /^apple$/, key_id: /^apple$/, private_key: /^apple$/ }

/** Throws 422. A field that would count for nothing is refused: somebody relies on it. */
function requireFields(provider: string, wanted: OAuthConfigChange) {
  const problems = new Problems()
  for (const [name, takers] of Object.entries(OWN_FIELDS)) {
    if (wanted[name as keyof typeof OWN_FIELDS] && !takers.test(provider))
      problems.add(name, "invalid", `The provider ${provider} has no such field.`)
  }
  if (OIDC.test(provider) && !wanted.issuer)
    problems.add("issuer", "required", "An OpenID Connect provider needs its issuer.")
  if (wanted.private_key && !privateKey(wanted.private_key, "ec"))
    problems.add("private_key", "invalid", "The value must be the PEM of a P-256 key.")
  problems.throwIfAny()
}

const RESOLVE_MS = 3000

/** A name that cannot be resolved now is checked when it is asked, as all are. */
async function requireIssuer(issuer: string, allow_private: string[]): Promise<void> {
  const wrong = (text: string): ApiError => invalid("issuer", "invalid_url", text)
  if (/[?#\s]/.test(issuer)) throw wrong("The issuer must be a URL without a query.")
  try {
    const signal = AbortSignal.timeout(RESOLVE_MS)
    await assertPublic(issuer, { allow_private, tls_outside: true }, signal)
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.kind === "blocked_address")
      throw wrong("The issuer has a private address. auth.oauth.allow_private can allow it.")
    if (error.kind === "invalid_url" || issuer.startsWith("http:"))
      throw wrong("The issuer must be an https:// URL.")
  }
}
