import { and, eq } from "drizzle-orm"
import { now } from "../core/time"
import type { JobKind } from "../jobs/jobs"
import { newRowInserter } from "../store/statements"
import type { Reader, Tx } from "../store/store"
import type { ProviderReport } from "./descriptor"
import { providerReceipts } from "./tables"

/** What a provider told about a message after it took it. */
export interface ProviderFeedback extends ProviderReport {
  config_id: string
  /** Null for the instance's own provider. */
  project_id: string | null
}

/** A notification waits in the queue until its message is known, ten minutes at most. */
export const providerFeedback: JobKind<ProviderFeedback> = {
  name: "provider.feedback",
  schedule: (attempt, age) => (age > 86_400 ? undefined : Math.min(2 ** attempt, 60)),
}

interface Receipt {
  config_id: string
  project_id: string
  provider_message_id: string
  message_id: string
}

/** Remembers under which id the provider took a message. */
export const keepReceipt = async (tx: Tx, receipt: Receipt): Promise<void> => {
  await insertReceipt(tx, [{ ...receipt, created_at: now() }])
}

const insertReceipt = newRowInserter(providerReceipts, "provider_message_id")

/** The message that a provider means, and its project; undefined while it is unknown. */
export async function messageFor(db: Reader, told: Omit<ProviderFeedback, "notices">) {
  const { config_id, project_id, provider_message_id } = told
  const rows = db.select().from(providerReceipts)
  const [row] = await rows.where(
    and(
      eq(providerReceipts.config_id, config_id),
      eq(providerReceipts.provider_message_id, provider_message_id),
      project_id === null ? undefined : eq(providerReceipts.project_id, project_id),
    ),
  )
  return row && { id: row.message_id, project_id: row.project_id }
}
