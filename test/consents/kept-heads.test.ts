import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { type HeadSecrets, readHead } from "../../src/consents/chain-heads"
import { recordConsent } from "../../src/consents/consents"
import { sealSome } from "../../src/consents/fill-heads"
import { newId } from "../../src/core/ids"
import { demandMasterKey } from "../../src/operations/instance"
import { acceptLostKey } from "../../src/operations/lost-key"
import { rotateMasterKey } from "../../src/operations/rotate-master-key"
import { addSubscriber } from "../harness/audience"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"
import { testStore } from "../harness/store"
import { secretsOf } from "../operations/sealed-rows"

quietLog()

const NEW_KEY = Buffer.alloc(32, 9).toString("base64")

test("the ends of consent chains stay sealed in a rotation, also in one that ends links", async () => {
  await using service = await testService()
  const { store, parts } = service
  await demandMasterKey(store, parts.secrets)
  const project = await service.project()
  const { id } = await addSubscriber(project)
  const consents = `/v1/subscribers/${id}/consents`
  const record = { channel: "email", action: "granted", source: "import" }
  const head = async () => (await project.get(consents)).body.meta.head
  await project.post(consents, record)
  const before = await head()
  expect(before).toMatchObject({ state: "sealed", number: 1 })
  for (const end_links of [false, true]) {
    await rotateMasterKey(parts, { new_key: null, end_links })
    expect(await head()).toEqual(before)
  }
  await project.post(consents, record)
  expect(await head()).toMatchObject({ state: "sealed", number: 2 })
})

/** A store with a chain of one record, and its secrets. */
async function storeWithChain() {
  const base = await testStore()
  const { store, folder } = base
  const secrets = secretsOf(folder)
  await demandMasterKey(store, secrets)
  while (await sealSome(store, secrets));
  const chain = { project_id: newId(), subscriber_id: newId() }
  const said = { scope: null, action: "granted", source: "api", proof: null, ip: null } as const
  await store.tx((tx) => recordConsent(tx, secrets, { ...chain, ...said }))
  return {
    ...{ store, folder },
    stateWith: async (with_secrets: HeadSecrets) =>
      (await readHead(store.read, with_secrets, { ...chain, address: null }, true)).state,
    [Symbol.asyncDispose]: () => base[Symbol.asyncDispose](),
  }
}

test("a lost master key leaves consent chains without heads, which are sealed anew", async () => {
  await using it = await storeWithChain()
  const { store, folder, stateWith } = it
  writeFileSync(join(folder, "master.key"), `${NEW_KEY}\n`)
  const secrets = secretsOf(folder)
  expect(await stateWith(secrets)).toBe("changed")
  await acceptLostKey(store, secrets)
  await demandMasterKey(store, secrets)
  expect(await stateWith(secrets)).toBe("unsealed")
  while (await sealSome(store, secrets));
  expect(await stateWith(secrets)).toBe("sealed")
})
