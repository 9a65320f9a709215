import { keyIdOf, openSecrets, type Secrets } from "../../src/core/secrets"
import { requireMasterKey } from "../../src/operations/instance"
import { sealedRows } from "../../src/operations/master-key"
import { SEALED_COLUMNS } from "../../src/operations/sealed-columns"
import type { Store } from "../../src/store/store"
import { webhooks } from "../../src/webhooks/tables"

export const PLAIN = "planted plain text"

/** The secrets of the folder, as a process has them that starts now. */
export const secretsOf = (folder: string) => openSecrets({ data_dir: folder, master_key: null })

/** An endpoint of no project. */
export function webhookRow(id: string, secret: string): typeof webhooks.$inferInsert {
  const now = "2026-01-01T00:00:00.000Z"
  return {
    ...{ id, account_id: id, project_id: id, url: "https://a.test/", events: ["*"], headers: {} },
    ...{ header_format: "both", retry_policy: { max_attempts: 1, intervals: [] }, metadata: {} },
    ...{ version: "2026-02-01", secret, secret_hint: "", status: "active" },
    ...{ consecutive_failures: 0, created_at: now, updated_at: now },
  }
}

/** Writes so many endpoints whose secret is the plain text. */
export const sealWebhooks = (store: Store, secrets: Secrets, count: number): Promise<void> =>
  store.tx(async (tx) => {
    for (let number = 0; number < count; number++) {
      const id = Bun.randomUUIDv7()
      const secret = secrets.seal(PLAIN, `webhooks:${id}:secret`)
      await tx.insert(webhooks).values(webhookRow(id, secret))
    }
  })

/** Every sealed value of the database, opened by a process that starts now. */
export async function openedAnew(store: Store, folder: string) {
  const secrets = secretsOf(folder)
  await requireMasterKey(store, secrets)
  const texts: string[] = []
  const key_ids = new Set<string | undefined>()
  for (const sealed of SEALED_COLUMNS) {
    for await (const rows of sealedRows(store, sealed)) {
      for (const { key, text } of rows) {
        key_ids.add(keyIdOf(text))
        texts.push(secrets.open(text, sealed.contextOf(key)))
      }
    }
  }
  return { secrets, key_ids: [...key_ids], plain: texts.filter((text) => text === PLAIN).length }
}
