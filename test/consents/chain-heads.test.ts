import { describe, expect, test } from "bun:test"
import { eq, inArray } from "drizzle-orm"
import { headId, noteSealed, readHead } from "../../src/consents/chain-heads"
import { headOfChain } from "../../src/consents/consent-chain"
import { brokenRecord, type ConsentRow, endsAs, recordConsent } from "../../src/consents/consents"
import { keepSealed, sealSome } from "../../src/consents/fill-heads"
import { removeAddressChain } from "../../src/consents/moved-consents"
import { consentHeads, consents } from "../../src/consents/tables"
import { openSecrets } from "../../src/core/secrets"
import { nextTurn } from "../../src/core/time"
import * as instanceValues from "../../src/store/instance-values"
import { addSubscriber, chainOfSubscriber } from "../harness/audience"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()

const service = await sharedService()
const { store, parts } = service
const { secrets } = parts

const path = (id: string, verb = "consents") => `/v1/subscribers/${id}/${verb}`

const record = { channel: "email", action: "granted", source: "import" }

const add = (project: TestProject, id: string) => project.post(path(id), record)

/** A subscriber with so many records. */
async function person(length: number, project?: TestProject) {
  const its = project ?? (await service.project())
  const { id } = await addSubscriber(its)
  for (let at = 0; at < length; at++) await add(its, id)
  return { project: its, id, chain: await chainOfSubscriber(service, id) }
}

type Person = Awaited<ReturnType<typeof person>>

/** What the list of a subscriber says of the last record. */
const shownHead = async ({ project, id }: Person) => (await project.get(path(id))).body.meta.head

/** Whether the chain of a subscriber is what was written, as the server tells. */
async function isWhole({ project, id }: Person): Promise<boolean> {
  const chain = await chainOfSubscriber(service, id)
  const head = await headOfChain(store.read, secrets, { id, project_id: project.project_id })
  return brokenRecord(chain) === undefined && endsAs(chain, head)
}

const remove = (...rows: (ConsentRow | undefined)[]) =>
  store.tx((tx) =>
    tx.delete(consents).where(
      inArray(
        consents.id,
        rows.map((row) => row?.id ?? ""),
      ),
    ),
  )

const change = (row: ConsentRow | undefined, set: Partial<ConsentRow>) =>
  store.tx((tx) =>
    tx
      .update(consents)
      .set(set)
      .where(eq(consents.id, row?.id ?? "")),
  )

const sealedOf = async (id: string) => {
  const [row] = await store.read.select().from(consentHeads).where(eq(consentHeads.id, id))
  return row?.sealed ?? ""
}

const writeSealed = (id: string, sealed: string) =>
  store.tx((tx) => tx.update(consentHeads).set({ sealed }).where(eq(consentHeads.id, id)))

const removeHeads = (...ids: string[]) =>
  store.tx((tx) => tx.delete(consentHeads).where(inArray(consentHeads.id, ids)))

/** How somebody without the master key may change a chain of four records. */
const FORGERIES: [string, (it: Person) => Promise<unknown>][] = [
  ["the last record removed", ({ chain }) => remove(chain[3])],
  ["the last two records removed", ({ chain }) => remove(chain[2], chain[3])],
  ["all records removed", ({ chain }) => remove(...chain)],
  ["a record in the middle removed", ({ chain }) => remove(chain[1])],
  ["the first record removed", ({ chain }) => remove(chain[0])],
  ["the last record changed", ({ chain }) => change(chain[3], { action: "withdrawn" })],
  ["a record in the middle changed", ({ chain }) => change(chain[1], { proof: "another" })],
  [
    "two records swapped",
    async ({ chain }) => {
      await change(chain[1], { number: 9 })
      await change(chain[2], { number: 2 })
      await change(chain[1], { number: 3 })
    },
  ],
  [
    "the last record removed, and the head that was sealed for another chain put in place",
    async ({ project, id, chain }) => {
      const other = await person(3, project)
      await remove(chain[3])
      await writeSealed(id, await sealedOf(other.id))
    },
  ],
  [
    "the last record removed, and the head sealed with another key",
    async ({ id, chain }) => {
      const own = openSecrets({ data_dir: "", master_key: Buffer.alloc(32, 5).toString("base64") })
      await remove(chain[3])
      const text = JSON.stringify([3, chain[2]?.hash])
      await writeSealed(id, own.seal(text, `consent_heads:${id}:sealed`))
    },
  ],
  [
    "the last record removed, and the head changed",
    async ({ id, chain }) => {
      await remove(chain[3])
      await writeSealed(id, JSON.stringify([3, chain[2]?.hash]))
    },
  ],
  [
    "the last record and the head removed",
    async ({ id, chain }) => {
      await remove(chain[3])
      await removeHeads(id)
    },
  ],
  [
    "all records removed, and the head changed",
    async ({ id, chain }) => {
      await remove(...chain)
      await writeSealed(id, "v1.00000000.AAAA")
    },
  ],
]

describe("a chain is not whole", () => {
  test.each(FORGERIES)("with %s", async (_, forge) => {
    const it = await person(4)
    expect(await isWhole(it)).toBe(true)
    await forge(it)
    expect(await isWhole(it)).toBe(false)
  })

  test.each(FORGERIES)("with %s, also after the next records", async (_, forge) => {
    const it = await person(4)
    await forge(it)
    expect((await add(it.project, it.id)).status).toBe(201)
    expect((await add(it.project, it.id)).status).toBe(201)
    expect(brokenRecord(await chainOfSubscriber(service, it.id))).toBeString()
  })

  test.each(FORGERIES)("with %s, also after a merge", async (_, forge) => {
    const it = await person(4)
    const into = await person(2, it.project)
    await forge(it)
    expect((await it.project.post(path(into.id, "merge"), { from_id: it.id })).status).toBe(200)
    expect(await isWhole(into)).toBe(false)
    await add(into.project, into.id)
    expect(await isWhole(into)).toBe(false)
  })
})

describe("the head of a chain", () => {
  test("is the last record, in the list and in the export", async () => {
    const it = await person(3)
    const last = it.chain[2]
    const head = { state: "sealed", number: 3, hash: last?.hash }
    expect(await shownHead(it)).toEqual(head)
    expect((await it.project.get(path(it.id, "export"))).body.data.consent_head).toEqual(head)
    expect(await shownHead(await person(0))).toEqual({ state: "none", number: null, hash: null })
  })

  test("tells what somebody did to it", async () => {
    const [changed, removed] = [await person(1), await person(1)]
    await writeSealed(changed.id, "v1.00000000.AAAA")
    await removeHeads(removed.id)
    expect(await shownHead(changed)).toEqual({ state: "changed", number: null, hash: null })
    expect(await shownHead(removed)).toEqual({ state: "none", number: null, hash: null })
  })

  test("follows a merge of whole chains, and the removed chain has none", async () => {
    const from = await person(2)
    const into = await person(3, from.project)
    await from.project.post(path(into.id, "merge"), { from_id: from.id })
    const last = (await chainOfSubscriber(service, into.id)).at(-1)
    expect(await shownHead(into)).toEqual({ state: "sealed", number: 5, hash: last?.hash })
    expect(await isWhole(into)).toBe(true)
    expect(await sealedOf(from.id)).toBe("")
  })

  test("is the closing record after an erasure, which follows the last record that was written", async () => {
    const { project, id, chain } = await person(3)
    await remove(chain[2])
    const { external_id } = (await project.get(`/v1/subscribers/${id}`)).body.data
    expect((await project.post(path(id, "erase"), { confirm: external_id })).status).toBe(200)
    const [closing] = await chainOfSubscriber(service, id)
    expect(closing).toMatchObject({ action: "erased", number: 4, prev_hash: chain[2]?.hash })
    const { project_id } = project
    expect(await headOfChain(store.read, secrets, { id, project_id })).toEqual({
      ...{ state: "sealed", number: 4, hash: closing?.hash ?? "" },
    })
  })

  test("of an address is removed with its chain, and another project has its own", async () => {
    const [one, other] = [await service.project(), await service.project()]
    const address = "ann@example.test"
    const given = { scope: null, action: "withdrawn", source: "page", proof: null, ip: null }
    const chains = [one, other].map(({ project_id }) => ({ project_id, address }))
    for (const owner of chains) {
      for (let at = 0; at < 2; at++) {
        await store.tx((tx) => recordConsent(tx, secrets, { ...owner, ...given } as never))
      }
    }
    const heads = () =>
      Promise.all(
        chains.map((owner) =>
          readHead(store.read, secrets, { ...owner, subscriber_id: null }, true),
        ),
      )
    expect((await heads()).map(({ number }) => number)).toEqual([2, 2])
    await store.tx((tx) => removeAddressChain(tx, one.project_id, address))
    expect((await heads()).map(({ number }) => number)).toEqual([null, 2])
    const id = headId({ project_id: one.project_id, subscriber_id: null, address })
    expect(await sealedOf(id)).toBe("")
  })

  test("is that of the last one when many write at once", async () => {
    const it = await person(0)
    await Promise.all(Array.from({ length: 12 }, () => add(it.project, it.id)))
    expect(await shownHead(it)).toMatchObject({ state: "sealed", number: 12 })
    expect(await isWhole(it)).toBe(true)
  })
})

describe("chains of an older version", () => {
  /** As an upgrade finds them: without heads, and nothing noted. */
  async function forgetHeads(...people: Person[]) {
    await removeHeads(...people.map(({ id }) => id))
    await store.tx((tx) => instanceValues.remove(tx, "consent_heads"))
  }

  const seal = async () => {
    while (await sealSome(store, secrets));
  }

  test("are as whole as before, until the background has sealed their ends", async () => {
    const [one, other] = [await person(3), await person(2)]
    await forgetHeads(one, other)
    expect(await shownHead(one)).toEqual({ state: "unsealed", number: null, hash: null })
    expect(await isWhole(one)).toBe(true)
    await add(other.project, other.id) // this chain gets its head from the record
    expect(await shownHead(other)).toMatchObject({ state: "sealed", number: 3 })
    await seal()
    for (const it of [one, other]) {
      expect(await shownHead(it)).toMatchObject({ state: "sealed", number: 3 })
      expect(await isWhole(it)).toBe(true)
    }
    await remove(one.chain[2])
    expect(await isWhole(one)).toBe(false)
  })

  test("are sealed by the background, also after an error", async () => {
    const it = await person(2)
    await forgetHeads(it)
    let fails = 1
    const tx: typeof store.tx = (closure) =>
      fails-- > 0 ? Promise.reject(new Error("no space left on device")) : store.tx(closure)
    const stop = keepSealed({ ...store, read: store.read, tx }, secrets, 1)
    while ((await shownHead(it)).state !== "sealed") await nextTurn()
    await stop()
    await seal()
    expect(await isWhole(it)).toBe(true)
  })

  test("are sealed from the place on that the last process reached, and heads that are there stay", async () => {
    const it = await person(2)
    const sealed = await sealedOf(it.id)
    await store.tx((tx) => noteSealed(tx, secrets, it.chain[0]?.id ?? ""))
    await seal()
    expect(await sealedOf(it.id)).toBe(sealed)
  })
})
