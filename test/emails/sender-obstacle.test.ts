import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import type { DomainRow } from "../../src/domains/expected-records"
import { domains } from "../../src/domains/tables"
import { senderObstacle } from "../../src/emails/channel"
import { accept } from "../../src/messages/pipeline"
import { testDomain } from "../domains/subject"
import { testStore } from "../harness/store"
import { letter } from "../messages/letters"

/** What stands in the way of a message that was accepted, now that its domain is like this. */
async function obstacleOf(
  own: Partial<DomainRow> | undefined,
  more: { sender_domain?: string; source?: string; trusted?: string[] } = {},
) {
  await using it = await testStore()
  const project_id = newId()
  const { sender_domain = "acme.test", source = "api", trusted = [] } = more
  if (own) {
    const row = testDomain("acme.test", { project_id, ...own })
    await it.store.tx((tx) => tx.insert(domains).values(row))
  }
  const given = { ...letter(), project_id, sender_domain, source }
  const [message] = await it.store.tx((tx) => accept(tx, [given]))
  if (!message) throw new Error("nothing was accepted")
  const rules = { sending_domains: new Set(trusted) }
  return await senderObstacle({ store: it.store, rules }, message, "mailbox")
}

describe("nothing stands in the way", () => {
  test("of a verified domain, nor of what is below it", async () => {
    expect(await obstacleOf({ status: "verified" })).toBeUndefined()
    const below = { sender_domain: "news.acme.test" }
    expect(await obstacleOf({ status: "verified" }, below)).toBeUndefined()
  })

  test("of a domain on the operator's word, of the mailbox's, and of mail of the instance", async () => {
    expect(await obstacleOf(undefined, { trusted: ["acme.test"] })).toBeUndefined()
    expect(await obstacleOf(undefined, { sender_domain: "mailbox.test" })).toBeUndefined()
    expect(await obstacleOf(undefined, { source: "system" })).toBeUndefined()
  })
})

test("mail of a domain that lost its records waits, for as long as they are looked for", async () => {
  const held = await obstacleOf({ status: "pending" })
  expect(held).toMatchObject({ status: "retry", provider: "mailbox", code: "domain_not_verified" })
  expect([1, 3, 1000].map((attempt) => held?.schedule(attempt, 0))).toEqual([300, 900, 3600])
})

test.each<[string, Partial<DomainRow> | undefined]>([
  ["was deleted", undefined],
  ["has failed", { status: "failed" }],
  ["is another project's", { status: "verified", project_id: newId() }],
])("mail of a domain that %s fails", async (_, own) => {
  expect(await obstacleOf(own)).toMatchObject({ status: "failed", code: "domain_not_verified" })
})
