import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { providerHold } from "../../src/jobs/holds"
import { HELD, READY } from "../../src/jobs/work-item"
import { wakeStranded, wakeWaiting } from "../../src/messages/provider-jobs"
import { messages } from "../../src/messages/tables"
import { providerConfigs } from "../../src/providers/tables"
import { mail } from "../harness/mail"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import { testService } from "../harness/service"

quietLog()

const CONFIGS = {
  email: { provider: "smtp", credentials: { host: "127.0.0.1", port: 9, tls: "none" } },
  sms: {
    provider: "http",
    credentials: { url: "http://127.0.0.1:9/" },
    settings: { from: "Bell" },
  },
}

const channels = ["email", "sms"] as const

test("texts and emails wait for the providers of their own channel", async () => {
  await using service = await testService()
  const { store } = service
  const { owner, account_id, project_id } = await team(service)
  const here = { "x-account-id": account_id, "x-project-id": project_id }
  for (const channel of channels) {
    const made = await owner.post(
      `/v1/providers/${channel}_provider/config`,
      CONFIGS[channel],
      here,
    )
    expect(made.status).toBe(201)
  }
  const text = { to: "+436601234567", body: "Hello" }
  expect((await owner.post("/v1/emails", mail(), here)).status).toBe(201)
  expect((await owner.post("/v1/sms", text, here)).status).toBe(201)
  const paused = { status: "error" as const, paused_until: secondsFromNow(60) }
  await store.tx(async (tx) => {
    await tx.update(providerConfigs).set(paused).where(eq(providerConfigs.project_id, project_id))
    for (const channel of channels) {
      const held = { state: HELD, owner: providerHold(project_id, channel) }
      await tx.update(messages).set(held).where(eq(messages.channel, channel))
    }
  })
  const states = async () => {
    const rows = await store.read.select().from(messages)
    return Object.fromEntries(rows.map(({ channel, state }) => [channel, state]))
  }
  const resumed = (kind: "email_provider" | "sms_provider") =>
    store.tx((tx) =>
      tx
        .update(providerConfigs)
        .set({ status: "active", paused_until: null })
        .where(eq(providerConfigs.kind, kind)),
    )

  await wakeStranded(store)
  expect(await states()).toEqual({ email: HELD, sms: HELD })
  await resumed("sms_provider")
  await wakeWaiting(store).run({ project_id }, {} as never)
  expect(await states()).toEqual({ email: HELD, sms: READY })
  await resumed("email_provider")
  await wakeStranded(store)
  expect(await states()).toEqual({ email: READY, sms: READY })
})
