import { SecretError, type Secrets } from "../../core/secrets"
import type { CopyFacts } from "../../store/database-copy"

/**
 * Why a copy cannot be used, as the end of "the copy …": it is damaged, or the key does not open its secrets.
 * Undefined for a sound one. One secret tells for all, because the key of each is in its text.
 */
export function faultIn(facts: CopyFacts, secrets: Secrets | undefined): string | undefined {
  const { faults, sealed, master_key_id } = facts
  if (faults.length > 0) return `is damaged: ${faults.join("; ")}`
  if (!secrets) return undefined
  if (master_key_id !== null && master_key_id !== secrets.key_id) {
    return `has secrets of the master key ${master_key_id}, but the key here is ${secrets.key_id}`
  }
  const [first] = sealed
  return first && openingFault(secrets, first)
}

function openingFault(secrets: Secrets, [name, value]: [string, string]): string | undefined {
  try {
    secrets.open(value, name)
    return undefined
  } catch (error) {
    if (!(error instanceof SecretError)) throw error
    return `has a secret (${name}) that the master key does not open. ${error.message}`
  }
}
