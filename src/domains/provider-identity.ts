import { deadline } from "../core/deadline"
import { log } from "../core/log"
import type { DomainRow, RecordTargets } from "./expected-records"
import type { DkimAlias, ProviderStanding } from "./tables"

/** What a provider that keeps identities thinks of a domain, as it is written down. */
export type IdentityColumns = Pick<
  DomainRow,
  "provider_identity_status" | "provider_dkim_status" | "provider_dkim"
>

interface ProviderIdentity {
  provider_identity_status: ProviderStanding
  provider_dkim_status: ProviderStanding
  /** Empty where the provider does not sign with its own keys. */
  dkim_aliases: DkimAlias[]
}

/** Undefined: the provider keeps no identities. */
export type AskIdentity = (
  project_id: string,
  domain: string,
) => Promise<ProviderIdentity | undefined>

interface Asking {
  ask: AskIdentity | undefined
  targets: RecordTargets
  ms: number
}

/**
 * The columns to write after asking the provider. An empty object keeps the old ones: the provider
 * keeps no identities, or gave no answer within `ms`. Never rejects.
 */
export async function askProvider(
  { project_id, domain }: Pick<DomainRow, "project_id" | "domain">,
  { ask, targets, ms }: Asking,
): Promise<Partial<IdentityColumns>> {
  if (!ask || !targets.keeps_identities) return {}
  const late = Promise.withResolvers<never>()
  const drop = deadline(ms, () => late.reject(new Error(`no answer in ${ms} ms`)))
  try {
    const found = await Promise.race([ask(project_id, domain), late.promise])
    if (!found) return {}
    const { dkim_aliases, ...statuses } = found
    return { ...statuses, provider_dkim: dkim_aliases.length > 0 ? dkim_aliases : null }
  } catch (error) {
    log.warn("the provider could not be asked about a domain", { project_id, domain, error })
    return {}
  } finally {
    drop()
  }
}

/** What an answer shows. A provider without identities counts as `not_required`. */
export function identityShown(
  row: IdentityColumns,
  { keeps_identities }: RecordTargets,
): IdentityColumns {
  if (!keeps_identities) return NO_IDENTITY
  const known = (status: ProviderStanding) => (status === "not_required" ? "pending" : status)
  return {
    provider_identity_status: known(row.provider_identity_status),
    provider_dkim_status: known(row.provider_dkim_status),
    provider_dkim: row.provider_dkim,
  }
}

/** Of a domain that no provider was asked about. */
export const NO_IDENTITY: IdentityColumns = {
  provider_identity_status: "not_required",
  provider_dkim_status: "not_required",
  provider_dkim: null,
}
