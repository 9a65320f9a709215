import { eq } from "drizzle-orm"
import { sleep } from "../../src/core/time"
import { bind } from "../../src/jobs/jobs"
import { jobs } from "../../src/jobs/tables"
import { resend, webhookResend } from "../../src/webhooks/resend"
import { deliveries, STATE_OF } from "../../src/webhooks/tables"
import type { Client } from "../harness/client"
import type { TestProject, TestService } from "../harness/service"
import { engine } from "../harness/store"
import { WorkLoops } from "../harness/work-loops"

/** Nobody listens there. */
export const NOWHERE = "http://127.0.0.1:65000/hook"

/** What a request for an endpoint says at least. */
export const hook = (fields: Record<string, unknown> = {}) => ({
  url: NOWHERE,
  events: ["*"],
  ...fields,
})

/** Makes an endpoint over the API; its record, with the secret. */
export async function endpoint(project: Client, fields: Record<string, unknown> = {}) {
  const { status, body } = await project.post("/v1/webhooks", hook(fields))
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.data
}

/** An event that every endpoint of the project hears of; its envelope. */
export async function happens(project: Client, type = "email.sent", data: object = {}) {
  return (await project.post("/v1/events/trigger", { type, data })).body.data
}

export async function deliveriesOf(project: Client, webhook_id: string, query = "") {
  return (await project.get(`/v1/webhooks/${webhook_id}/deliveries${query}`)).body.data
}

type Change = Partial<typeof deliveries.$inferSelect>

/** As if the attempts had come out like this. */
export function settleAs({ store }: TestService, { project_id }: TestProject, change: Change) {
  const { status } = change
  const whole = { ...(status && { state: STATE_OF[status] }), ...change }
  const ours = eq(deliveries.project_id, project_id)
  return store.tx((tx) => tx.update(deliveries).set(whole).where(ours))
}

/** Runs what was put off until nothing of it is left. */
export async function replayAll({ store }: TestService): Promise<void> {
  const handlers = bind(webhookResend, resend)
  const loop = new WorkLoops({
    store,
    work: { handlers },
    concurrency: 2,
    lease_ms: 30_000,
    alone: engine === "sqlite",
  })
  await loop.start()
  try {
    const ours = store.read
      .select({ id: jobs.id })
      .from(jobs)
      .where(eq(jobs.name, "webhooks.resend"))
    while ((await ours).length > 0) await sleep(5)
  } finally {
    await loop.stop(5000)
  }
}
