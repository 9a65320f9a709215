import { keyIdOf, SecretError, type Secrets } from "../../core/secrets"
import type { CopyFacts } from "../../store/database-copy"

/**
 * Why a copy cannot be used, each as the end of "the copy …": it is damaged, its schema is not that of its
 * migrations, or the key does not open its secrets. None for a sound one.
 */
export function faultsIn(facts: CopyFacts, secrets: Secrets | undefined): string[] {
  if (facts.faults.length > 0) return [`is damaged: ${facts.faults.join("; ")}`]
  const sealed = secrets && sealingFault(facts, secrets)
  return sealed === undefined ? facts.schema : [...facts.schema, sealed]
}

/** One secret tells for all, because the key of each is in its text. */
function sealingFault(facts: CopyFacts, secrets: Secrets): string | undefined {
  const { sealed, master_key_id, next_master_key_id } = facts
  const own = sealed.find(([, value]) => keyIdOf(value) === secrets.key_id)
  const [first] = own ? [own] : sealed
  const fault = first && openingFault(secrets, first)
  const names = [master_key_id, next_master_key_id]
  // In a rotation all that is sealed may need the other key.
  if (names.includes(secrets.key_id)) return own || next_master_key_id === null ? fault : undefined
  // An earlier key, which is still in the data folder, opens an earlier copy.
  if (master_key_id === null || (first && fault === undefined)) return fault
  return `has secrets of the master key ${master_key_id}, but the key here is ${secrets.key_id}`
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

const MOST_LISTED = 10

/** The first ones in one line, and how many more there are. */
export function listed(faults: readonly string[]): string {
  const more = faults.length - MOST_LISTED
  const first = faults.slice(0, MOST_LISTED).join("; ")
  return more > 0 ? `${first}; and ${more} more` : first
}
