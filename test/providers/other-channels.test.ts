import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { LOCAL } from "../../src/audit-log/audit-log"
import { openSecrets } from "../../src/core/secrets"
import { heldFor, providerHold } from "../../src/jobs/holds"
import { jobs } from "../../src/jobs/tables"
import { probeProvider } from "../../src/messages/provider-jobs"
import { callbackRoutes } from "../../src/providers/callbacks-routes"
import * as configs from "../../src/providers/configs"
import { Failover } from "../../src/providers/failover"
import { closeInstance, openInstance, probeAgain } from "../../src/providers/health"
import { OpenProviders } from "../../src/providers/open-providers"
import { FAULTS, type ProviderDescriptor } from "../../src/providers/provider"
import { routing } from "../../src/providers/routing"
import type { ConfigSettings } from "../../src/providers/schemas"
import type { ConfigRow } from "../../src/providers/tables"
import { type Carriers, pigeon, pigeons, type Text } from "../fakes/pigeon"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { testStore } from "../harness/store"

const logged = quietLog()

const KIND = "sms_provider"
const OWNER = { account_id: idFor("account_1"), project_id: idFor("project_1") }
const TOKEN = "a very secret token"

async function texts() {
  const base = await testStore()
  const { store, folder } = base
  const secrets = openSecrets({ data_dir: folder, master_key: null })
  const carriers: Carriers = new Map()
  const environment = pigeons(carriers)
  const open_providers = new OpenProviders(environment, secrets)
  const failover = new Failover<Text>({
    ...{ store, kind: KIND, providers: open_providers, breaking: FAULTS },
  })
  return {
    ...base,
    secrets,
    carriers,
    environment,
    open_providers,
    send: (body: string) =>
      failover.send({ message_id: idFor(body), project_id: OWNER.project_id, to: ["+1"], body }),
    async add(account: string, priority: number, settings: ConfigSettings = {}) {
      carriers.set(account, { got: [] })
      const wanted = {
        kind: KIND,
        provider: "pigeon",
        name: account,
        priority,
        credentials: { account, auth_token: TOKEN },
        settings,
      } as const
      const maker = { secrets, by: LOCAL, table: environment.table }
      return (await store.tx((tx) => configs.set(tx, OWNER, wanted, maker))).row
    },
    async [Symbol.asyncDispose]() {
      await failover.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

test("a channel without any provider has messages wait", async () => {
  await using it = await texts()
  expect(await it.send("hello").catch((error: Error) => error.name)).toBe("DeferredError")
})

test("the log calls the instance's own provider instance", async () => {
  await using it = await texts()
  const open = () => {
    throw new Error("no roof")
  }
  const own = { descriptor: { ...pigeon, open } as ProviderDescriptor, credentials: {} }
  it.environment.own.sms = own
  await openInstance(it.store, it.secrets, KIND, own)
  expect(await it.send("hello").catch((error: Error) => error.name)).toBe("DeferredError")
  const line = logged().find((one) => one.includes("a provider cannot be opened"))
  expect(JSON.parse(line ?? "{}")).toMatchObject({ level: "error", config_id: "instance" })
})

test("texts go to the first provider of the project, and to the next one when it is away", async () => {
  await using it = await texts()
  await it.add("one", 1)
  await it.add("two", 2)
  expect(await it.send("hello")).toMatchObject({ status: "sent", provider: "pigeon" })
  it.carriers.set("one", { fault: "connection", got: [] })
  const outcome = await it.send("hello again")
  expect(outcome).toMatchObject({ status: "sent" })
  expect(outcome.transcript).toContain("* trying the next provider: pigeon (two)")
  expect(it.carriers.get("two")?.got).toEqual(["hello again"])
})

test("a configuration that does not allow the country is passed over", async () => {
  await using it = await texts()
  await it.add("austria", 1, { allowed: ["+43"] })
  await it.add("everywhere", 2)
  expect(await it.send("hello")).toMatchObject({ status: "sent" })
  expect([it.carriers.get("austria")?.got, it.carriers.get("everywhere")?.got]).toEqual([
    [],
    ["hello"],
  ])
})

test("a text that no configuration allows fails, and waits where a paused one allows it", async () => {
  await using it = await texts()
  await it.add("austria", 1, { allowed: ["+43"] })
  expect(await it.send("hello")).toMatchObject({
    status: "failed",
    code: "validation_error",
    reason: expect.stringContaining("their settings allow others only"),
  })
  await it.add("everywhere", 2)
  it.carriers.set("everywhere", { fault: "authentication", got: [] })
  for (const body of ["refused", "another"]) {
    expect(await it.send(body).catch((error: Error) => error.name)).toBe("DeferredError")
  }
})

test.each(["connection", "infrastructure"] as const)(
  "after five faults (%s) in a row a provider of texts is asked last",
  async (fault) => {
    await using it = await texts()
    await it.add("one", 1)
    await it.add("two", 2)
    it.carriers.set("one", { fault, got: [] })
    const transcripts: boolean[] = []
    for (const body of ["1", "2", "3", "4", "5", "6"]) {
      const { transcript } = await it.send(body)
      transcripts.push(transcript.some((line) => line.includes("trying the next provider")))
    }
    expect(transcripts).toEqual([true, true, true, true, true, false])
  },
)

test("who does not answer is asked last after five texts, and no other provider gets those", async () => {
  await using it = await texts()
  await it.add("one", 1)
  await it.add("two", 2)
  it.carriers.set("one", { is_silent: true, got: [] })
  for (const body of ["1", "2", "3", "4", "5", "6"]) await it.send(body)
  expect([it.carriers.get("one")?.got, it.carriers.get("two")?.got]).toEqual([
    ["1", "2", "3", "4", "5"],
    ["6"],
  ])
})

test("a login that was refused stays refused while a text gets no answer", async () => {
  await using it = await texts()
  await it.add("one", 1)
  it.carriers.set("one", { fault: "authentication", got: [] })
  await it.send("first")
  const row = async () => (await routing(it.store.read, KIND, OWNER.project_id))[0] as ConfigRow
  const probe = { message_id: idFor("probe") }
  await it.store.tx(async (tx) => probeAgain(tx, await row(), probe))
  it.carriers.set("one", { is_silent: true, got: [] })
  expect(await it.send("probe")).toMatchObject({ status: "sent", is_unanswered: true })
  expect(await row()).toMatchObject({ status: "error", paused_until: expect.any(String) })
})

test("where only a text shows that a login is refused, each minute one text asks, and nobody is told again", async () => {
  await using it = await texts()
  const { id, project_id } = await it.add("one", 1)
  await it.add("two", 2)
  it.carriers.set("one", { fault: "authentication", is_blind: true, got: [] })
  const row = async () => (await routing(it.store.read, KIND, project_id))[0] as ConfigRow
  const probe = async () => {
    const due = (await row()).paused_until ?? ""
    const job = { config_id: id, project_id, due }
    const { done } = await probeProvider(it.store, it.open_providers).run(job, {} as never)
    await it.store.tx(async (tx) => done?.(tx))
  }
  for (const body of ["1", "2", "3"]) {
    expect(await it.send(body)).toMatchObject({ status: "sent" })
    expect((await row()).probe_message_id).toBeNull()
    await probe()
    expect(await row()).toMatchObject({ status: "error", probe_message_id: id })
  }
  const told = it.store.read.select().from(jobs).where(eq(jobs.name, "provider.refused"))
  expect(await told).toHaveLength(1)
  it.carriers.set("one", { got: [] })
  await it.send("4")
  expect(await row()).toMatchObject({ status: "active", paused_until: null })
  expect([it.carriers.get("one")?.got, it.carriers.get("two")?.got]).toEqual([
    ["4"],
    ["1", "2", "3"],
  ])
})

test("texts that wait for a refused login wait under a hold of their channel", async () => {
  await using it = await texts()
  await it.add("one", 1)
  it.carriers.set("one", { fault: "authentication", got: [] })
  const { project_id } = OWNER
  const by = providerHold(project_id, "sms")
  expect(await it.send("first")).toMatchObject({ login_refused: { by } })
  expect(await it.send("second").catch((error) => error)).toMatchObject({ by })
  expect(heldFor(by)).toEqual({ project_id, channel: "sms" })
  expect(heldFor(providerHold(project_id))).toEqual({ project_id, channel: "email" })
})

test("without a provider of its own the instance has no row of one", async () => {
  await using it = await texts()
  const own = { descriptor: pigeon as ProviderDescriptor, credentials: { account: "own" } }
  await openInstance(it.store, it.secrets, KIND, own)
  expect(await routing(it.store.read, KIND, OWNER.project_id)).toHaveLength(1)
  await closeInstance(it.store, KIND)
  expect(await routing(it.store.read, KIND, OWNER.project_id)).toEqual([])
})

test("a configuration of texts is sealed and masked, and is called back under its channel", async () => {
  await using it = await texts()
  const row = await it.add("one", 1)
  expect(row.credentials).not.toContain(TOKEN)
  const { secrets, environment } = it
  const shown = configs.toResponse(row, {
    secrets,
    link_base: "https://b.test",
    table: environment.table,
  })
  expect(shown.credentials).toEqual({ account: "one", auth_token: "****oken" })
  expect(shown.callback_url).toStartWith("https://b.test/v1/callbacks/sms/pigeon/")
  const { store, open_providers } = it
  const parts = { store, secrets, open_providers, link_base: () => "" }
  const routes = callbackRoutes(parts, environment.table)
  const path = "/v1/callbacks/sms/{provider}/{config_token}"
  expect(routes.map((row) => `${row.method} ${row.path}`)).toEqual([`POST ${path}`, `GET ${path}`])
})

test("an email provider is none of another kind", async () => {
  await using it = await texts()
  await it.add("one", 1)
  const { rows } = await configs.list(it.store.read, OWNER.project_id, "email_provider").list({
    limit: 10,
    offset: 0,
    after: undefined,
    before: undefined,
  })
  expect(rows).toEqual([])
})
