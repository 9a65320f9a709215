import { and, eq, inArray, lt } from "drizzle-orm"
import { now } from "../../core/time"
import type { Store } from "../../store/store"
import { mtaStsPolicies } from "../tables"
import type { KeptPolicy, PolicyStore } from "./mta-sts"

const AT_ONCE = 500

/** Forgets policies that are in force no more, some at a time. Returns how many went. */
export async function purgePolicies(store: Store): Promise<number> {
  const { domain, expires_at } = mtaStsPolicies
  const over = lt(expires_at, now())
  const some = await store.read.select({ domain }).from(mtaStsPolicies).where(over).limit(AT_ONCE)
  const names = some.map((one) => one.domain)
  // Renewed meanwhile, it stays.
  const gone = and(inArray(domain, names), over)
  if (names.length > 0) await store.tx((tx) => tx.delete(mtaStsPolicies).where(gone))
  return names.length
}

/** Policies in the database, one a domain. They are public, so they belong to no project. */
export const policyStore = (store: Store): PolicyStore => ({
  async find(domain) {
    const rows = store.read.select().from(mtaStsPolicies)
    const [kept] = await rows.where(eq(mtaStsPolicies.domain, domain))
    return kept
  },
  async keep(policy: KeptPolicy) {
    const { domain, ...change } = policy
    await store.tx((tx) =>
      tx
        .insert(mtaStsPolicies)
        .values(policy)
        .onConflictDoUpdate({ target: mtaStsPolicies.domain, set: change })
        .then(() => undefined),
    )
  },
})
