import { expect, test } from "bun:test"
import { openSecrets } from "../../src/core/secrets"
import { smsChannel } from "../../src/sms/channel"
import type { SmsProvider } from "../../src/sms/providers/provider"
import { stats } from "../../src/sms/stats"
import { suppress } from "../../src/suppressions/suppressions"
import { addProject } from "../harness/project-rows"
import { letter } from "../messages/letters"
import { postOffice } from "../messages/post-office"

const ANN = "+4366012345678"

const provider: SmsProvider = {
  name: "log",
  schedule: () => undefined,
  send: () => Promise.reject(new Error("nothing should be sent")),
  close: async () => {},
}

test("a text that was suppressed before it left names no provider, and nobody was asked", async () => {
  await using office = await postOffice(async () => {
    const [message] = office.attempted
    if (!message) throw new Error("nothing was accepted")
    const channel = smsChannel({ ...parts, provider, sandbox: provider, concurrency: 1 })
    return channel.deliver(message, { body: "Ding" })
  })
  const { store } = office
  const parts = { store, secrets: openSecrets({ data_dir: office.folder, master_key: null }) }
  const owner = await addProject(store)
  const recipient = { email: ANN, name: null, kind: "to", status: "queued" } as const
  const recipients = [{ ...recipient, status_reason: null }]
  const text = { ...owner, channel: "sms", address: ANN, units: 1 } as const
  const id = await office.accept(letter({ ...text, recipients }))
  const given = { channel: "sms", address: ANN, reason: "manual", origin: "api" } as const
  await store.tx((tx) => suppress(tx, owner.project_id, given))
  await office.runDue()
  const ended = { status: "failed", status_reason: "suppressed_recipient", provider: null }
  expect(await office.read(id)).toMatchObject(ended)
  expect(await office.attempts(id)).toEqual([])
  const { total, by_provider } = await stats(store.read, owner.project_id, undefined)
  expect([total, by_provider]).toEqual([1, {}])
})
