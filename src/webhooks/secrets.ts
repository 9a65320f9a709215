import type { Secrets } from "../core/secrets"
import { millis, millisFrom } from "../core/time"
import type { webhooks } from "./tables"

type Sealed = Pick<
  typeof webhooks.$inferSelect,
  "id" | "secret" | "previous_secret" | "previous_secret_expires_at"
>

/** One for both columns, so that a rotation moves the sealed text as it is. */
export const secretContext = (webhook_id: string): string => `webhooks:${webhook_id}:secret`

/**
 * What signs a delivery at the moment of the call: the current secret, then the one before it while
 * that still counts. They are opened at the first call, which throws for another master key.
 */
export function opener(secrets: Secrets, webhook: Sealed): () => [string, ...string[]] {
  const { id, secret, previous_secret, previous_secret_expires_at } = webhook
  const until = previous_secret_expires_at === null ? 0 : millisFrom(previous_secret_expires_at)
  const open = (sealed: string) => secrets.open(sealed, secretContext(id))
  let current: string | undefined
  let previous: string | undefined
  return () => {
    current ??= open(secret)
    if (previous_secret === null || until <= millis()) return [current]
    previous ??= open(previous_secret)
    return [current, previous]
  }
}
