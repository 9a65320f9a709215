import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { openSecrets, SecretError } from "../../src/core/secrets"
import { type KeyOwner, keyRows, makeKeys, signingKeys } from "../../src/domains/keys"
import { type DkimState, type DomainStatus, dkimKeys, domains } from "../../src/domains/tables"
import { idFor } from "../harness/ids"
import { testStore } from "../harness/store"
import { testDomain } from "./subject"

const PAIR = await makeKeys()

/** A domain with a pair of keys: what signs its mail, and how to change it. */
async function signingDomain(status: DomainStatus = "verified", state: DkimState = "active") {
  const it = await testStore()
  const { store } = it
  const secrets = openSecrets({ data_dir: it.folder, master_key: null })
  const row = testDomain("acme.test", { status })
  const { project_id, id: domain_id } = row
  const owner: KeyOwner = { project_id, domain_id }
  await store.tx(async (tx) => {
    await tx.insert(domains).values(row)
    await tx.insert(dkimKeys).values(keyRows(secrets, owner, PAIR, { selector: "svc1", state }))
  })
  return {
    ...it,
    secrets,
    domain_id,
    keys: (name = "acme.test", project = project_id) =>
      signingKeys(store.read, secrets, project, name),
    [Symbol.asyncDispose]: () => it[Symbol.asyncDispose](),
  }
}

describe("mail is signed", () => {
  test("with the active key of its verified domain, opened", async () => {
    await using it = await signingDomain()
    const [rsa, ...others] = await it.keys()
    expect(others).toEqual([]) // the Ed25519 key waits for its record
    expect(rsa).toEqual({
      domain: "acme.test",
      selector: "svc1",
      algorithm: "rsa",
      private_key: PAIR.find(({ algorithm }) => algorithm === "rsa")?.pem ?? "",
    })
    expect(await it.keys()).toEqual(rsa ? [rsa] : [])
  })

  test("with the key of the verified domain above, and in its name", async () => {
    await using it = await signingDomain()
    expect(await it.keys("shop.acme.test")).toMatchObject([{ domain: "acme.test" }])
  })

  test("of the instance itself, whoever has its domain", async () => {
    await using it = await signingDomain()
    const { store, secrets } = it
    expect(await signingKeys(store.read, secrets, null, "acme.test")).toEqual(await it.keys())
    expect(await signingKeys(store.read, secrets, null, "shop.acme.test")).toEqual([])
  })

  test("with each published key", async () => {
    await using it = await signingDomain()
    const all = eq(dkimKeys.domain_id, it.domain_id)
    await it.store.tx((tx) => tx.update(dkimKeys).set({ state: "active" }).where(all))
    const algorithms = (await it.keys()).map(({ algorithm }) => algorithm)
    expect(algorithms.sort()).toEqual(["ed25519", "rsa"])
  })
})

describe("mail goes unsigned", () => {
  test.each<[DomainStatus, DkimState]>([
    ["pending", "active"],
    ["failed", "active"],
    ["verified", "pending"],
    ["verified", "retired"],
  ])("from a %s domain with a %s key", async (status, state) => {
    await using it = await signingDomain(status, state)
    expect(await it.keys()).toEqual([])
  })

  test("from another project, another domain, and one above", async () => {
    await using it = await signingDomain()
    expect(await it.keys("acme.test", idFor("another"))).toEqual([])
    expect(await it.keys("example.test")).toEqual([])
    expect(await it.keys("test")).toEqual([])
  })
})

test("a key that was sealed with another master key is not opened", async () => {
  await using it = await signingDomain()
  const other = openSecrets({
    data_dir: it.folder,
    master_key: Buffer.alloc(32).toString("base64"),
  })
  const keys = await it.store.read.select({ project_id: domains.project_id }).from(domains)
  const opening = signingKeys(it.store.read, other, keys[0]?.project_id ?? "", "acme.test")
  expect(await opening.catch((error: unknown) => error)).toBeInstanceOf(SecretError)
})
