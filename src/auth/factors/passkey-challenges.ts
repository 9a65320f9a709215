import { and, eq, gt, isNull } from "drizzle-orm"
import { newId } from "../../core/ids"
import { now, secondsFromNow } from "../../core/time"
import type { Store } from "../../store/store"
import type { AuthEnvironment } from "../environments"
import { passkeyChallenges } from "./tables"
import { CEREMONY_SECONDS } from "./webauthn"

export type PasskeyChallenge = typeof passkeyChallenges.$inferSelect

type Begun = Pick<
  typeof passkeyChallenges.$inferInsert,
  "kind" | "challenge" | "user_id" | "name" | "challenge_hash"
>

/** Keeps what a browser is to sign. Its id comes back with the signature. */
export async function startCeremony(
  store: Store,
  { id: environment_id, project_id }: AuthEnvironment,
  begun: Begun,
): Promise<string> {
  const id = newId()
  const times = { created_at: now(), expires_at: secondsFromNow(CEREMONY_SECONDS) }
  const row = { id, project_id, environment_id, ...begun, ...times }
  await store.tx((tx) => tx.insert(passkeyChallenges).values(row))
  return id
}

/**
 * Uses a challenge up, whatever becomes of the signature. Undefined for one of another environment, kind or
 * (of a registration) user, and for one that is old or used.
 */
export async function takeCeremony(
  store: Store,
  environment: AuthEnvironment,
  { id, kind, user_id }: Pick<PasskeyChallenge, "id" | "kind"> & { user_id?: string },
): Promise<PasskeyChallenge | undefined> {
  const table = passkeyChallenges
  const open = and(
    eq(table.project_id, environment.project_id),
    eq(table.environment_id, environment.id),
    eq(table.id, id),
    eq(table.kind, kind),
    user_id === undefined ? undefined : eq(table.user_id, user_id),
    isNull(table.used_at),
    gt(table.expires_at, now()),
  )
  const using = { used_at: now() }
  const [row] = await store.tx((tx) => tx.update(table).set(using).where(open).returning())
  return row
}
