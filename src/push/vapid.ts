import { and, asc, eq } from "drizzle-orm"
import { SYSTEM } from "../audit-log/audit-log"
import { type Settings, settings } from "../core/config"
import type { Secrets } from "../core/secrets"
import { parseMailbox } from "../lib/address"
import * as configs from "../providers/configs"
import { openCredentials } from "../providers/credentials"
import { type ConfigRow, providerConfigs } from "../providers/tables"
import type { Reader, Store } from "../store/store"
import { type WebPushAccess, webpushProvider } from "./providers/webpush"

const [KIND, PROVIDER] = ["push_provider", "webpush"] as const

/**
 * The Web Push configuration of a project, with a key pair that is made on first use: the first of its order,
 * enabled or not, because browsers that subscribed with its key know no other.
 */
export async function ensureWebPush(
  store: Store,
  secrets: Secrets,
  owner: Pick<ConfigRow, "account_id" | "project_id">,
): Promise<ConfigRow> {
  const known = await firstOf(store.read, owner.project_id, PROVIDER)
  if (known) return known
  const credentials = { subject: subjectOf(settings()) }
  const plain = { kind: KIND, provider: PROVIDER, name: PROVIDER, priority: 100, settings: {} }
  const maker = { secrets, table: [webpushProvider], by: SYSTEM }
  const wanted = { ...plain, credentials }
  const row = await store.tx(
    async (tx) =>
      (await configs.add(tx, owner, wanted, maker)) ??
      (await firstOf(tx, owner.project_id, PROVIDER)), // of another node
  )
  return row ?? ensureWebPush(store, secrets, owner)
}

/** The first configuration of a push provider, in the order in which they are asked. */
export async function firstOf(
  db: Reader,
  project_id: string,
  provider: string,
): Promise<ConfigRow | undefined> {
  const of = and(eq(providerConfigs.kind, KIND), eq(providerConfigs.provider, provider))
  const [row] = await db
    .select()
    .from(providerConfigs)
    .where(and(eq(providerConfigs.project_id, project_id), of))
    .orderBy(asc(providerConfigs.priority), asc(providerConfigs.id))
    .limit(1)
  return row
}

/** What pages subscribe with. */
export const publicKeyOf = (secrets: Secrets, row: ConfigRow): string =>
  (openCredentials(secrets, row) as unknown as Required<WebPushAccess>).vapid_public_key

/** The subject of a key pair that Belfry makes: an address of the instance (RFC 8292, section 2.1). */
function subjectOf({ system_from, base_url }: Pick<Settings, "system_from" | "base_url">) {
  const own = system_from === null ? undefined : parseMailbox(system_from)
  if (own) return `mailto:${own.email}`
  // Push services want one in any case.
  return base_url?.startsWith("https:") ? base_url : "mailto:nobody@example.com"
}
