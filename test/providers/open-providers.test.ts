import { expect, test } from "bun:test"
import { openSecrets } from "../../src/core/secrets"
import { sealCredentials } from "../../src/providers/credentials"
import type { ConfigRow } from "../../src/providers/tables"
import { mailTo } from "../contracts/email-provider"
import { smtpSink } from "../fakes/smtp-sink"
import { idFor } from "../harness/ids"
import { testProviders } from "../harness/providers"

const secrets = openSecrets({
  data_dir: "/nowhere",
  master_key: Buffer.alloc(32).toString("base64"),
})

const row = (port: number, more: Partial<ConfigRow> = {}): ConfigRow => ({
  id: "config_1",
  account_id: idFor("account_1"),
  project_id: idFor("project_1"),
  kind: "email_provider",
  provider: "smtp",
  name: "smtp",
  priority: 1,
  enabled: true,
  status: "active",
  last_error: null,
  trouble_since: null,
  paused_until: null,
  probe_message_id: null,
  credentials: sealCredentials(secrets, "config_1", { host: "127.0.0.1", port, tls: "none" }),
  settings: {},
  callback_token_hash: null,
  created_at: "",
  updated_at: "",
  ...more,
})

test("an adapter stays open between uses, whatever changes beside what it is opened with", () => {
  const providers = testProviders(secrets)
  const config = row(1)
  const first = providers.lease(config)
  first.release()
  const second = providers.lease({ ...config, priority: 9, name: "another", status: "error" })
  expect(second.provider).toBe(first.provider)
  second.release()
  return providers.close()
})

test("a change opens a new one, and the old one ends with what was on its way", async () => {
  const stalled = Promise.withResolvers<void>()
  let ends = 0
  using sink = smtpSink({
    end: () => {
      stalled.resolve()
      return ends++ === 0 ? "stall" : undefined
    },
  })
  const providers = testProviders(secrets)
  const old = providers.lease(row(sink.port))
  const sending = old.provider.send(mailTo("ann@example.test"))
  await stalled.promise
  const fresh = providers.lease(row(sink.port))
  expect(fresh.provider).not.toBe(old.provider)
  expect(await fresh.provider.send(mailTo("bob@example.test"))).toMatchObject({ status: "sent" })
  sink.hangUp()
  const { status, fault } = await sending
  expect([status, fault]).toEqual(["retry", undefined]) // it may have been taken
  old.release()
  fresh.release()
  await providers.close()
})

test("who was not reached five times in a row rests, until it is reached again", () => {
  const providers = testProviders(secrets)
  const config = row(1)
  const { reached, release } = providers.lease(config)
  for (let at = 0; at < 4; at++) reached(false)
  expect(providers.isCoolingDown(config)).toBe(false)
  reached(false)
  expect(providers.isCoolingDown(config)).toBe(true)
  reached(true)
  expect(providers.isCoolingDown(config)).toBe(false)
  release()
  return providers.close()
})

test("what this instance does not have cannot be opened", async () => {
  const providers = testProviders(secrets)
  expect(() => providers.lease(row(1, { provider: "mailbox" }))).toThrow("no provider mailbox")
  expect(() => providers.lease(row(1, { provider: "pigeon" }))).toThrow("no provider pigeon")
  await providers.close()
})

test("delivery by MX is one for all projects, and closes with the last of them", async () => {
  let closed = 0
  const direct = {
    name: "direct" as const,
    schedule: () => undefined,
    send: () => Promise.reject(new Error("not here")),
    close: async () => void closed++,
  }
  const providers = testProviders(secrets, { openDirect: () => direct })
  const one = providers.lease(row(1, { id: "a", provider: "direct", credentials: null }))
  const two = providers.lease(row(1, { id: "b", provider: "direct", credentials: null }))
  await one.provider.close()
  expect(closed).toBe(0)
  one.release()
  two.release()
  await providers.close()
  expect(closed).toBe(1)
})
