import { expect, test } from "bun:test"
import { and, eq, inArray, sql } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { accept } from "../../src/messages/pipeline"
import { messageContents, messages } from "../../src/messages/tables"
import { directly } from "../../src/store/direct-statements"
import { testStore } from "../harness/store"
import { letter } from "../messages/letters"

const id = sql`${sql.param(sql.placeholder("id"), messages.id)}`
const status = sql`${sql.param(sql.placeholder("status"), messages.status)}`

async function withMessage() {
  const it = await testStore()
  const [message] = await it.store.tx((tx) => accept(tx, [letter()]))
  if (!message) throw new Error("nothing was accepted")
  return { ...it, message, [Symbol.asyncDispose]: () => it[Symbol.asyncDispose]() }
}

test("whole rows, chosen fields, joins and expressions read as drizzle reads them", async () => {
  await using it = await withMessage()
  const { read } = it.store
  const contents = eq(messageContents.message_id, messages.id)
  const statements = [
    read.select().from(messages).where(eq(messages.id, id)).prepare(),
    read.select().from(messageContents).where(eq(messageContents.message_id, id)).prepare(),
    read
      .select({ message: messages, content: messageContents.content })
      .from(messages)
      .innerJoin(messageContents, contents)
      .where(eq(messages.id, id))
      .prepare(),
    read
      .select({ status: messages.status, count: sql<number>`count(*)`, sandbox: messages.sandbox })
      .from(messages)
      .where(and(eq(messages.id, id), inArray(messages.status, ["queued"])))
      .prepare(),
  ]
  for (const statement of statements) {
    const direct = directly(statement)
    const values = { id: it.message.id }
    const expected: unknown = await statement.execute(values)
    expect(expected).toHaveLength(1)
    expect(direct?.(values)).toEqual(expected)
    expect(direct?.({ id: newId() })).toEqual(await statement.execute({ id: newId() }))
  }
})

test("changes are written, returned, and refused outside a transaction", async () => {
  await using it = await withMessage()
  const values = { id: it.message.id, status: "sending" }
  let late: (() => unknown) | undefined
  const rows = await it.store.tx(async (tx) => {
    const change = tx.update(messages).set({ status }).where(eq(messages.id, id))
    const direct = directly(change.returning().prepare())
    late = () => direct?.(values)
    return direct?.(values)
  })
  expect(rows).toEqual([{ ...it.message, status: "sending" }])
  expect(() => late?.()).toThrow("outside its transaction")
})

test("a join that may leave a table out is left to drizzle", async () => {
  await using it = await withMessage()
  const { read } = it.store
  const contents = eq(messageContents.message_id, messages.id)
  const statement = read.select().from(messages).leftJoin(messageContents, contents).prepare()
  expect(directly(statement)).toBeUndefined()
})
