import { LOCAL } from "../../src/audit-log/audit-log"
import { PROVIDERS } from "../../src/channels"
import { settings } from "../../src/core/config"
import { openSecrets } from "../../src/core/secrets"
import { apiKeys } from "../../src/identity/tables"
import * as configs from "../../src/providers/configs"
import { openStore } from "../../src/store/open"

type Wanted = Partial<Pick<configs.NewProviderConfig, "name" | "priority" | "kind">> &
  Pick<configs.NewProviderConfig, "provider" | "credentials"> & { settings?: object }

/**
 * Configures a provider, of texts without another `kind`, for the first project of a data directory that is not served:
 * over HTTP only a person who signed in may do it.
 */
export async function configureProvider(data_dir: string, wanted: Wanted): Promise<void> {
  const store = await openStore({ ...settings(), data_dir })
  try {
    const [owner] = await store.read.select().from(apiKeys)
    if (!owner) throw new Error(`${data_dir} has no project`)
    const { account_id, project_id } = owner
    const secrets = openSecrets({ data_dir, master_key: null })
    const maker = { secrets, table: PROVIDERS, by: LOCAL }
    const usual = { kind: "sms_provider", name: "texts", priority: 100, settings: {} } as const
    const config = { ...usual, ...wanted }
    await store.tx((tx) => configs.set(tx, { account_id, project_id }, config, maker))
  } finally {
    await store.close()
  }
}
