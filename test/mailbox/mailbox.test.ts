import { describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import * as mails from "../../src/mailbox/mailbox"
import { openTestMailbox } from "./open-mailbox"

describe("a mail in the mailbox", () => {
  test("belongs to the project of its message", async () => {
    await using it = await openTestMailbox({ fallback: false })
    const message_id = await it.addMessage()

    await it.send(message_id, "ann@example.test")
    const { rows } = await it.list()
    expect(rows).toMatchObject([
      {
        email_id: message_id,
        from: "bell@example.test",
        to: "ann@example.test",
        subject: "Grüße",
      },
    ])
    const kept = await mails.find(it.store.read, it.project_id, rows[0]?.id ?? "")
    expect(kept).toMatchObject({ mail_from: "bell@example.test", recipients: ["ann@example.test"] })
    expect(kept.size).toBe(kept.raw.length)
  })

  test("without a message goes to the project of the last resort, or is refused", async () => {
    await using it = await openTestMailbox()
    expect(await it.send(newId(), "ann@example.test")).toMatchObject({ status: "delivered" })
    expect((await it.list()).rows).toMatchObject([{ email_id: null }])

    await using none = await openTestMailbox({ fallback: false })
    expect(await none.send(newId(), "ann@example.test")).toMatchObject({ status: "bounced" })
  })

  test("is not found from another project", async () => {
    await using it = await openTestMailbox()
    await it.send(newId(), "ann@example.test")
    const { rows } = await it.list()
    const other = await it.addProject()
    const found = mails.find(it.store.read, other, rows[0]?.id ?? "")
    expect(found).rejects.toMatchObject({ code: "not_found" })
    const list = await mails.list(it.store.read, other, {})
    expect([list.rows, await list.total()]).toEqual([[], 0])
  })
})

describe("the list", () => {
  test("has the newest first, in pages", async () => {
    await using it = await openTestMailbox()
    for (const name of ["one", "two", "three"]) await it.send(newId(), `${name}@example.test`)

    const { rows, total } = await it.list()
    expect(rows.map(({ to }) => to)).toEqual([
      "three@example.test",
      "two@example.test",
      "one@example.test",
    ])
    expect(total).toBe(3)
    const page = await it.list({}, { limit: 1, offset: 1 })
    expect(page).toMatchObject({ rows: [{ to: "two@example.test" }], total: 3 })
    const [newest] = rows
    const older = await it.list({}, { after: newest?.id })
    expect(older.rows).toEqual(rows.slice(1))
  })

  test.each<[filter: mails.MailFilter, found: number]>([
    [{ to: "ann@example.test" }, 1],
    [{ to: "ANN@Example.Test" }, 1],
    [{ to: "copy@example.test" }, 1],
    [{ to: "nn@example.test" }, 0],
    [{ from: "Bell@example.test" }, 2],
    [{ from: "other@example.test" }, 0],
    [{ search: "GRÜẞE" }, 2],
    [{ search: "grüße" }, 2],
    [{ search: "GRÜSSE" }, 0],
    [{ search: "gr" }, 2],
    [{ search: "bob@" }, 1],
    [{ search: "%" }, 0],
    [{ search: "_" }, 0],
    [{ search: "\\" }, 0],
    [{ since: isoFrom(millis() - 60_000) }, 2],
    [{ since: isoFrom(millis() + 3_600_000) }, 0],
    [{ to: "bob@example.test", search: "gr", from: "bell@example.test" }, 1],
  ])("by %j has %d", async (filter, found) => {
    await using it = await openTestMailbox()
    await it.send(newId(), "ann@example.test", "copy@example.test")
    await it.send(newId(), "bob@example.test")

    const { rows, total } = await it.list(filter)
    expect(rows).toHaveLength(found)
    expect(total).toBe(found)
  })

  test("is cleared of one recipient's mail, or of everything", async () => {
    await using it = await openTestMailbox()
    for (const name of ["one", "two", "two"]) await it.send(newId(), `${name}@example.test`)
    const clear = (filter: { to?: string }) => mails.clear(it.store, it.project_id, filter)

    expect(await clear({ to: "two@example.test" })).toEqual({ deleted: 2 })
    expect(await it.list()).toMatchObject({ rows: [{ to: "one@example.test" }], total: 1 })
    expect(await clear({})).toEqual({ deleted: 1 })
    expect(await it.list()).toEqual({ rows: [], total: 0 })
  })
})
