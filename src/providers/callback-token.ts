import { and, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import type { Reader } from "../store/store"
import type { ProviderKind } from "./descriptor"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

/** How the instance's own provider is called where people read it. */
export const INSTANCE_NAME = "instance"

export const shownId = ({ id, project_id }: Pick<ConfigRow, "id" | "project_id">): string =>
  project_id === INSTANCE ? INSTANCE_NAME : id

/**
 * The secret part of a callback's address. It is made from the id, so that it can be shown again
 * though only its hash is kept.
 */
export const callbackToken = (
  secrets: Secrets,
  row: Pick<ConfigRow, "id" | "project_id">,
): string => secrets.mac("provider callback", shownId(row)).toString("base64url")

export const callbackHash = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")

const TOKEN = /^[A-Za-z0-9_-]{43}$/

/** The configuration that a callback's address belongs to; undefined for any other. */
export async function findByToken(
  db: Reader,
  kind: ProviderKind,
  { provider = "", config_token = "" }: Record<string, string | undefined>,
): Promise<ConfigRow | undefined> {
  if (!TOKEN.test(config_token)) return undefined
  const rows = db.select().from(providerConfigs)
  // Hashes are compared, so that the time it takes says nothing of the token.
  const [row] = await rows.where(
    and(
      eq(providerConfigs.callback_token_hash, callbackHash(config_token)),
      eq(providerConfigs.kind, kind),
      eq(providerConfigs.provider, provider),
    ),
  )
  return row
}
