import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { jobs } from "../../src/jobs/tables"
import { readTree } from "../../src/lib/mail-tree"
import { list } from "../../src/mailbox/mailbox"
import { mailboxMails } from "../../src/mailbox/tables"
import { textSimulator } from "../../src/mailbox/text-simulator"
import type { OutgoingText } from "../../src/sms/providers/provider"
import { addProject } from "../harness/project-rows"
import { testStore } from "../harness/store"
import { addText, NUMBER, OURS, read, tell } from "../sms/told"

const base = await testStore()
const { store } = base
afterAll(() => base[Symbol.asyncDispose]())

const BODY = "Grüße!\nIhr Paket ist da 📦"

async function textOf(owner: Awaited<ReturnType<typeof addProject>>, more = {}) {
  const message_id = await addText(store, owner)
  const { project_id } = owner
  const text: OutgoingText = {
    ...{ message_id, project_id, to: [NUMBER], from: null, text: BODY },
    ...{ encoding: "ucs2", attempt: 1, ...more },
  }
  return text
}

const feedbackOf = async ({ project_id }: { project_id: string }) =>
  (await store.read.select().from(jobs).where(eq(jobs.name, "provider.feedback"))).filter(
    (row) => row.project_id === project_id,
  )

test("a text stands in the mailbox, and its reports come at their time", async () => {
  const owner = await addProject(store)
  const text = await textOf(owner)
  const received = { provider_message_id: "1", from: NUMBER, to: OURS, text: "Yes" }
  const simulator = textSimulator(store, true)
  await simulator.show(text, "Ann's Shop")
  await simulator.report(text, { type: "delivered" }, 1)
  await simulator.report(text, { received }, 2)
  const { rows } = await list(store.read, owner.project_id, { to: "14155550101@sms.mailbox.test" })
  expect(rows).toMatchObject([
    {
      ...{ email_id: text.message_id, status: "queued", subject: "Grüße!", attachments: 0 },
      ...{ from: "ann-s-shop@sms.mailbox.test", to: "14155550101@sms.mailbox.test" },
    },
  ])
  expect((await list(store.read, owner.project_id, { to: NUMBER })).rows).toHaveLength(1)
  const [mail] = await store.read.select().from(mailboxMails)
  const raw = Buffer.from(mail?.raw ?? "")
  expect([mail?.size, raw.toString()]).toEqual([raw.length, expect.stringContaining("Ann's Shop")])
  expect(readTree(raw).leaves).toHaveLength(1)
  const later = (await feedbackOf(owner)).map(({ payload, created_at, run_at }) => ({
    payload,
    seconds: Math.round((Date.parse(run_at) - Date.parse(created_at)) / 1000),
  }))
  const { message_id } = text
  expect(later.sort((a, b) => a.seconds - b.seconds)).toMatchObject([
    { payload: { provider: "log", message_id, notices: [{ type: "delivered" }] }, seconds: 1 },
    { payload: { received }, seconds: 2 },
  ])
})

test("without a mailbox only the reports come, and they reach the text", async () => {
  const owner = await addProject(store)
  const text = await textOf(owner)
  const simulator = textSimulator(store, false)
  await simulator.show(text, OURS)
  await simulator.report(text, { type: "delivered" }, 1)
  expect((await list(store.read, owner.project_id, {})).rows).toEqual([])
  const [job] = await feedbackOf(owner)
  expect(await tell(store, job?.payload as never)).toHaveProperty("retry")
  expect((await read(store, text.message_id)).status).toBe("queued")
})

test("a text that is gone leaves no mail", async () => {
  const owner = await addProject(store)
  const text = await textOf(owner, { message_id: newId() })
  await textSimulator(store, true).show(text, OURS)
  expect((await list(store.read, owner.project_id, {})).rows).toEqual([])
})
