import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { envelopeOf } from "../../src/events/feed"
import { lookup } from "../../src/events/registry"
import { events } from "../../src/events/tables"
import { feedback } from "../../src/messages/settle"
import { bounced, deliverAll, delivered } from "../harness/delivery"
import { type JsonSchema, judges } from "../harness/json-schema"
import { mail } from "../harness/mail"
import { published } from "../harness/published"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { outcome, told } from "../messages/letters"
import { postOffice } from "../messages/post-office"
import { endpoint } from "../webhooks/endpoints"

/** The types that something emits so far; the list grows as features come. */
const EMITTED = [
  "email.bounced",
  "email.complained",
  "email.delivered",
  "email.failed",
  "email.queued",
  "email.sent",
  "email.soft_bounced",
  "suppression.created",
  "webhook.disabled",
  "webhook.test",
]

const service = await sharedService()
const { store } = service

/** The first attempt puts it off. */
async function deferral() {
  const retry = { status: "retry" as const }
  await using office = await postOffice(outcome([told("to@example.test", retry)]))
  await office.accept()
  await office.runDue()
  return await office.store.read.select().from(events)
}

const refused = (email: string) => ({
  ...delivered(email),
  status: "failed" as const,
  reason: "554 5.7.1 no",
})

const answers = { ann: delivered, bounce: bounced, refuse: refused }

const answer = (email: string) =>
  answers[(email.split("@")[0] ?? "") as keyof typeof answers](email)

async function everythingThereIs(project: TestProject) {
  const [complainer] = await Promise.all(
    Object.keys(answers).map(async (name) => {
      const sent = await project.post("/v1/emails", mail({ to: `${name}@example.test` }))
      return sent.body.id as string
    }),
  )
  await deliverAll(service, answer)
  const complaint = { type: "complained", complaint_feedback_type: "abuse" } as const
  await store.tx((tx) =>
    feedback(tx, complainer ?? "", { ...complaint, address: "ann@example.test" }),
  )
  const { id } = await endpoint(project)
  await project.post(`/v1/webhooks/${id}/test`)
  await project.post(`/v1/webhooks/${id}/pause`)
  const ours = eq(events.project_id, project.project_id)
  return [...(await deferral()), ...(await store.read.select().from(events).where(ours))]
}

test("these types are emitted so far, each with the fields that the registry tells of", async () => {
  const rows = await everythingThereIs(await service.project())
  expect([...new Set(rows.map(({ type }) => type))].sort()).toEqual(EMITTED)
  for (const { type, data } of rows) {
    const fields = lookup(type)?.fields.map(({ name }) => name) ?? []
    const whole = fields.filter((name) => !name.includes("."))
    expect([type, Object.keys(data).sort()]).toEqual([type, whole.sort()])
  }
})

test("an event is what the published webhook of its type says, to the last field", async () => {
  const description = await published()
  const validatorOf = judges(description)
  const rows = await everythingThereIs(await service.project())
  const faults = rows.flatMap((row) => {
    const { post } = description.webhooks[row.type] as { post: Webhook }
    const out: string[] = []
    validatorOf(post.requestBody.content["application/json"].schema)(envelopeOf(row), row.type, out)
    return out
  })
  expect(faults).toEqual([])
})

interface Webhook {
  requestBody: { content: { "application/json": { schema: JsonSchema } } }
}
