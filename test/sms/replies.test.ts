import { afterAll, describe, expect, test } from "bun:test"
import { and, asc, eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { events } from "../../src/events/tables"
import { messageContents, messages } from "../../src/messages/tables"
import { keepReceipts } from "../../src/providers/callbacks"
import { keywordOf } from "../../src/sms/replies"
import { total } from "../../src/store/counters"
import { suppress } from "../../src/suppressions/suppressions"
import { suppressions } from "../../src/suppressions/tables"
import { movableClock } from "../harness/clock"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"
import { addText, eventsOf, NUMBER, OURS, sent, tell, typesOf, write } from "./told"

const clock = movableClock()
const base = await testStore()
const { store } = base
afterAll(() => base[Symbol.asyncDispose]())

type Owner = Awaited<ReturnType<typeof addProject>>

const arrived = ({ project_id }: Owner) =>
  store.read
    .select()
    .from(messages)
    .where(and(eq(messages.project_id, project_id), eq(messages.status, "received")))
    .orderBy(asc(messages.id))

const listed = async ({ project_id }: Owner) => {
  const rows = await store.read.select().from(suppressions)
  return rows.filter((row) => row.project_id === project_id).map(({ reason }) => reason)
}

const answeredBy = async (owner: Owner) =>
  (await eventsOf(store, owner, "sms.received")).map(({ data }) => data.in_reply_to)

describe("a text that came in", () => {
  test("is a message with an event, and names what it answers", async () => {
    const owner = await addProject(store)
    const id = await addText(store, owner)
    await sent(store, id)
    await write(store, owner, " Yes, 5 € ")
    const [row, ...more] = await arrived(owner)
    expect(more).toEqual([])
    expect(row).toMatchObject({
      ...{ channel: "sms", address: NUMBER, sender: OURS, units: 0, provider: "log" },
      recipients: [{ email: NUMBER, status: "received" }],
      envelope: { sms: { encoding: "gsm7", segments: 1, in_reply_to: id } },
      last_event_type: "sms.received",
    })
    const [event] = await store.read
      .select()
      .from(events)
      .where(eq(events.subject_id, row?.id ?? ""))
    expect(event).toMatchObject({
      type: "sms.received",
      data: {
        ...{ sms_message_id: row?.id, to: OURS, from: NUMBER, provider: "log", metadata: {} },
        ...{
          segments: 1,
          body: " Yes, 5 € ",
          in_reply_to: id,
          error_code: null,
          error_message: null,
        },
      },
    })
    const contents = store.read.select().from(messageContents)
    const [content] = await contents.where(eq(messageContents.message_id, row?.id ?? ""))
    expect(content?.content).toEqual({ body: " Yes, 5 € " })
    const counted = ["sms", "sms.received", "sms.sent"]
    const counts = counted.map((name) => total(store.read, owner.project_id, name))
    expect(await Promise.all(counts)).toEqual([2, 1, 1])
  })

  test("counts once for one configuration, whoever repeats it", async () => {
    const owner = await addProject(store)
    const [one, two] = [newId(), newId()]
    for (const config of [one, one, two]) {
      await write(store, owner, "STOP", { provider_message_id: "SM7" }, config)
    }
    expect(await arrived(owner)).toHaveLength(2)
    for (const _ of [1, 2]) await write(store, owner, "Hi", { provider_message_id: null })
    expect(await arrived(owner)).toHaveLength(4)
  })

  test("counts though a text that was sent has the same id at its gateway", async () => {
    const owner = await addProject(store)
    const { project_id } = owner
    const [id, config_id] = [await addText(store, owner), newId()]
    await sent(store, id)
    const receipt = { message_id: id, project_id, config_id, provider_message_id: "7" }
    await store.tx((tx) => keepReceipts(tx, [receipt]))
    const long = `\0${"7".repeat(100_000)}`
    for (const provider_message_id of ["7", "7", long]) {
      await write(store, owner, "Hi", { provider_message_id }, config_id)
    }
    expect(await arrived(owner)).toHaveLength(2)
    const notices = [{ type: "delivered", response: null } as const]
    await tell(store, { config_id, project_id, provider_message_id: "7", notices })
    const [{ status } = {}] = await store.read.select().from(messages).where(eq(messages.id, id))
    expect(status).toBe("delivered")
  })

  test("answers the last text that was sent, for 72 hours", async () => {
    const owner = await addProject(store)
    const [first, last] = [await addText(store, owner), await addText(store, owner)]
    await write(store, owner, "Before anything was sent")
    await sent(store, last)
    clock.advance({ seconds: 60 })
    await sent(store, first) // it was scheduled, and left later
    await write(store, owner, "At once")
    clock.advance({ seconds: 72 * 3600 - 1 })
    await write(store, owner, "Late")
    clock.advance({ seconds: 2 })
    await write(store, owner, "Too late")
    expect(await answeredBy(owner)).toEqual([null, first, first, null])
  })

  test("may be long, strange and from nobody, and then no keyword counts", async () => {
    const owner = await addProject(store)
    for (const from of ["DHL", "62000", "+49 151 1", ""]) {
      await write(store, owner, "STOP", { from })
    }
    await write(store, owner, `\0${"x".repeat(20_000)}`)
    expect((await eventsOf(store, owner)).at(-1)?.data.body).toHaveLength(10_000)
    expect(await listed(owner)).toEqual([])
    expect(await arrived(owner)).toHaveLength(5)
  })

  test("for a project that is gone is dropped", async () => {
    const owner = { account_id: newId(), project_id: newId() }
    await write(store, owner, "STOP")
    expect(await typesOf(store, owner)).toEqual([])
  })
})

describe("a keyword", () => {
  const heard = (text: string) =>
    keywordOf({ provider_message_id: null, from: NUMBER, to: OURS, text })

  test.each(["STOP", "stop", " Stop\r\n", "StopAll", "unsubscribe", "CANCEL", "end", "Quit"])(
    "%p ends",
    (text) => expect(heard(text)).toBe("stop"),
  )

  test.each(["START", " unstop "])("%p begins again", (text) => expect(heard(text)).toBe("start"))

  test.each(["STOP.", "stop 🙏", "please stop", "STOP STOP", "", "S T O P", "YES"])(
    "is not %p",
    (text) => expect(heard(text)).toBeUndefined(),
  )

  test("of the provider wins over the words", async () => {
    const owner = await addProject(store)
    await write(store, owner, "ARRET", { keyword: "stop" })
    await write(store, owner, "START", { keyword: "help" })
    expect(await listed(owner)).toEqual(["unsubscribe"])
  })

  test("suppresses the number once, and lifts what it made alone", async () => {
    const owner = await addProject(store)
    for (const text of ["STOP", "Stop"]) await write(store, owner, text)
    expect(await listed(owner)).toEqual(["unsubscribe"])
    await write(store, owner, "START")
    expect(await listed(owner)).toEqual([])
    const by_hand = { channel: "sms", address: NUMBER, reason: "manual", origin: "api" } as const
    await store.tx((tx) => suppress(tx, owner.project_id, by_hand))
    for (const text of ["STOP", "HELP", "START"]) await write(store, owner, text)
    expect(await listed(owner)).toEqual(["manual"])
    expect(await typesOf(store, owner)).toEqual([
      ...["sms.received", "suppression.created", "sms.received"],
      ...["sms.received", "suppression.deleted", "suppression.created"],
      ...["sms.received", "sms.received", "sms.received"],
    ])
  })
})
