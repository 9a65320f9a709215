import { describe, expect, test } from "bun:test"
import { after, type ConsentRow, shownConsent } from "../../src/consents/consents"
import { onTerminal } from "./belfry"
import { FakeApi, ID, KEY } from "./fake-api"
import { belfry } from "./lines"

const at = (api: FakeApi) => ({ BELFRY_URL: api.url, BELFRY_API_KEY: KEY })
const ONE = "/v1/subscribers/user-42"
const PROJECT = "0199a1c2-0000-7000-8000-000000000009"
const SUBSCRIBER = "0199a1c2-0000-7000-8000-000000000008"

/** A chain as the server makes it, and as the API shows it: the newest record first. */
function chainOf(length: number) {
  const chain: ConsentRow[] = []
  for (let number = 1; number <= length; number++) {
    const last = chain.at(-1) ?? { number: 0, hash: null }
    const fields: Omit<ConsentRow, "number" | "prev_hash" | "hash"> = {
      id: `0199a1c2-0000-7000-8000-${String(number).padStart(12, "0")}`,
      ...{ project_id: PROJECT, subscriber_id: SUBSCRIBER, address: null },
      ...{ channel: "email", action: "granted", source: "page", proof: "é", ip_hash: "ab" },
      ...(number % 2 ? { scope_type: null, scope_key: null } : SCOPE),
      created_at: `2026-11-22T10:00:0${number}.000Z`,
    }
    chain.push(after(last, fields))
  }
  return chain.map(shownConsent).reverse()
}

const SCOPE = { scope_type: "category", scope_key: "news" } as const

async function verify(change: (chain: ReturnType<typeof chainOf>) => object[], ...more: string[]) {
  using api = new FakeApi()
  api.data(`GET ${ONE}`, { id: SUBSCRIBER, project_id: PROJECT, external_id: "user-42" })
  api.data(`GET ${ONE}/consents`, change(chainOf(4)))
  return await belfry(["subscribers", "consents", "user-42", "--verify", ...more], { env: at(api) })
}

describe("subscribers consents --verify", () => {
  test("finds a chain whole, as the server made it", async () => {
    const { exit, out } = await verify((chain) => chain)
    expect([exit, JSON.parse(out)]).toEqual([0, { records: 4, whole: true, broken: null }])
    expect(JSON.parse((await verify(() => [])).out)).toMatchObject({ records: 0, whole: true })
  })

  test("names the first record that was changed, or that does not follow, and ends with 1", async () => {
    const [last, third, second, first] = chainOf(4) as [Shown, Shown, Shown, Shown]
    const broken: [object[], string][] = [
      [[last, third, { ...second, action: "withdrawn" }, first], second.id],
      [[last, third, { ...second, scope: null }, first], second.id],
      [[last, third, first], third.id],
      [[last, { ...second, number: 3 }, { ...third, number: 2 }, first], third.id],
      [[last, third, second], second.id],
    ]
    for (const [chain, id] of broken) {
      const { exit, out } = await verify(() => chain)
      expect([exit, JSON.parse(out).broken]).toEqual([1, id])
    }
  })

  test("checks the whole chain or nothing", async () => {
    const { exit, err } = await verify((chain) => chain, "--limit", "2")
    expect([exit, err.includes("leave out --limit")]).toEqual([2, true])
  })
})

type Shown = ReturnType<typeof chainOf>[number]

test("an erasure is confirmed with the external id, and shows what remains", async () => {
  using api = new FakeApi()
  api.data(`GET ${ONE}`, { id: SUBSCRIBER, external_id: "user-42" })
  const remains = [{ what: "backups", until: "Until they are deleted." }]
  const receipt = { erased: true, receipt_id: ID, counts: { messages: 3 }, remains }
  api.data(`POST ${ONE}/erase`, receipt)
  const refused = await belfry(["subscribers", "erase", "user-42"], { env: at(api) })
  expect([refused.exit, api.seen.some(({ method }) => method === "POST")]).toEqual([2, false])
  const { exit, out } = await onTerminal(["subscribers", "erase", "user-42", "--yes"], {
    env: at(api),
  })
  expect(exit).toBe(0)
  expect(api.seen.at(-1)?.body).toEqual({ confirm: "user-42" })
  expect(out).toContain("backups. Until they are deleted.")
})

test("an erasure of a deleted subscriber is confirmed with its id", async () => {
  using api = new FakeApi()
  const one = `/v1/subscribers/${ID}`
  const error = { code: "subscriber_not_found", message: "There is no such subscriber." }
  api.answer(`GET ${one}`, { status: 404, body: { error } })
  api.data(`POST ${one}/erase`, { erased: true, receipt_id: ID, counts: {}, remains: [] })
  const { exit } = await belfry(["subscribers", "erase", ID, "--yes"], { env: at(api) })
  expect([exit, api.seen.at(-1)?.body]).toEqual([0, { confirm: ID }])
  api.answer(`GET ${ONE}`, { status: 404, body: { error } })
  const unknown = await belfry(["subscribers", "erase", "user-42", "--yes"], { env: at(api) })
  expect([unknown.exit, api.seen.at(-1)?.method]).toEqual([3, "GET"])
})

test("an export is written as it comes", async () => {
  using api = new FakeApi()
  api.answer(`GET ${ONE}/export`, { body: '{"data":{}}' })
  const { exit, out } = await belfry(["subscribers", "export", "user-42"], { env: at(api) })
  expect([exit, out]).toEqual([0, '{"data":{}}\n'])
})

test("channel, category and reason arrive in the request", async () => {
  using api = new FakeApi()
  api.data(`POST ${ONE}/unsubscribe`, { id: ID, channel: "email" })
  api.data(`POST ${ONE}/resubscribe`, { removed: 0 })
  api.data(`POST ${ONE}/merge`, { id: ID, external_id: "user-42" })
  const words = ["user-42", "email", "--category", "news", "--reason", "asked"]
  expect((await belfry(["subscribers", "unsubscribe", ...words], { env: at(api) })).exit).toBe(0)
  expect((await belfry(["subscribers", "resubscribe", ...words], { env: at(api) })).exit).toBe(0)
  const body = { channel: "email", category: "news", reason: "asked" }
  expect(api.seen.map((one) => one.body)).toEqual([body, body])
  const merge = ["subscribers", "merge", "user-42", "user-17", "--yes"]
  expect((await belfry(merge, { env: at(api) })).exit).toBe(0)
  expect(api.seen.at(-1)?.body).toEqual({ from_id: "user-17" })
})
