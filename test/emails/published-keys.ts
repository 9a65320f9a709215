import { eq } from "drizzle-orm"
import { keyRows, makeKeys } from "../../src/domains/keys"
import { dkimKeys, domains } from "../../src/domains/tables"
import { testDomain } from "../domains/subject"
import type { TestService } from "../harness/service"

/** A pair of DKIM keys, what DNS says of them, and how the domain becomes that of a project. */
export async function domainKeys(domain: string) {
  const pair = await makeKeys()
  const records: Record<string, string> = {
    [domain]: "v=spf1 ip4:192.0.2.10 -all",
    [`_dmarc.${domain}`]: "v=DMARC1; p=reject",
  }
  for (const { algorithm, public_key } of pair) {
    const selector = algorithm === "rsa" ? "svc1" : "svc1-ed"
    records[`${selector}._domainkey.${domain}`] = `v=DKIM1; k=${algorithm}; p=${public_key}`
  }
  return {
    records,
    /** The domain is verified for this project, and both its keys are published. */
    async publish({ parts: { store, secrets } }: TestService, project_id: string) {
      const row = testDomain(domain, { project_id, status: "verified" })
      const owner = { project_id, domain_id: row.id }
      await store.tx(async (tx) => {
        await tx.insert(domains).values(row)
        const keys = keyRows(secrets, owner, pair, { selector: "svc1", state: "active" })
        await tx.insert(dkimKeys).values(keys)
        const all = eq(dkimKeys.domain_id, row.id)
        await tx.update(dkimKeys).set({ state: "active" }).where(all)
      })
    },
  }
}
