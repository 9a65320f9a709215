import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { openSecrets } from "../../src/core/secrets"
import { keyRows, makeKeys, signingKeys } from "../../src/domains/keys"
import { dkimKeys, domains } from "../../src/domains/tables"
import { testStore } from "../harness/store"
import { testDomain } from "./subject"

test("a rotation, and the end of a domain, are seen at once", async () => {
  await using it = await testStore()
  const { store } = it
  const secrets = openSecrets({ data_dir: it.folder, master_key: null })
  const row = testDomain("acme.test", { status: "verified" })
  const { project_id, id: domain_id } = row
  const made = await makeKeys()
  const rows = keyRows(secrets, { project_id, domain_id }, made, {
    selector: "svc1",
    state: "active",
  })
  await store.tx(async (tx) => {
    await tx.insert(domains).values(row)
    await tx.insert(dkimKeys).values(rows)
  })
  const selectors = async () =>
    (await signingKeys(store.read, secrets, project_id, "acme.test")).map(
      ({ selector }) => selector,
    )
  expect(await selectors()).toEqual(["svc1"])
  expect(await selectors()).toEqual(["svc1"])

  const rsa = eq(dkimKeys.selector, "svc1")
  await store.tx((tx) => tx.update(dkimKeys).set({ selector: "svc2" }).where(rsa))
  expect(await selectors()).toEqual(["svc2"])

  await store.tx((tx) => tx.update(domains).set({ status: "failed" }).where(eq(domains.id, row.id)))
  expect(await selectors()).toEqual([])
})
