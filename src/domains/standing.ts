import { log } from "../core/log"
import type { DomainRow } from "./expected"

export type Standing = Partial<Pick<DomainRow, "provider_identity_status" | "provider_dkim_status">>

/** Undefined: the provider keeps no identities. */
export type AskIdentity = (
  project_id: string,
  domain: string,
) => Promise<Required<Standing> | undefined>

/** What is to be written down of it; nothing, so that it stays, where nobody could be asked. */
export async function standingOf(
  { project_id, domain }: DomainRow,
  ask: AskIdentity | undefined,
): Promise<Standing> {
  if (!ask) return {}
  try {
    const found = await ask(project_id, domain)
    if (!found) return NONE
    const { provider_identity_status, provider_dkim_status } = found
    return { provider_identity_status, provider_dkim_status }
  } catch (error) {
    log.warn("the provider could not be asked about a domain", { project_id, domain, error })
    return {}
  }
}

const NONE = {
  provider_identity_status: "not_required",
  provider_dkim_status: "not_required",
} as const
