import { log } from "../../core/log"
import { providerHold } from "../../jobs/holds"
import { DeferredError } from "../../jobs/work"
import type { ConfigRow } from "../../providers/configs"
import { type Refusal, waitingReason } from "../../providers/refusals"
import { PoolBusy } from "../smtp/pool"
import type { Lease } from "./adapters"
import type { Carrying } from "./carrying"
import type { EmailProvider } from "./provider"

const WAIT_SECONDS = 60

/** The providers changed while the message was on its way, so it is not known which one takes it. */
const NO_PROVIDER_NOW = "No provider of this project can be used at the moment. The message waits."

/** Its turn comes when a provider is resumed; who looked again and again would only be in the way. */
export const held = (project_id: string, refusal: Refusal) =>
  new DeferredError(waitingReason(refusal), null, providerHold(project_id))

export const nobody = () => new DeferredError(NO_PROVIDER_NOW, WAIT_SECONDS)

/** One that may be asked; `config` is null for the instance's own. */
export interface Candidate {
  config: ConfigRow | null
  lease: Lease
}

/**
 * Undefined where the next provider has no room: what those before it said must not be lost, or who
 * has the message already would get it twice.
 */
export async function askNext({ lease }: Candidate, carrying: Carrying, is_next: boolean) {
  try {
    return await lease.provider.send(carrying.rest())
  } catch (error) {
    if (!is_next) throw error
    const is_full = error instanceof DeferredError || error instanceof PoolBusy
    if (!is_full)
      log.error("the next provider failed unexpectedly", { provider: lease.provider.name, error })
    return undefined
  }
}

/** Throws DeferredError where none could be opened. */
export function firstOf([first]: Candidate[]): Candidate {
  if (!first) throw nobody()
  return first
}

export type FirstOutcome = Awaited<ReturnType<EmailProvider["send"]>>

export const nameOf = ({ config, lease }: Candidate) =>
  config ? `${config.provider} (${config.name})` : lease.provider.name

/** Failing over must not put a message off for the pace of the second. */
export function hasRoom({ lease }: Candidate): boolean {
  try {
    lease.pace()
    return true
  } catch (error) {
    if (error instanceof DeferredError) return false
    throw error
  }
}

export const asLease = (provider: EmailProvider): Lease => ({
  provider,
  pace: () => {},
  reached: () => {},
  release: () => {},
})
