import { fail } from "../core/errors"
import { monotonic } from "../core/time"
import type { Caller } from "../identity/caller"
import { DeferredError } from "../jobs/work-item"
import type { Store } from "../store/store"
import { pause, resume } from "./health"
import type { OpenProviders } from "./open-providers"
import {
  type Fault,
  type Outcome,
  type OutgoingMessage,
  type Provider,
  ProviderBusyError,
  ProviderError,
} from "./provider"
import type { ConfigRow } from "./tables"

export interface TrialSubject {
  caller: Caller
  row: ConfigRow
  project_id: string
}

/** What is done with the opened provider. Resolves with what was found, in words. */
export type Trial = (provider: Provider) => Promise<string>

/**
 * Tries one provider and no other. What shows of its credentials counts: a pause ends or begins. Throws
 * 502 `provider_error` with its words.
 */
export async function tryProvider(
  { store, open_providers }: { store: Store; open_providers: OpenProviders },
  row: ConfigRow,
  trial: Trial,
) {
  const begun = monotonic()
  const detail = await attempt(store, row, () => open_providers.use(row, trial))
  await store.tx((tx) => resume(tx, row))
  return { ok: true as const, duration_ms: Math.round(monotonic() - begun), detail }
}

async function attempt(store: Store, row: ConfigRow, run: () => Promise<string>): Promise<string> {
  try {
    return await run()
  } catch (error) {
    // No room at the moment, which a message would wait for.
    const is_full = error instanceof DeferredError || error instanceof ProviderBusyError
    if (is_full) return refused(row.provider, error.message, "infrastructure")
    if (!(error instanceof ProviderError)) throw error
    const { message, fault } = error
    if (fault === "authentication") await store.tx((tx) => pause(tx, row, message))
    return refused(row.provider, message, fault)
  }
}

const refused = (provider: string, message: string, fault: Fault | "message"): never =>
  fail("provider_error", message, { provider, fault })

/** Goes as far as possible without a message. */
export const checked = async (provider: Provider): Promise<string> =>
  (await provider.check?.()) ?? "This provider needs no login."

/** Sends a message (`a mail`). Resolves with the words of the provider that took it. */
export async function sent<Message extends OutgoingMessage>(
  provider: Provider<Message>,
  message: Message,
  what: string,
): Promise<{ words: string; outcome: Outcome }> {
  const outcome = await provider.send(message)
  const { status, fault, reason, reply } = outcome
  const said = reason ?? reply.response ?? "no reason was given"
  const is_taken = status === "sent" || status === "delivered"
  if (fault) throw new ProviderError(fault, said)
  if (!is_taken) return refused(provider.name, said, "message")
  return { words: `It accepted ${what} to ${message.to[0]}: ${said}`, outcome }
}
