import { and, eq } from "drizzle-orm"
import type { SystemMail } from "../identity/system-mail"
import { accountMembers, accounts, consoleUsers } from "../identity/tables"
import type { JobHandler } from "../jobs/job-handler"
import type { Reader, Store } from "../store/store"
import type { Alert } from "./reservations"

/** Tells every owner of the account that a quota is nearly, or wholly, used up. */
export const tellOwners = (store: Store, mail: SystemMail): JobHandler<Alert> => ({
  run: async (alert) => {
    await store.tx(async (tx) => {
      const [account] = await tx.select().from(accounts).where(eq(accounts.id, alert.account_id))
      if (!account || account.deleting_at) return
      for (const { email } of await ownersOf(tx, alert.account_id)) {
        await mail.send(tx, { to: email, kind: "usage_alert", ...letter(account.name, alert) })
      }
    })
    return {}
  },
})

const ownersOf = (db: Reader, account_id: string) =>
  db
    .select({ email: consoleUsers.email })
    .from(accountMembers)
    .innerJoin(consoleUsers, eq(consoleUsers.id, accountMembers.user_id))
    .where(
      and(
        eq(accountMembers.account_id, account_id),
        eq(accountMembers.role, "owner"),
        eq(consoleUsers.status, "active"),
      ),
    )

function letter(name: string, { metric, share, used, limit, period }: Alert) {
  const full = share >= 100
  const what = `${used} of ${limit} (${metric})`
  const subject = full
    ? `${name}: this month's quota is used up`
    : `${name}: ${share} % of this month's quota is used`
  const outlook = full
    ? "Belfry refuses further sends with 402 until the next month begins."
    : "When the quota is used up, Belfry refuses further sends with 402."
  const text = `${name} has used ${what} in ${period}.\n\n${outlook}\n`
  return { subject, text }
}
