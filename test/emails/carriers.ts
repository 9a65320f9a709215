import { LOCAL } from "../../src/audit-log/audit-log"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import type { AdapterOptions } from "../../src/emails/providers/adapters"
import { Carriers } from "../../src/emails/providers/choose"
import type { EmailProvider } from "../../src/emails/providers/provider"
import * as configs from "../../src/providers/configs"
import { mailTo } from "../contracts/email-provider"
import { idFor } from "../harness/ids"
import { testAdapters, testPermits } from "../harness/providers"
import { testStore } from "../harness/store"
import { PROJECT } from "../messages/letters"

/** The instance's own provider, which nobody should be sent to unless a test says so. */
export const nobody: EmailProvider = {
  name: "mailbox",
  schedule: () => undefined,
  send: () => Promise.reject(new Error("the instance's own provider was asked")),
  close: async () => {},
}

export const OWNER = { account_id: idFor("account_1"), project_id: PROJECT }

/** A store, and whoever carries mail for the projects in it. */
export async function carriers(own = nobody, options: Partial<AdapterOptions> = {}) {
  const base = await testStore()
  const { store, folder } = base
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const adapters = testAdapters(secrets, options)
  const maker = { secrets, by: LOCAL }
  const provider = new Carriers({ store, adapters, own, permits: testPermits() })
  return {
    ...base,
    secrets,
    adapters,
    provider,
    /** Configures a provider of the project; its priority is the order of the calls. */
    async add(provider_name: string, credentials: object, more: Partial<configs.NewConfig> = {}) {
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
    change: (id: string, change: configs.ConfigChange) => {
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
