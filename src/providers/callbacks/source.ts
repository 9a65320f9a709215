import { and, eq } from "drizzle-orm"
import { findOrInitialize } from "../../store/instance-values"
import { held } from "../../store/locks"
import type { Reader, Store } from "../../store/store"
import { callbackHash, findByToken, INSTANCE } from "../callback-token"
import type { OwnSes, ProviderPlace } from "../place"
import { forgetRouting } from "../routing"
import { providerConfigs } from "../tables"

/** Whose callback it is. */
export interface Source {
  config_id: string
  /** Null for the instance's own provider: the message says which project it is of. */
  project_id: string | null
  own: OwnSes | null
}

const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** Undefined for an address that belongs to nobody. */
export async function sourceOf(
  db: Reader,
  { own_ses }: ProviderPlace,
  { provider = "", config_token = "" }: Record<string, string | undefined>,
): Promise<Source | undefined> {
  if (!TOKEN.test(config_token)) return undefined
  // Hashes are compared, so that the time it takes says nothing of the token.
  if (provider === "ses" && own_ses?.callback_hash === callbackHash(config_token)) {
    return { config_id: INSTANCE, project_id: null, own: own_ses }
  }
  const config = await findByToken(db, provider, config_token)
  return config && { config_id: config.id, project_id: config.project_id, own: null }
}

const TOPIC = /^arn:aws(?:-[a-z-]+)?:sns:[a-z0-9-]+:(\d{12}):[\w-]{1,256}(?:\.fifo)?$/

/**
 * Whether the topic is of the AWS account whose topic spoke first, since the credentials are what
 * they are. SNS signs for everybody: who learned of the address could have it sign for him, too.
 */
export async function isOurTopic(store: Store, source: Source, arn: string): Promise<boolean> {
  const account = TOPIC.exec(arn)?.[1]
  if (account === undefined) return false
  const { own } = source
  const known = own
    ? await findOrInitialize(store, `sns_account:${own.credentials_id}`, account)
    : await standingAccount(store, source, account)
  return known === account
}

/** The account that stands for a configuration, which is the given one where there was none. */
function standingAccount(store: Store, { config_id, project_id }: Source, account: string) {
  return store.tx(async (tx) => {
    const ours = and(
      eq(providerConfigs.id, config_id),
      eq(providerConfigs.project_id, project_id ?? ""),
    )
    const [row] = await held(tx.select().from(providerConfigs).where(ours))
    if (!row || row.settings.sns_account !== undefined) return row?.settings.sns_account
    const settings = { ...row.settings, sns_account: account }
    await tx.update(providerConfigs).set({ settings }).where(ours)
    tx.afterCommit(forgetRouting)
    return account
  })
}
