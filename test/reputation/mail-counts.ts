import { and, eq } from "drizzle-orm"
import { millis } from "../../src/core/time"
import { events } from "../../src/events/tables"
import type { ReputationCounts } from "../../src/identity/account-reputation"
import { accounts } from "../../src/identity/tables"
import { assessTroubled, noteTrouble } from "../../src/reputation/evaluate"
import { count, hourOf, NONE } from "../../src/reputation/hour-counts"
import type { Store } from "../../src/store/store"

interface Home {
  account_id: string
  project_id: string
}

interface Sent extends Partial<ReputationCounts> {
  tags?: string[]
  template_id?: string | null
  domain?: string
}

/** Counts mail of the present hour as if it had been settled, and assesses the account as the server would. */
export async function sent(store: Store, { account_id, project_id }: Home, mail: Sent) {
  const { tags = [], template_id = null, domain: sender_domain = "example.test", ...some } = mail
  const counts = { ...NONE, ...some }
  await store.tx(async (tx) => {
    const email = { account_id, project_id, sender_domain, tags, template_id }
    await count(tx, [{ ...email, hour: hourOf(millis()), counts }])
    noteTrouble(tx, [account_id])
  })
  await assessTroubled(store)
}

export async function accountOf(store: Store, { account_id }: Home) {
  const [row] = await store.read.select().from(accounts).where(eq(accounts.id, account_id))
  if (!row) throw new Error("the account is gone")
  return row
}

/** The data of the events that told of the sending status, oldest first. */
export async function statusEvents({ read }: Store, project_id: string) {
  const told = eq(events.type, "account.sending_status_changed")
  const rows = read
    .select()
    .from(events)
    .where(and(told, eq(events.project_id, project_id)))
  return (await rows.orderBy(events.position, events.id)).map(({ data }) => data)
}
