import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { Problems } from "../../src/core/errors"
import { projectCaller } from "../../src/identity/caller"
import { projects } from "../../src/identity/tables"
import { providerConfigs } from "../../src/providers/tables"
import { prepare } from "../../src/sms/prepare"
import { readSendText } from "../../src/sms/sms-input"
import { expectedSender, limitedCountry } from "../../src/sms/sms-routing"
import { sharedService } from "../harness/shared-service"
import { sampleRow } from "../harness/table-rows"

const config = (provider: string, ...allowed_countries: string[]) => ({
  ...{ provider, settings: allowed_countries.length > 0 ? { allowed_countries } : {} },
})

test.each([
  ["a country that nobody lists", [config("twilio")], "+43"],
  ["one beside another that is listed", [config("vonage", "+49"), config("twilio")], "+43"],
  ["a listed one", [config("twilio", "+43")], undefined],
  [
    "one that the second configuration lists",
    [config("twilio"), config("vonage", "+4366")],
    undefined,
  ],
  ["a text to log", [config("log"), config("twilio")], undefined],
  ["a text that only the second may take", [config("log", "+49"), config("twilio")], "+43"],
  ["the provider of the instance", [], undefined],
])("%s", (_, configs, prefix) => {
  expect(limitedCountry(configs, "+436601234567")).toBe(prefix)
})

test("a send by an own provider names its country, and one in the sandbox does not", async () => {
  const service = await sharedService()
  const { store, parts } = service
  const rules = { read: store.read, templates: parts.rules.templates }
  const text = readSendText({ to: "+436601234567", body: "Hi" }, new Problems())
  const origin = { source: "api", batch_id: null, idempotency_key: null } as const
  for (const [sandbox, country] of [
    [false, "+43"],
    [true, undefined],
  ] as const) {
    const { account_id, project_id } = await service.project()
    const row = { account_id, project_id, kind: "sms_provider", provider: "twilio", enabled: true }
    const given = { ...row, settings: {}, status: "active", paused_until: null }
    const config = sampleRow(providerConfigs, given) as typeof providerConfigs.$inferInsert
    await store.tx((tx) => tx.insert(providerConfigs).values(config))
    const settings = { sandbox }
    await store.tx((tx) => tx.update(projects).set({ settings }).where(eq(projects.id, project_id)))
    const caller = await projectCaller(store.read, project_id)
    if (!caller) throw new Error("the project does not send")
    expect((await prepare(text, { caller, ...origin }, rules)).message.country).toBe(country)
  }
})

test("a messaging service chooses the sender, also where the configuration has one", () => {
  const settings = { from: "+15005550006", per_country_from: { "+43": "+4366" } }
  const service = { ...settings, messaging_service_sid: `MG${"0".repeat(32)}` }
  const shown = (own: Record<string, unknown>) =>
    expectedSender({ provider: "twilio", settings: own }, "+436601234567")
  expect([shown(settings), shown(service)]).toEqual(["+4366", null])
})
