import { afterAll, describe, expect, test } from "bun:test"
import { newId } from "../../src/core/ids"
import { secondsFromNow } from "../../src/core/time"
import { keepReceipts } from "../../src/providers/callbacks"
import type { ProviderNotice } from "../../src/providers/provider"
import { INSTANCE } from "../../src/providers/tables"
import { suppressions } from "../../src/suppressions/tables"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"
import { addText, eventsOf, NUMBER, read, sent, tell, typesOf, write } from "../sms/told"

const base = await testStore()
const { store } = base
afterAll(() => base[Symbol.asyncDispose]())

const says = (type: ProviderNotice["type"], more: Partial<ProviderNotice> = {}) => [
  { type, response: null, ...more },
]

async function sentText(more = {}) {
  const owner = await addProject(store)
  const id = await addText(store, owner)
  await sent(store, id, more)
  const { project_id } = owner
  const report = (...all: Parameters<typeof says>) =>
    tell(store, { project_id, message_id: id, notices: says(...all) })
  return { owner, id, report, status: async () => (await read(store, id)).status }
}

describe("reports of a text", () => {
  test.each<[string, ProviderNotice["type"][], string, string[]]>([
    ["that repeat", ["delivered", "delivered"], "delivered", ["delivered"]],
    ["that come late", ["delivered", "sent"], "delivered", ["delivered"]],
    ["that contradict", ["undelivered", "delivered", "failed"], "undelivered", ["undelivered"]],
    ["that say what is known", ["sent"], "sent", []],
  ])("%s: %p", async (_, types, status, told) => {
    const { owner, report, ...text } = await sentText()
    for (const type of types) await report(type)
    expect(await text.status()).toBe(status as never)
    const known = ["queued", "sent", ...told].map((type) => `sms.${type}`)
    expect(await typesOf(store, owner)).toEqual(known)
  })

  test("overtaking the end of the attempt waits for it", async () => {
    const owner = await addProject(store)
    const id = await addText(store, owner)
    const early = { project_id: owner.project_id, message_id: id, notices: says("delivered") }
    expect(await tell(store, early)).toMatchObject({ retry: expect.any(String) })
    await sent(store, id)
    await tell(store, early)
    expect((await read(store, id)).status).toBe("delivered")
  })

  test("of a text that nobody knows are kept for ten minutes", async () => {
    const { project_id } = await addProject(store)
    const unknown = { project_id, message_id: newId(), notices: says("delivered") }
    expect(await tell(store, unknown, secondsFromNow(-599))).toHaveProperty("retry")
    expect(await tell(store, unknown, secondsFromNow(-601))).toEqual({})
  })

  test("say code and price, which the event keeps and the error repeats", async () => {
    const { owner, id, report } = await sentText()
    const price = { amount: "0.0075", currency: "USD" }
    const response = "Unknown destination"
    await report("undelivered", { provider_code: "30005", price, response })
    expect((await read(store, id)).error).toMatchObject({
      code: "provider_error",
      message: response,
      provider_code: "30005",
    })
    const [last] = (await eventsOf(store, owner)).slice(-1)
    expect(last).toMatchObject({
      data: { error_code: "30005", error_message: response },
      detail: { provider_code: "30005", price, response },
    })
  })

  test("settle what was unconfirmed, with or without a new status", async () => {
    for (const type of ["sent", "delivered"] as const) {
      const { id, report } = await sentText({ reason: "unconfirmed" })
      expect((await read(store, id)).status_reason).toBe("unconfirmed")
      await report(type)
      const row = await read(store, id)
      expect([row.status, row.status_reason]).toEqual([type, null])
    }
  })
})

test("an attempt keeps what the provider said of price, code and sender", async () => {
  const { owner, id } = await sentText({
    sender: "Belfry",
    reply: { response: "OK", provider_code: "0", price: { amount: "0.05", currency: "EUR" } },
  })
  expect((await read(store, id)).sender).toBe("Belfry")
  const [last] = (await eventsOf(store, owner)).slice(-1)
  expect(last).toMatchObject({
    type: "sms.sent",
    data: { from: "Belfry" },
    detail: { provider_code: "0", price: { amount: "0.05", currency: "EUR" } },
  })
})

describe("a message is named", () => {
  test("by the provider's id, of the configuration that sent it", async () => {
    const { id, owner, status } = await sentText()
    const { project_id } = owner
    const config_id = newId()
    await store.tx((tx) =>
      keepReceipts(tx, [{ message_id: id, project_id, config_id, provider_message_id: "SM1" }]),
    )
    const notices = says("delivered")
    await tell(store, { config_id: newId(), project_id, provider_message_id: "SM1", notices })
    expect(await status()).toBe("sent")
    await tell(store, { config_id, project_id, provider_message_id: "SM1", notices })
    expect(await status()).toBe("delivered")
  })

  test("by our id of no text that another configuration or provider sent", async () => {
    const { id, owner, status } = await sentText()
    const told = { project_id: owner.project_id, message_id: id, notices: says("delivered") }
    const config_id = newId()
    await store.tx((tx) =>
      keepReceipts(tx, [
        { message_id: id, project_id: owner.project_id, config_id, provider_message_id: "SM2" },
      ]),
    )
    await tell(store, { ...told, config_id: newId() })
    await tell(store, { ...told, config_id, provider: "twilio" })
    expect(await status()).toBe("sent")
    await tell(store, { ...told, config_id })
    expect(await status()).toBe("delivered")
  })

  test("by our id only within the project of the configuration", async () => {
    const { id, status } = await sentText()
    const { project_id } = await addProject(store)
    const notices = says("delivered")
    await tell(store, { project_id, message_id: id, notices })
    await tell(store, { config_id: INSTANCE, project_id: null, message_id: id, notices })
    await tell(store, { project_id, message_id: "no id at all", notices })
    expect(await status()).toBe("sent")
  })
})

describe("who wants no more texts by the word of the provider", () => {
  const listed = async () => (await store.read.select().from(suppressions)).map(plain)
  const plain = ({
    project_id,
    address,
    channel,
    reason,
    origin,
  }: typeof suppressions.$inferSelect) => ({
    ...{ project_id, address, channel, reason, origin },
  })
  const rowOf = (project_id: string) => ({
    ...{ project_id, address: NUMBER, channel: "sms", reason: "unsubscribe", origin: "event" },
  })

  test("is suppressed by a report, also where it changes no status", async () => {
    for (const type of ["failed", "undelivered"] as const) {
      for (const before of ["sent", "delivered"] as const) {
        const { owner, report, status } = await sentText()
        await report(before)
        await report(type, { provider_code: "21610", opted_out: true })
        expect(await status()).toBe(before === "sent" ? type : "delivered")
        expect(await listed()).toContainEqual(rowOf(owner.project_id) as never)
      }
    }
  })

  test.each(["failed", "undelivered"] as const)(
    "may write START, and the same report (%s) coming again changes nothing",
    async (type) => {
      const { owner, report } = await sentText()
      await report(type, { opted_out: true })
      await write(store, owner, "START")
      await report(type, { opted_out: true })
      expect(await listed()).not.toContainEqual(rowOf(owner.project_id) as never)
    },
  )

  test("is suppressed by the answer to an attempt", async () => {
    const refused = { status: "failed", opted_out: true, reason: "unsubscribed" } as const
    const { owner, status } = await sentText({ ...refused, code: "provider_error" })
    expect(await status()).toBe("failed")
    expect(await listed()).toContainEqual(rowOf(owner.project_id) as never)
  })
})
