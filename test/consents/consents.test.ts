import { expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { brokenRecord, type NewConsent, recordConsent } from "../../src/consents/consents"
import { sharedService } from "../harness/shared-service"
import { chainOf } from "../harness/unsubscribed"

const service = await sharedService()
const { store, parts } = service

const given = (project_id: string, more: Partial<NewConsent> = {}): NewConsent => ({
  project_id,
  address: "Ann@Example.test",
  scope: { type: "category", key: "news" },
  action: "withdrawn",
  source: "page",
  proof: "a button",
  ip: "192.0.2.7",
  ...more,
})

const add = (consent: NewConsent) => store.tx((tx) => recordConsent(tx, parts.secrets, consent))

type Chain = Awaited<ReturnType<typeof chainOf>>

/** The place of the first record that is not what was written, or that does not follow the one before. */
const brokenAt = (chain: Chain) => chain.find(({ id }) => id === brokenRecord(chain))?.number

test("each record has the hash of the one before, and any change shows", async () => {
  const { project_id } = await service.project()
  await add(given(project_id))
  await add(given(project_id, { action: "granted", source: "one_click", ip: null }))
  await add(given(project_id, { scope: { type: "broadcast", key: null }, proof: null }))
  const chain = await chainOf(service, project_id)
  expect(chain.map(({ number, prev_hash }) => [number, prev_hash])).toEqual([
    [1, null],
    [2, chain[0]?.hash ?? ""],
    [3, chain[1]?.hash ?? ""],
  ])
  expect(brokenAt(chain)).toBeUndefined()
  for (const [at, row] of chain.entries()) {
    for (const name of Object.keys(row)) {
      const changed = { ...row, [name]: name === "number" ? 9 : "x" }
      expect([name, brokenAt(chain.with(at, changed))]).toEqual([name, changed.number])
    }
  }
  expect(brokenAt([...chain.slice(0, 1), ...chain.slice(2)])).toBe(3)
})

test("the hash is SHA-256 over all that the record says", async () => {
  const { project_id } = await service.project()
  await add(given(project_id))
  const [row] = await chainOf(service, project_id)
  const said = [
    ...[null, 1, row?.id, project_id, null, "ann@example.test", "email"],
    ...["category", "news", "withdrawn", "page", "a button", row?.ip_hash, row?.created_at],
  ]
  expect(row?.hash).toBe(createHash("sha256").update(JSON.stringify(said)).digest("hex"))
})

test("an IP address is kept as a hash that only this server can make", async () => {
  const { project_id } = await service.project()
  await add(given(project_id))
  await add(given(project_id))
  await add(given(project_id, { ip: "192.0.2.8" }))
  await add(given(project_id, { ip: null }))
  const chain = await chainOf(service, project_id)
  const [first, second, third, none] = chain.map(({ ip_hash }) => ip_hash)
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  expect(second).toBe(first as string)
  expect(third).not.toBe(first as string)
  expect(none).toBeNull()
  expect(JSON.stringify(chain)).not.toContain("192.0.2")
  expect(first).not.toBe(createHash("sha256").update("192.0.2.7").digest("hex"))
})

test("chains of one address stay whole when many write at once, and other addresses have their own", async () => {
  const { project_id } = await service.project()
  const { project_id: other } = await service.project()
  const wanted = Array.from({ length: 12 }, () => given(project_id))
  const ben = given(project_id, { address: "ben@example.test" })
  await Promise.all([...wanted, ben, given(other)].map(add))
  const chain = await chainOf(service, project_id)
  const of = (address: string) => chain.filter((row) => row.address === address)
  expect(of("ann@example.test")).toHaveLength(12)
  expect(brokenAt(of("ann@example.test"))).toBeUndefined()
  expect(brokenAt(of("ben@example.test"))).toBeUndefined()
  expect(brokenAt(await chainOf(service, other))).toBeUndefined()
})
