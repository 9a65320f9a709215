import { expect, test } from "bun:test"
import { sleep } from "../../src/core/time"
import { emailFailover } from "../../src/emails/providers/hand-over"
import type { EmailProvider } from "../../src/emails/providers/provider"
import { smtp } from "../../src/emails/providers/smtp"
import { ServerHealth } from "../../src/http/server-health"
import { providerWarnings } from "../../src/providers/alerts"
import { mailTo } from "../contracts/email-provider"
import { type Script, smtpSink } from "../fakes/smtp-sink"
import { LOOPBACK, testPermits } from "../harness/providers"
import { quietLog } from "../harness/quiet"
import { PROJECT } from "../messages/letters"
import { failover } from "./failover-setup"

const logged = quietLog()

const ANN = "ann@example.test"

/** So short is a minute here. */
const MINUTE_MS = 40

const told = (config_id: string) =>
  logged()
    .map((line) => JSON.parse(line) as Record<string, string>)
    .filter((line) => line.config_id === config_id)
    .map(({ level, message }) => `${level}: ${message}`)

const until = async (isSo: () => Promise<boolean> | boolean) => {
  while (!(await isSo())) await sleep(5)
}

/** A relay on a port of its own, that can go away and come back. */
function relay(script: Script = {}) {
  let sink = smtpSink(script)
  const { port } = sink
  const access = { host: "127.0.0.1", port, tls: "none" as const }
  return {
    access,
    leave: () => sink[Symbol.dispose](),
    comeBack: () => {
      sink = smtpSink(script, { port })
    },
    [Symbol.dispose]: () => sink[Symbol.dispose](),
  }
}

async function world(own?: EmailProvider) {
  const base = await failover({ ...(own && { own }), allow_private: LOOPBACK })
  const { store, providers } = base
  const parts = { store, kind: "email_provider" as const, providers, again_ms: MINUTE_MS }
  const provider = emailFailover({ ...parts, permits: testPermits() })
  const warnings = () => providerWarnings(store.read, provider.monitor.troubles())
  return {
    ...base,
    provider,
    warnings,
    send: () => provider.send({ ...mailTo(ANN), project_id: PROJECT }),
    async [Symbol.asyncDispose]() {
      await provider.close()
      await base[Symbol.asyncDispose]()
    },
  }
}

const BEGINS = "warn: A provider cannot be reached."
const LASTS = "warn: A provider still cannot be reached."
const ENDS = "info: A provider can be reached again."

test("a provider that cannot be reached is told of when it begins, each minute, and when it ends", async () => {
  using away = relay()
  await using it = await world()
  const { id } = await it.add("smtp", away.access)
  expect(await it.send()).toMatchObject({ status: "sent" })
  expect(await it.warnings()).toEqual([])
  away.leave()
  expect(await it.send()).toMatchObject({ status: "retry", fault: "connection" })
  expect(await it.send()).toMatchObject({ status: "retry" })
  expect(told(id)[0]).toBe(BEGINS)
  const shown = await it.find(id)
  expect(shown).toMatchObject({ status: "error", paused_until: null })
  expect(shown.last_error).toContain("ECONNREFUSED")
  const [warning = ""] = await it.warnings()
  expect(warning).toStartWith("smtp, the provider of a project, cannot be reached since ")
  await until(() => told(id).length >= 3)
  expect(told(id).slice(1, 3)).toEqual([LASTS, LASTS])

  away.comeBack() // and nobody sends anything
  await until(async () => (await it.find(id)).status === "active")
  expect(told(id).at(-1)).toBe(ENDS)
  expect(told(id).filter((line) => line === BEGINS)).toHaveLength(1)
  expect(await it.find(id)).toMatchObject({ last_error: null, trouble_since: null })
  expect(await it.warnings()).toEqual([])
  expect(await it.send()).toMatchObject({ status: "sent" })
})

test("the instance's own provider is named by /readyz, which does not fail", async () => {
  using away = relay()
  const own = smtp({ ...away.access, timeouts: { connect: 500 } })
  await using it = await world(own)
  away.leave()
  await it.send()
  const [warning = ""] = await it.warnings()
  expect(warning).toStartWith("smtp, the provider of this instance, cannot be reached since ")
  const health = new ServerHealth({ ...VITALS, warnings: it.warnings })
  await health.look()
  expect([health.status, health.warnings]).toEqual(["ok", [warning]])
  away.comeBack()
  await until(async () => (await it.warnings()).length === 0)
  expect(told("instance").at(-1)).toBe(ENDS)
  await own.close()
})

const VITALS = {
  disk: {
    state: () => "ok" as const,
    healthy: () => true,
    isDamaged: () => false,
  } as unknown as ConstructorParameters<typeof ServerHealth>[0]["disk"],
  progressedAt: () => performance.now(),
  smtp: () => "ok",
  ask: async () => undefined,
}

test("a provider that fails and works by turns does not fill the log", async () => {
  const script = { is_bad: false }
  using relay_ = relay({ MAIL: () => (script.is_bad ? "550 5.7.1 not you" : undefined) })
  await using it = await failover({ allow_private: LOOPBACK }) // with a minute of a minute
  const { id } = await it.add("smtp", relay_.access)
  for (let round = 0; round < 10; round++) {
    script.is_bad = true
    expect(await it.send(ANN)).toMatchObject({ status: "failed" })
    script.is_bad = false
    expect(await it.send(ANN)).toMatchObject({ status: "sent" })
  }
  expect(told(id)).toEqual([
    "warn: A provider refuses to deliver for us.",
    "info: A provider delivers for us again.",
  ])
})

test("a relay that comes back and then refuses our login pauses the provider without a message", async () => {
  const state = { takes_login: true }
  using away = relay({ AUTH: () => (state.takes_login ? undefined : "535 5.7.8 wrong") })
  await using it = await world()
  const { id } = await it.add("smtp", { ...away.access, username: "a", password: "b" })
  await it.send()
  away.leave()
  await it.send()
  state.takes_login = false
  away.comeBack()
  await until(async () => (await it.find(id)).paused_until !== null)
  const [warning = ""] = await it.warnings()
  expect(warning).toStartWith("smtp, the provider of a project, refuses our login since ")
})
