import { expect, test } from "bun:test"
import { systemMail } from "../../src/emails/instance-mail"
import { messages } from "../../src/messages/tables"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import { type TestService, testService } from "../harness/service"
import { domainKeys } from "./published-keys"
import { byMailauth } from "./verifiers"

const KEYS = await domainKeys("acme.test")
const { records: RECORDS } = KEYS
const publish = (service: TestService, project_id: string) => KEYS.publish(service, project_id)

test("mail of a verified domain leaves signed by each key, and what is kept is what left", async () => {
  await using service = await testService()
  const project = await service.project()
  await publish(service, project.project_id)
  const sent = await project.post("/v1/emails", mail({ from: "Ann <ann@acme.test>" }))
  const vouched = await project.post("/v1/emails", mail({ from: "ann@example.test" }))
  const handed = await deliverAll(service)
  const rawOf = (id: string) => handed.find(({ message_id }) => message_id === id)?.raw

  const raw = Buffer.from(rawOf(sent.body.id) ?? "")
  expect(raw.toString().match(/^DKIM-Signature: /gm)).toHaveLength(2)
  expect(await byMailauth(raw, "bounce@acme.test", RECORDS)).toMatchObject({
    dkim: ["pass", "pass"],
    dmarc: "pass",
    aligned: { dkim: "acme.test" },
  })
  const { bytes } = await project.get(`/v1/emails/${sent.body.id}/raw`)
  expect(Buffer.compare(Buffer.from(bytes), raw)).toBe(0)
  const changed = service.store.tx((tx) => tx.update(messages).set({ subject: "Other" }))
  await changed // by hand: nothing in Belfry changes what was sent
  const refused = await project.get(`/v1/emails/${sent.body.id}/raw`)
  expect([refused.status, refused.body.error.code]).toEqual([500, "internal_error"])

  const unsigned = Buffer.from(rawOf(vouched.body.id) ?? "").toString()
  expect(unsigned).toStartWith("From: ")
  expect(unsigned).not.toContain("DKIM")
})

test("mail of the instance is signed with the keys of whoever has its domain", async () => {
  await using service = await testService()
  const { project_id } = await service.project()
  await publish(service, project_id)
  const { store, secrets } = service.parts
  const own = systemMail(secrets, { system_from: "post@acme.test", to_mailbox: false })
  const letter = { to: "ann@example.test", subject: "Ding", text: "Dong", kind: "reset" }
  await store.tx((tx) => own.send(tx, letter))
  const [handed] = await deliverAll(service)
  const raw = Buffer.from(handed?.raw ?? "")
  const { dkim, dmarc } = await byMailauth(raw, "bounce@acme.test", RECORDS)
  expect({ dkim, dmarc }).toEqual({ dkim: ["pass", "pass"], dmarc: "pass" })
})
