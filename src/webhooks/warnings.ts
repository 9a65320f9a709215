import { log } from "../core/log"
import type { WebhookRow } from "./record"

type Looked = Pick<WebhookRow, "url" | "unresolved_at" | "last_success_at">

/** What is odd about an endpoint that was taken all the same. */
export interface WebhookWarning {
  code: "host_not_resolved"
  message: string
}

/** Empty where the name had an address when it was last looked up. */
export function warningsOf({ url, unresolved_at, last_success_at }: Looked): WebhookWarning[] {
  if (unresolved_at === null) return []
  if (last_success_at !== null && last_success_at >= unresolved_at) return []
  const message =
    `The host ${new URL(url).hostname} does not resolve. Deliveries fail with \`dns\` until it ` +
    "resolves. Check the name and its DNS records."
  return [{ code: "host_not_resolved", message }]
}

/** For the person who reads the log, because the maker of the endpoint may not look at the answer. */
export function logWarnings(webhook: { id: string; warnings: WebhookWarning[] }): void {
  for (const { message } of webhook.warnings) log.warn(message, { webhook_id: webhook.id })
}
