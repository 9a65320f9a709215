import { and, eq } from "drizzle-orm"
import type { Secrets } from "../core/secrets"
import type { Reader } from "../store/store"
import { providerConfigs } from "./tables"

/**
 * The part of a callback's address that nobody can guess. It is made from the id, so that it can
 * be shown again though only its hash is kept.
 */
export const callbackToken = (secrets: Secrets, config_id: string): string =>
  secrets.mac("provider callback", config_id).toString("base64url")

export const callbackHash = (token: string): string =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex")

/** Stands for the id where the instance's own provider is meant, which no project configured. */
export const INSTANCE = "instance"

/** The configuration that a callback's address belongs to; undefined for any other. */
export async function findByToken(db: Reader, provider: string, token: string) {
  const rows = db.select().from(providerConfigs)
  const [row] = await rows.where(
    and(
      eq(providerConfigs.callback_token_hash, callbackHash(token)),
      eq(providerConfigs.provider, provider),
    ),
  )
  return row
}
