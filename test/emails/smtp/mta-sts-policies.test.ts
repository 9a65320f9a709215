import { expect, test } from "bun:test"
import { now, secondsFromNow } from "../../../src/core/time"
import { policyStore, purgePolicies } from "../../../src/emails/email-context"
import { testStore } from "../../harness/store"

test("a policy is kept as long as it is in force, and renewed in its place", async () => {
  await using it = await testStore()
  const policies = policyStore(it.store)
  const policy = (domain: string, seconds: number) => ({
    domain,
    policy_id: "1",
    mode: "enforce" as const,
    mx: [`mx.${domain}`],
    fetched_at: now(),
    expires_at: secondsFromNow(seconds),
  })
  await policies.keep(policy("a.test", 60))
  await policies.keep(policy("b.test", -60))
  await policies.keep(policy("c.test", -60))
  await policies.keep(policy("c.test", 3600))
  expect(await purgePolicies(it.store)).toBe(1)
  expect(await purgePolicies(it.store)).toBe(0)
  expect(await policies.find("a.test")).toMatchObject({ mode: "enforce", mx: ["mx.a.test"] })
  expect(await policies.find("b.test")).toBeUndefined()
  expect(await policies.find("c.test")).toMatchObject({ domain: "c.test" })
})
