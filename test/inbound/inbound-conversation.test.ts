import { afterAll, expect, test } from "bun:test"
import { Value } from "@sinclair/typebox/value"
import PostalMime from "postal-mime"
import { nextTurn } from "../../src/core/time"
import * as feed from "../../src/events/feed"
import { lookup } from "../../src/events/registry"
import { InboundInEvent } from "../../src/inbound/schemas"
import { deliverAll } from "../harness/delivery"
import { addReceivingDomain } from "../harness/inbound-rows"
import { idsIn, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"

quietLog()

const service = await sharedService()
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

async function receiving() {
  const project = await service.project()
  return { project, domain: await addReceivingDomain(service.store, project) }
}

const letter = (fields: Record<string, string>, text: string) =>
  `${Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("")}\n${text}\n`

test("a wait is woken by the mail that arrives, and has its code", async () => {
  const { project, domain } = await receiving()
  const to = `robot@${domain}`
  const path = `/v1/inbound-emails/wait?to=${to}&timeout=25&extract=otp`
  const waiting = project.get(path)
  const fields = { From: "a@b.test", To: to, Subject: "Sign in", "Message-ID": "<1@b.test>" }
  await server.receive({ to, raw: letter(fields, "Your verification code is 493027.") })
  const { status, body } = await waiting
  expect([status, body.data.extracted, body.data.subject]).toEqual([200, "493027", "Sign in"])
})

test("a wait is woken by a mail without an event, too", async () => {
  const { project, domain } = await receiving()
  const to = `dropped@${domain}`
  await project.post("/v1/inbound-routes", { match: { to }, action: "drop" })
  let looks = 0
  let is_read = false
  const look = async () => {
    looks += 1
    return is_read || undefined
  }
  const { signal } = new AbortController()
  const wait = { wait_ms: 30_000, signal, look }
  const waiting = feed.untilFound(service.store.read, project.project_id, wait)
  const fields = { From: "a@b.test", To: to, Subject: "Ad", "Message-ID": "<5@b.test>" }
  const ids = idsIn(await server.offer({ to, raw: letter(fields, "Buy!") }))
  const before = looks
  is_read = true
  await server.work()
  await nextTurn()
  expect([looks > before, await waiting]).toEqual([true, true])
  const [row] = await server.rowsOf(ids)
  expect([row?.status, row?.event_id]).toEqual(["processed", null])
})

test("an email, its answer, our reply and the answer to that are one thread", async () => {
  const { project, domain } = await receiving()
  const from = `support@${domain}`
  const { id: email_id } = (await project.post("/v1/emails", mail({ from, to: "ann@b.test" }))).body
  const [first] = await deliverAll(service)
  const sent = await PostalMime.parse(first?.raw as Uint8Array)

  const question = {
    From: "Ann <ann@b.test>",
    To: from,
    Subject: "Re: Ding",
    "Message-ID": "<q1@b.test>",
    "In-Reply-To": sent.messageId ?? "",
    References: sent.messageId ?? "",
  }
  const [asked] = await server.receive({ to: from, raw: letter(question, "Where is it?") })
  expect(asked).toMatchObject({
    kind: "reply",
    replied_to_message_id: email_id,
    thread_id: email_id,
  })

  const path = `/v1/inbound-emails/${asked?.id}/reply`
  const { id: reply_id } = (await project.post(path, { text: "It left this morning." })).body
  const [second] = await deliverAll(service)
  const reply = await PostalMime.parse(second?.raw as Uint8Array)
  expect(second?.to).toEqual(["ann@b.test"])
  expect(reply).toMatchObject({
    from: { address: from },
    subject: "Re: Ding",
    inReplyTo: "<q1@b.test>",
    references: `${sent.messageId} <q1@b.test>`,
  })

  const thanks = {
    ...question,
    "Message-ID": "<q2@b.test>",
    "In-Reply-To": reply.messageId ?? "",
    References: `${reply.references} ${reply.messageId}`,
  }
  const [last] = await server.receive({ to: from, raw: letter(thanks, "Thank you!") })
  expect(last).toMatchObject({ replied_to_message_id: reply_id, thread_id: email_id })
  const thread = await project.get(`/v1/inbound-emails?thread_id=${email_id}`)
  expect(thread.body.data.map(({ id }: { id: string }) => id)).toEqual([last?.id, asked?.id])
  const answer = (await project.get(`/v1/emails/${reply_id}`)).body.data
  expect(answer.thread_id).toBe(email_id)
})

test("an automatic answer of the other side ends the conversation", async () => {
  const { project, domain } = await receiving()
  const to = `support@${domain}`
  const fields = { From: "a@b.test", To: to, Subject: "Away", "Message-ID": "<2@b.test>" }
  for (const [from, more] of [
    ["a@b.test", { "Auto-Submitted": "auto-replied" }],
    ["", {}],
  ] as const) {
    const [row] = await server.receive({
      to,
      from,
      raw: letter({ ...fields, ...more }, "Back soon"),
    })
    const refused = await project.post(`/v1/inbound-emails/${row?.id}/reply`, { text: "Hi" })
    expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"])
  }
})

test("routes of two projects that forward to each other end after one round", async () => {
  const { project, domain } = await receiving()
  const other = await receiving()
  const [one, two] = [`one@${domain}`, `two@${other.domain}`]
  const pass = (owner: typeof project, from: string, target: string) =>
    owner.post("/v1/inbound-routes", { match: { to: from }, action: "forward", target })
  expect((await pass(project, one, two)).status).toBe(201)
  expect((await pass(other.project, two, one)).status).toBe(201)
  const fields = { From: "a@b.test", To: one, Subject: "Round", "Message-ID": "<4@b.test>" }
  await server.receive({ to: one, raw: letter(fields, "and round") })
  let rounds = 0
  for (let to = two; rounds < 5; rounds++) {
    const [handed] = await deliverAll(service)
    if (!handed) break
    expect(handed.to).toEqual([to])
    await server.receive({ to, from: `b+x@${domain}`, raw: handed.raw as Uint8Array })
    to = to === two ? one : two
  }
  expect(rounds).toBe(2)
  const kept = (await project.get("/v1/inbound-emails")).body.data
  expect(kept.map(({ to_email }: { to_email: string }) => to_email)).toEqual([one, one])
  expect(kept[0].headers["x-loop"]).toEqual([`${one}, ${two}`])
})

test("the event has the mail as the schema says, and addresses that fetch its files", async () => {
  const { project, domain } = await receiving()
  const to = `support@${domain}`
  const boundary = "b1"
  const head = { From: "a@b.test", To: to, Subject: "File", "Message-ID": "<3@b.test>" }
  const type = { "MIME-Version": "1.0", "Content-Type": `multipart/mixed; boundary=${boundary}` }
  const name = "filename*=UTF-8''Bericht%20f%C3%BCr%20Ann.txt"
  const parts = [
    `--${boundary}\nContent-Type: text/plain\n\nSee the file.`,
    `--${boundary}\nContent-Type: text/html\nContent-Disposition: attachment; ${name}\n\n<b>Ding</b>`,
    `--${boundary}--`,
  ]
  await server.receive({ to, raw: letter({ ...head, ...type }, parts.join("\n")) })
  const [event] = (await project.get("/v1/events?types=email.received")).body.data
  const example = lookup("email.received")?.example.data
  expect(Object.keys(event.data).sort()).toEqual(Object.keys(example ?? {}).sort())
  for (const one of [event.data.inbound, example?.inbound]) {
    expect([...Value.Errors(InboundInEvent, one)].map(({ path }) => path)).toEqual([])
    expect(Object.keys(one).sort()).toEqual(Object.keys(InboundInEvent.properties).sort())
  }
  const [file] = event.data.inbound.attachments
  const fetched = await service.anybody.get(new URL(file.url).pathname)
  expect([fetched.status, fetched.text.trim()]).toEqual([200, "<b>Ding</b>"])
  const disposition = fetched.headers.get("content-disposition")
  expect(disposition).toEndWith("filename*=UTF-8''Bericht%20f%C3%BCr%20Ann.txt")
})
