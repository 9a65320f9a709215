import { userPasskeys } from "../../../src/auth/factors/tables"
import { newId } from "../../../src/core/ids"
import { now } from "../../../src/core/time"
import type { TestService } from "../../harness/service"

type Owner = Pick<
  typeof userPasskeys.$inferInsert,
  "project_id" | "environment_id" | "user_id" | "name"
>

/** A passkey that nobody can use, past every rule of how one is made. */
export async function plantPasskey({ store }: Pick<TestService, "store">, owner: Owner) {
  const id = newId()
  const key = { credential_id: id, public_key: "", counter: 0, transports: [], backed_up: false }
  const row = { id, ...owner, ...key, created_at: now() }
  await store.tx((tx) => tx.insert(userPasskeys).values(row))
  return id
}
