import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { isoFrom, millis } from "../../src/core/time"
import * as mails from "../../src/mailbox/mailbox"
import { mailboxMails } from "../../src/mailbox/tables"
import { messageFiles } from "../../src/messages/tables"
import { mailTo } from "../contracts/email-provider"
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
    const kept = await mails.find(it, it.project_id, rows[0]?.id ?? "")
    expect(kept).toMatchObject({ mail_from: "bell@example.test", recipients: ["ann@example.test"] })
    expect(kept.size).toBe(kept.raw.length)
  })

  test("is a file where it is large, which goes with it", async () => {
    await using it = await openTestMailbox()
    const { store, project_id } = it
    const raw = Buffer.from(`Subject: Large\r\n\r\n${"A long line of text.\r\n".repeat(30_000)}`)
    await it.provider.send({ ...mailTo("ann@example.test"), message_id: newId(), raw })
    const [{ id = "" } = {}] = (await it.list()).rows
    const row = await mails.findRow(store.read, project_id, id)
    expect(row.raw.length).toBeLessThan(100)
    const kept = await mails.find(it, project_id, id)
    expect(kept).toMatchObject({ size: raw.length, raw })
    const [sha256 = ""] = row.raw.toString().match(/[0-9a-f]{64}/) ?? []
    rmSync(it.blobs.path(sha256)) // as after the restore of a backup that lacks it
    expect(mails.find(it, project_id, id)).rejects.toMatchObject({ code: "not_found" })
    const named = () => store.read.select().from(messageFiles)
    expect(await named()).toEqual([{ message_id: id, sha256: Bun.SHA256.hash(raw, "hex") }])
    await store.tx((tx) => mails.remove(tx, project_id, id))
    expect(await named()).toEqual([])
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
    const found = mails.find(it, other, rows[0]?.id ?? "")
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

  test("finds mail of a version without search keys, and mail with a long subject", async () => {
    await using it = await openTestMailbox()
    await it.send(newId(), "ann@example.test")
    const ours = eq(mailboxMails.project_id, it.project_id)
    await it.store.tx((tx) => tx.update(mailboxMails).set({ search_key: null }).where(ours))
    await it.send(newId(), "bob@example.test")
    const found = async (filter: mails.MailFilter) =>
      (await it.list(filter)).rows.map(({ to }) => to)
    const both = ["bob@example.test", "ann@example.test"]
    expect(await found({ search: "GRÜ" })).toEqual(both)
    expect(await found({ search: "ann@" })).toEqual(["ann@example.test"])
    expect(await found({ from: "bell@example.test" })).toEqual(both)
    expect(await found({ from: "ell@example.test" })).toEqual([])

    const [row] = await it.store.read.select().from(mailboxMails).where(ours)
    const { subject_key: _, search_key: __, read_at: ___, ...mail } = row as mails.MailboxMail
    const subject = `Begin ${"€".repeat(3000)} end`
    await it.store.tx((tx) => mails.keep(tx, { ...mail, id: newId(), subject }))
    expect((await it.list({ search: "begin €" })).total).toBe(1)
    expect((await it.list({ search: "end" })).total).toBe(0)
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
