import type { SystemMail } from "../identity/system-mail"
import { enqueue, type JobHandler, type JobKind } from "../jobs/jobs"
import type { Store, Tx } from "../store/store"
import { mailAdmins } from "../tenancy/members"
import type { WebhookRow } from "./webhooks"

/** Failures in a row at which the admins get a mail while the endpoint is still active. */
export const WARN_AT: readonly number[] = [5, 8]

interface WebhookFailure {
  webhook_id: string
  account_id: string
  project_id: string
  url: string
  failures: number
  /** Null while the endpoint is active. */
  reason: "circuit_breaker" | "gone" | null
}

export const webhookWarning: JobKind<WebhookFailure> = {
  name: "webhook.warning",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(60 * attempt, 3600)),
}

export type FailingEndpoint = Pick<
  WebhookRow,
  "id" | "account_id" | "project_id" | "url" | "consecutive_failures"
>

/** Enqueues the mails, in the transaction that counts the failure. */
export async function warn(
  tx: Tx,
  failing: FailingEndpoint,
  reason: WebhookFailure["reason"],
): Promise<void> {
  const { id, account_id, project_id, url, consecutive_failures: failures } = failing
  const payload = { webhook_id: id, account_id, project_id, url, failures, reason }
  await enqueue(tx, webhookWarning, { payload, project_id })
}

/** Mails every admin of the project that an endpoint fails, or was disabled for its failures. */
export const notifyAdmins = (store: Store, mail: SystemMail): JobHandler<WebhookFailure> => ({
  run: async (warning) => {
    const kind = "webhook_warning"
    await store.tx((tx) =>
      mailAdmins(tx, mail, warning, (project) => ({ kind, ...text(project, warning) })),
    )
    return {}
  },
})

function text(project: string, { url, failures, reason, webhook_id }: WebhookFailure) {
  if (reason === null) {
    return {
      subject: `${project}: a webhook fails`,
      text:
        `${url} (webhook ${webhook_id}) failed ${failures} times in a row.\n\n` +
        "If the failures go on, Belfry disables the endpoint and holds its events.\n",
    }
  }
  const why = reason === "gone" ? "it answered 410 Gone" : `it failed ${failures} times in a row`
  return {
    subject: `${project}: a webhook was disabled`,
    text:
      `${url} (webhook ${webhook_id}) was disabled: ${why}.\n\n` +
      "Belfry holds its events for 7 days. Enable the endpoint and send the held events:\n" +
      `belfry webhooks enable ${webhook_id} --replay\n`,
  }
}
