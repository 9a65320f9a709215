import { eq } from "drizzle-orm"
import type { Store } from "../store/store"
import type { KeptPolicy, PolicyStore } from "./providers/mta-sts"
import { mtaStsPolicies } from "./tables"

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
