import { eq } from "drizzle-orm"
import * as audit from "../audit-log/audit-log"
import type { Tx } from "../store/store"
import { accountMembers } from "./tables"

interface Person {
  id: string
  email: string
  name: string | null
}

type Change = Pick<audit.NewEntry, "before" | "after">

/** A person's own safety concerns every account he belongs to, so each writes it down. */
export async function recordForUser(
  tx: Tx,
  { id }: Pick<Person, "id">,
  by: audit.By,
  action: string,
  change: Change = {},
): Promise<void> {
  const seats = await tx.select().from(accountMembers).where(eq(accountMembers.user_id, id))
  for (const { account_id } of seats.sort((a, b) => (a.account_id < b.account_id ? -1 : 1))) {
    const target = { type: "user", id }
    await audit.record(tx, { account_id, actor: by.actor, ip: by.ip, action, target, ...change })
  }
}

/** The person acts himself, from this address. */
export const asUser = ({ id, email, name }: Person, ip: string | null): audit.By => ({
  actor: { type: "user", id, name: name ?? email },
  ip,
})
