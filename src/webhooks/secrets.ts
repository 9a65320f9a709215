import type { Secrets } from "../core/secrets"
import { millis, millisFrom } from "../core/time"
import type { webhooks } from "./tables"

type Sealed = Pick<
  typeof webhooks.$inferSelect,
  "id" | "secret" | "previous_secret" | "previous_secret_expires_at"
>

/** One for both columns, so that a rotation moves the sealed text as it is. */
export const secretContext = (webhook_id: string): string => `webhooks:${webhook_id}:secret`

/** What signs a delivery now: the current secret, then the one before it while it still counts. */
export function secretsOf(secrets: Secrets, webhook: Sealed): [string, ...string[]] {
  const { id, secret, previous_secret, previous_secret_expires_at } = webhook
  const current = secrets.open(secret, secretContext(id))
  const until = previous_secret_expires_at
  if (previous_secret === null || until === null || millisFrom(until) <= millis()) return [current]
  return [current, secrets.open(previous_secret, secretContext(id))]
}
