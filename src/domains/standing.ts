import { deadline } from "../core/deadline"
import { log } from "../core/log"
import type { DomainRow } from "./expected"
import type { Place } from "./place"
import type { DkimAlias, ProviderStanding } from "./tables"

/** What a provider that keeps identities thinks of a domain, as it is written down. */
export type Standing = Pick<
  DomainRow,
  "provider_identity_status" | "provider_dkim_status" | "provider_dkim"
>

export interface Identity {
  provider_identity_status: ProviderStanding
  provider_dkim_status: ProviderStanding
  /** None where it does not sign with keys of its own. */
  dkim_aliases: DkimAlias[]
}

/** Undefined: the provider keeps no identities. */
export type AskIdentity = (project_id: string, domain: string) => Promise<Identity | undefined>

interface Asking {
  ask: AskIdentity | undefined
  place: Place
  /** How long somebody waits for it. */
  ms: number
}

/**
 * What is to be written down of it now; nothing, so that it stays, where nobody could be asked within
 * `ms`. Never rejects.
 */
export async function standingOf(
  { project_id, domain }: Pick<DomainRow, "project_id" | "domain">,
  { ask, place, ms }: Asking,
): Promise<Partial<Standing>> {
  if (!ask || !place.keeps_identities) return {}
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

/** Of whoever delivers here: what another provider said, and what nobody asked, does not count. */
export function standingAt(row: Standing, { keeps_identities }: Place): Standing {
  if (!keeps_identities) return NO_STANDING
  const known = (status: ProviderStanding) => (status === "not_required" ? "pending" : status)
  return {
    provider_identity_status: known(row.provider_identity_status),
    provider_dkim_status: known(row.provider_dkim_status),
    provider_dkim: row.provider_dkim,
  }
}

/** Of a domain that no provider was asked about. */
export const NO_STANDING: Standing = {
  provider_identity_status: "not_required",
  provider_dkim_status: "not_required",
  provider_dkim: null,
}
