import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { openTestMailbox } from "./open-mailbox"

describe("at mailbox.test,", () => {
  test.each([
    ["bounce@mailbox.test", "bounced", "550 5.1.1", "NoEmail"],
    ["bounce+tag@mailbox.test", "bounced", "550 5.1.1", "NoEmail"],
    ["BOUNCE@Mailbox.Test", "bounced", "550 5.1.1", "NoEmail"],
    ["reject@mailbox.test", "bounced", "550 5.7.1", "PolicyRejected"],
    ["softbounce@mailbox.test", "retry", "451 4.2.0", null],
  ])("%s is %s with %s", async (to, status, words, bounce_subtype) => {
    await using it = await openTestMailbox()

    const outcome = await it.send(newId(), to)
    expect(outcome).toMatchObject({ status, bounce_subtype, address: to })
    expect(outcome.reason).toStartWith(words)
    expect((await it.list()).rows).toEqual([])
  })

  test.each(["ann@mailbox.test", "bounce@example.test", "debounce@mailbox.test"])(
    "%s is delivered",
    async (to) => {
      await using it = await openTestMailbox()
      expect(await it.send(newId(), to)).toMatchObject({ status: "delivered", reason: null })
    },
  )

  test("softbounce@ never gets better", async () => {
    await using it = await openTestMailbox()
    const message_id = await it.addMessage()
    for (let attempt = 1; attempt <= 4; attempt++) {
      expect((await it.send(message_id, "softbounce@mailbox.test")).status).toBe("retry")
    }
  })

  test("defer@ puts each message off once, after it was sent", async () => {
    await using it = await openTestMailbox()
    const [one, two] = [newId(), newId()]

    const first = await it.send(one, "defer@mailbox.test")
    expect(first).toMatchObject({ status: "retry", reply: { smtp_code: 451 } })
    expect(await it.send(two, "defer@mailbox.test")).toMatchObject({ status: "retry" })
    expect(await it.send(one, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
    expect(await it.send(two, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
    expect((await it.list()).total).toBe(2)
  })

  test("defer@ as a copy puts off nobody else", async () => {
    await using it = await openTestMailbox()
    const id = newId()
    const outcome = await it.send(
      id,
      "ann@mailbox.test",
      "defer@mailbox.test",
      "defer+2@mailbox.test",
    )
    expect([outcome, ...outcome.others]).toMatchObject([
      { address: "ann@mailbox.test", status: "delivered" },
      { address: "defer@mailbox.test", status: "retry", reply: { smtp_code: 451 } },
      { address: "defer+2@mailbox.test", status: "retry" },
    ])
    expect(await it.send(id, "defer@mailbox.test")).toMatchObject({ status: "delivered" })
  })

  test("slow@ is delivered in the end, and holds nobody else up", async () => {
    await using it = await openTestMailbox()

    const order: string[] = []
    const slow = it.send(newId(), "slow@mailbox.test").then((outcome) => {
      order.push("slow")
      return outcome
    })
    await it.send(newId(), "ann@mailbox.test")
    order.push("quick")
    expect(await slow).toMatchObject({ status: "delivered" })
    expect(order).toHaveLength(2)
  })

  test("complain@ takes the mail and complains about our message", async () => {
    await using it = await openTestMailbox()
    const message_id = await it.addMessage()

    expect(await it.send(message_id, "complain@mailbox.test")).toMatchObject({
      status: "delivered",
    })
    expect(it.complaints).toEqual([message_id])
    await it.send(newId(), "complain@mailbox.test")
    expect(it.complaints).toHaveLength(1)
  })
})
