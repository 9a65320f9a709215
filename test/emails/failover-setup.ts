import { LOCAL } from "../../src/audit-log/audit-log"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import * as configs from "../../src/providers/configs"
import { mailTo } from "../contracts/email-provider"
import { idFor } from "../harness/ids"
import { openOwn, type ProviderOptions, testFailover, testProviders } from "../harness/providers"
import { testStore } from "../harness/store"
import { PROJECT } from "../messages/letters"

export const OWNER = { account_id: idFor("account_1"), project_id: PROJECT }

/** A store, and the providers of the projects in it. */
export async function failover(options: ProviderOptions = {}) {
  const base = await testStore()
  const { store, folder } = base
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const providers = testProviders(secrets, options)
  await openOwn(store, secrets, providers.environment)
  const maker = { secrets, by: LOCAL, table: providers.environment.table }
  const provider = testFailover(store, providers)
  return {
    ...base,
    secrets,
    providers,
    provider,
    /** Configures a provider of the project; its priority is the order of the calls. */
    async add(
      provider_name: string,
      credentials: object,
      more: Partial<configs.NewProviderConfig> = {},
    ) {
      const wanted = {
        kind: "email_provider" as const,
        provider: provider_name,
        name: newId(),
        priority: 100,
        credentials: { ...credentials },
        settings: {},
        ...more,
      }
      const { row } = await store.tx((tx) => configs.set(tx, OWNER, wanted, maker))
      return row
    },
    change: (id: string, change: configs.ProviderConfigChange) => {
      const config = { kind: "email_provider" as const, id }
      return store.tx((tx) => configs.patch(tx, OWNER, config, change, maker))
    },
    find: (id: string) => configs.find(store.read, PROJECT, { kind: "email_provider", id }),
    send: (...to: string[]) => provider.send({ ...mailTo(...to), project_id: PROJECT }),
    async [Symbol.asyncDispose]() {
      await provider.close()
      await base[Symbol.asyncDispose]()
    },
  }
}
