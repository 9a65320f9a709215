import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { dkimKeys } from "../../src/domains/tables"
import type { EmailProvider, OutgoingMail } from "../../src/emails/providers/provider"
import { smtp } from "../../src/emails/providers/smtp"
import { recipeIn } from "../../src/emails/recipe"
import { messageRaws } from "../../src/messages/tables"
import { subscribers } from "../../src/subscribers/tables"
import { domainKeys } from "../emails/published-keys"
import { byMailauth } from "../emails/verifiers"
import { countingRelay } from "../fakes/counting-relay"
import { movableClock } from "../harness/clock"
import { deliverBy } from "../harness/delivery"
import { sharedService } from "../harness/shared-service"
import { audience, messagesOf, publish, walkAll } from "./audiences"

const clock = movableClock()
const service = await sharedService()
const { parts, store } = service
const KEYS = await domainKeys("acme.test")

const PEOPLE = [
  { name: "Ann", locale: "en" },
  { name: 'Žofie, "Zo"', locale: "cs" },
  { name: "李小龍", locale: "de-AT", timezone: "Asia/Kathmandu" },
]

const TEMPLATE = {
  name: "issue",
  subject: "News for {{subscriber.name}}",
  html: '<p>Hello {{subscriber.name}}</p>\n<p>.</p>\n<p><a href="https://acme.test/a">more</a> {{date at}} <a href="{{unsubscribe_url}}">out</a></p>',
  text: "Hello {{subscriber.name}}\n.\n..\n{{date at}} {{unsubscribe_url}}",
  locale: "en",
  locales: { de: { subject: "Neues für {{subscriber.name}}" } },
}

/** The mail at the other end of the socket, by its Message-ID, and what each attempt handed over. */
function provider(port: number) {
  const handed = new Map<string, string[]>()
  const real = smtp({ host: "127.0.0.1", port, tls: "none" })
  const send = (mail: OutgoingMail) => {
    const raws = handed.get(mail.message_id) ?? []
    handed.set(mail.message_id, [...raws, Buffer.from(mail.raw).toString("latin1")])
    return real.send(mail)
  }
  const own = { send, makes_mail: undefined } // it is handed bytes
  return { handed, real, watched: Object.assign(Object.create(real) as EmailProvider, own) }
}

/** As older versions kept a mail of a fan-out: the address of its links, a line end, the signatures. */
async function asBefore(id: string) {
  const its = eq(messageRaws.message_id, id)
  const [row] = await store.read.select().from(messageRaws).where(its)
  const { address, recipe } = recipeIn(row?.raw ?? Buffer.of(), true) ?? {}
  const raw = Buffer.concat([Buffer.from(`${address}\n`), recipe?.signatures ?? Buffer.of()])
  await store.tx((tx) => tx.update(messageRaws).set({ raw }).where(its))
}

test("raw of a signed mail of a publish is what the other side took, also after another attempt and a change of all", async () => {
  const project = await service.project()
  await KEYS.publish(service, project.project_id)
  const settings = { default_from: "Acmé <news@acme.test>", track_opens: true, track_clicks: true }
  expect((await project.call("PATCH", "/v1/settings", { body: settings })).status).toBe(200)
  const template = await project.post("/v1/templates", TEMPLATE)
  expect(template.status).toBe(201)
  const { topic } = await audience(store, project, PEOPLE)
  const variables = { at: "2026-11-22T12:00:00Z" }
  const wish = { template: "issue", content: null, variables }
  const { id } = await publish(service, project, topic, wish)
  await walkAll(service)

  let refused = false
  const atEnd = (recipient: string) => {
    if (refused || !recipient.startsWith("reader1")) return undefined
    refused = true
    return "451 4.3.0 not now"
  }
  using relay = countingRelay({ atEnd })
  const { handed, real, watched } = provider(relay.port)
  const made = () => messagesOf(parts, project, id)
  const isTried = async () =>
    (await made()).every(({ status, status_reason }) => status !== "queued" || status_reason)
  await deliverBy(parts, watched, isTried)
  clock.advance({ seconds: 3600 })
  await deliverBy(parts, watched)
  await real.close()
  expect([...handed.values()].map((raws) => raws.length).toSorted()).toEqual([1, 1, 2])

  await store.tx(async (tx) => {
    const renamed = eq(subscribers.project_id, project.project_id)
    await tx.update(subscribers).set({ name: "Nobody", locale: "fr" }).where(renamed)
    await tx.delete(dkimKeys).where(eq(dkimKeys.project_id, project.project_id))
  })
  const removed = await project.call("DELETE", `/v1/templates/${template.body.data.id}`)
  expect(removed.status).toBe(200)
  const [first] = await made()
  await asBefore(first?.id ?? "")
  const taken = new Map(relay.receipts.map(({ message_id, raw }) => [message_id, raw]))
  for (const { id: message_id, rfc_message_id } of await made()) {
    const at_sink = taken.get(rfc_message_id ?? "") ?? ""
    expect(new Set(handed.get(message_id))).toEqual(new Set([at_sink]))
    const { bytes } = await project.get(`/v1/emails/${message_id}/raw`)
    expect(Buffer.from(bytes).toString("latin1")).toBe(at_sink)
    expect(at_sink.match(/^DKIM-Signature: /gm)).toHaveLength(2)
    const verdict = await byMailauth(Buffer.from(bytes), "bounce@acme.test", KEYS.records)
    expect(verdict).toMatchObject({ dkim: ["pass", "pass"], dmarc: "pass" })
  }
})
