import { describe, expect, test } from "bun:test"
import { PROVIDERS } from "../../src/channels"
import { loadSettings } from "../../src/core/config"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { recordTargets, targetsOfProject } from "../../src/domains/expected-records"
import { providerConfigs } from "../../src/providers/tables"
import { testStore } from "../harness/store"

const targets = (flags: Record<string, string>) =>
  recordTargets(loadSettings({ flags, environment: { HOME: "/nowhere" } }).values, PROVIDERS)

describe("what records name", () => {
  test("is the host of the settings, else that of base_url", () => {
    const host = { base_url: "https://Mail.Acme.test:8443" }
    expect(targets(host)).toMatchObject({
      host: "mail.acme.test",
      tracking_host: "mail.acme.test",
      mechanisms: ["a:mail.acme.test"],
      ed25519: false,
      receives: true,
    })
    const without = { ...host, "smtp.inbound.enabled": "false" }
    expect(targets(without).receives).toBe(false)
    expect(targets({ ...host, "domains.host": "mx.acme.test" }).mechanisms).toEqual([
      "a:mx.acme.test",
    ])
    expect(targets({ "domains.host": "192.0.2.7" }).mechanisms).toEqual(["ip4:192.0.2.7"])
    expect(targets({ "domains.host": "2001:db8::7" }).mechanisms).toEqual(["ip6:2001:db8::7"])
  })

  test("is written as names compare, whoever wrote it otherwise", () => {
    const own = { "domains.host": "Mail.Acme.test.", "domains.tracking_host": "Links.ACME.test." }
    expect(targets(own)).toMatchObject({
      host: "mail.acme.test",
      tracking_host: "links.acme.test",
      mechanisms: ["a:mail.acme.test"],
    })
    expect(targets({ base_url: "https://Mail.Acme.test./x" }).host).toBe("mail.acme.test")
    const six = targets({ base_url: "https://[2001:DB8::7]:8443" })
    expect([six.host, six.mechanisms]).toEqual(["2001:db8::7", ["ip6:2001:db8::7"]])
    const relay = { "delivery.provider": "smtp", "providers.smtp.host": "Relay.Example.test." }
    expect(targets(relay).mechanisms).toEqual(["a:relay.example.test"])
  })

  test("is the relay where there is one, and the operator's mechanisms before all", () => {
    const relay = { "delivery.provider": "smtp", "providers.smtp.host": "relay.example.test" }
    expect(targets(relay).mechanisms).toEqual(["a:relay.example.test"])
    const given = { ...relay, "domains.spf": "include:spf.example.test,ip4:192.0.2.0/24" }
    expect(targets(given).mechanisms).toEqual(["include:spf.example.test", "ip4:192.0.2.0/24"])
    expect(() => targets({ "domains.spf": "v=spf1 +all" })).toThrow("domains.spf")
  })
})

describe("a project with a provider of its own", () => {
  const mechanisms = async (...configs: Partial<typeof providerConfigs.$inferInsert>[]) => {
    await using it = await testStore()
    const project_id = newId()
    const rows = configs.map((own, at) => ({
      id: newId(),
      account_id: newId(),
      project_id,
      kind: "email_provider" as const,
      provider: "smtp",
      name: `${at}`,
      priority: at,
      enabled: true,
      status: "active" as const,
      settings: {},
      created_at: now(),
      updated_at: now(),
      ...own,
    }))
    if (rows.length > 0) await it.store.tx((tx) => tx.insert(providerConfigs).values(rows))
    const base = targets({ "domains.host": "mx.acme.test" })
    return (await targetsOfProject(it.store.read, project_id, base)).mechanisms
  }

  test("has its mechanisms: those of the first one that is on", async () => {
    expect(await mechanisms()).toEqual(["a:mx.acme.test"])
    expect(await mechanisms({ provider: "ses" })).toEqual(["include:amazonses.com"])
    const relay = { provider: "smtp", settings: { host: "Relay.example.test." } }
    expect(await mechanisms(relay, { provider: "ses" })).toEqual(["a:relay.example.test"])
    expect(await mechanisms({ ...relay, enabled: false }, { provider: "direct" })).toEqual([
      "a:mx.acme.test",
    ])
    const own = { settings: { spf: ["include:a.test", "ip4:192.0.2.1"] } }
    expect(await mechanisms(own)).toEqual(["include:a.test", "ip4:192.0.2.1"])
  })
})
