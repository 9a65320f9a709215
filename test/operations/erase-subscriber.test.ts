import { describe, expect, test } from "bun:test"
import { SQL } from "bun"
import { eq, lte } from "drizzle-orm"
import * as audit from "../../src/audit-log/audit-log"
import { auditLog } from "../../src/audit-log/tables"
import { consents } from "../../src/consents/tables"
import { newId } from "../../src/core/ids"
import { now, secondsFromNow } from "../../src/core/time"
import { jobs } from "../../src/jobs/tables"
import { keep } from "../../src/mailbox/mailbox"
import { accept } from "../../src/messages/pipeline"
import { messageFiles, messages } from "../../src/messages/tables"
import {
  eraseRest,
  removeErasedFiles,
  subscriberErased,
} from "../../src/operations/erase-subscriber"
import { erasedFiles } from "../../src/operations/erased-rows"
import { atRest } from "../harness/at-rest"
import { addSubscriber } from "../harness/audience"
import { complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { deliverAll, deliverBy, delivered } from "../harness/delivery"
import { addInbound } from "../harness/inbound-rows"
import { mail, NOBODY } from "../harness/mail"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { engine } from "../harness/store"
import { linkTo } from "../harness/unsubscribed"
import { addDevice, pushLetter } from "../push/pushes"

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service

const FORM = { "content-type": "application/x-www-form-urlencoded" }

/** Words that nothing else has: what is left of one of them is found anywhere. */
const canaries = Array.from({ length: 64 }, (_, at) => `canary${at}x${newId().slice(-12)}`)
const taken = new Set<string>()

function canary(): string {
  const one = canaries[taken.size]
  if (one === undefined) throw new Error("there are no more canaries")
  taken.add(one)
  return one
}

const path = (id: string, verb = "") => `/v1/subscribers/${encodeURIComponent(id)}${verb}`

const base64 = (text: string) => Buffer.from(text).toString("base64")

/** A person that the project knows well: a canary in every place that takes a text. */
async function knownPerson(project: TestProject) {
  const { account_id, project_id } = project
  const address = `${canary()}@mailbox.test`
  const person = await addSubscriber(project, {
    external_id: `${canary()}/ü`,
    email: address.toUpperCase(),
    phone: "+4915112345678",
    name: canary(),
    avatar_url: `https://example.test/${canary()}.png`,
    metadata: { [canary()]: canary() },
    tags: [canary()],
  })
  const { id, external_id } = person
  await project.post("/v1/webhooks", { url: "http://127.0.0.1:9/hook", events: ["*"] })
  await project.post("/v1/topics", { name: "News", key: "news" })
  await project.post("/v1/topics/news/subscribers", { subscriber_ids: [id] })
  await project.call("POST", path(external_id, "/unsubscribe"), {
    body: { channel: "sms", reason: canary() },
    headers: { "idempotency-key": "once" },
  })
  await project.post(path(id, "/consents"), {
    ...{ channel: "email", action: "granted", source: "import", proof: canary() },
  })
  const given = {
    ...{ from: "me@mailbox.test", to: address, subject: canary(), category: "news" },
    ...{ html: `<p>${canary()}</p>`, text: canary(), tags: [canary()] },
    ...{ metadata: { ref: canary() }, headers: { "X-Ref": canary() } },
    attachments: [{ filename: `${canary()}.txt`, content: base64(`file ${canary()}`) }],
  }
  const metadata = { owner: canary() }
  const device = await addDevice(store, project_id, {
    ...{ user_id: external_id, token: canary(), device_name: canary(), metadata },
  })
  const later = { scheduled_at: secondsFromNow(30 * 86_400) }
  const ding = pushLetter(device, { account_id, subscriber_id: id, ...later }, { body: canary() })
  await store.tx((tx) => accept(tx, [ding]))
  await addDevice(store, project_id, { metadata: { email: address } })
  const sent = await project.call("POST", "/v1/emails", {
    body: given,
    headers: { "idempotency-key": "mail" },
  })
  expect(sent.status).toBe(201)
  const copy = { from: "me@mailbox.test", to: "other@mailbox.test", cc: address, subject: "copy" }
  await project.post("/v1/emails", { ...copy, text: "t" })
  await deliverAll(service, (email) => {
    const done = delivered(email)
    return { ...done, reply: { ...done.reply, response: `250 kept for ${email}` } }
  })
  const caught = () => Buffer.from(`Subject: x\r\n\r\n${canary()}`)
  const { sha256 } = await parts.blobs.put(caught())
  for (const raw of [caught(), { file: sha256 }]) {
    const fields = { to_address: address, from_address: "me@mailbox.test", subject: canary() }
    const own = { id: newId(), project_id, account_id, email_id: null, created_at: now() }
    const envelope = { mail_from: "me@mailbox.test", recipients: [address], size: 100 }
    await store.tx((tx) => keep(tx, { ...own, ...envelope, ...fields, raw }))
  }
  await addInbound(
    store,
    project,
    { from_email: address, subject: canary() },
    { text_body: canary() },
  )
  await project.post("/v1/suppressions", { email: address, note: canary() })
  const gone = (await project.get(`/v1/suppressions?address=${address}`)).body.data[0]
  await project.call("DELETE", `/v1/suppressions/${gone.id}`)
  await project.post("/v1/suppressions", { email: address, note: "again" })
  const token = await linkTo(service, project, "news", { address })
  const body = "List-Unsubscribe=One-Click"
  expect((await service.anybody.call("POST", `/u/${token}`, { body, headers: FORM })).status).toBe(
    200,
  )
  await project.get(path(external_id))
  await project.get(`/v1/subscribers/external/${encodeURIComponent(external_id)}`)
  await parts.requests.flush()
  return { ...person, address, token }
}

/** Where a canary still is: what a thief of the disk, or any reader of the API, would find. */
async function remaining(project: TestProject): Promise<string[]> {
  await parts.requests.flush()
  const lists = [
    ...["subscribers", "emails", "mailbox", "inbound-emails", "suppressions", "events"],
    ...["request-log", "audit-log", "webhooks", "topics", "topics/news/subscribers"],
  ]
  const answers: string[] = []
  for (const list of lists) {
    const answer = await project.get(`/v1/${list}?limit=100`)
    answers.push(answer.text)
  }
  await store.emptyLog()
  const all = `${await atRest(service)}\n${answers.join("\n")}`.toLowerCase()
  return [...taken].filter((one) => all.includes(one))
}

/** Runs the jobs of an erasure, as the loop does when they are due. */
async function runJobs() {
  const rows = await store.read.select().from(jobs).where(lte(jobs.run_at, now()))
  for (const row of rows) {
    const payload = row.payload as never
    if (row.name === subscriberErased.name) await eraseRest(parts).run(payload, row)
    else if (row.name === erasedFiles.name) await removeErasedFiles(parts).run(payload, row)
    else continue
    await store.tx((tx) => tx.delete(jobs).where(eq(jobs.id, row.id)))
  }
}

async function runLaterJobs() {
  clock.advance({ seconds: 90 })
  await runJobs() // late log lines
  clock.advance({ seconds: 2 * 3600 })
  await runJobs() // files, when they are old enough
  if (engine === "postgres") await vacuum()
}

describe("erase", () => {
  test("leaves no canary in any table, file, answer or log", async () => {
    const project = await service.project()
    const neighbour = await addSubscriber(project, { email: "ben@mailbox.test", tags: ["kept"] })
    const { id, external_id, token } = await knownPerson(project)
    expect(taken.size).toBeGreaterThanOrEqual(20)
    const before = await remaining(project)
    expect(before.length).toBeGreaterThanOrEqual(18) // bytes that are kept packed do not show
    const chain = await store.read.select().from(consents).where(eq(consents.subscriber_id, id))

    const answer = await project.post(path(id, "/erase"), { confirm: external_id })
    expect([answer.status, answer.body.data]).toEqual([
      200,
      {
        erased: true,
        receipt_id: expect.any(String),
        counts: {
          ...{ messages: 3, captures: 2, inbound_emails: 1, events: expect.any(Number) },
          ...{ consents: chain.length, unsubscribes: 2, topics: 1, suppressions: 2 },
          ...{ devices: 1, users: 0, unsubscribe_links: 1, log_entries: expect.any(Number) },
        },
        remains: expect.any(Array),
      },
    ])
    expect(answer.body.data.counts.events).toBeGreaterThan(8)
    expect(answer.body.data.remains.length).toBeGreaterThan(3)

    await runLaterJobs()
    expect(await remaining(project)).toEqual([])

    expect(refusal(await project.get(path(id)))).toEqual([404, "subscriber_not_found"])
    expect((await service.anybody.call("GET", `/u/${token}`)).status).toBe(404)
    const closing = await store.read.select().from(consents).where(eq(consents.subscriber_id, id))
    expect(closing).toMatchObject([
      {
        ...{ id: answer.body.data.receipt_id, action: "erased", address: null, proof: null },
        ...{ ip_hash: null, number: chain.length + 1 },
        prev_hash: chain.find(({ number }) => number === chain.length)?.hash,
      },
    ])
    const { data, meta } = (await project.get("/v1/subscribers")).body
    expect([data.map((one: { id: string }) => one.id), meta.total]).toEqual([[neighbour.id], 1])
    for (const list of ["emails", "mailbox", "suppressions"]) {
      expect((await project.get(`/v1/${list}`)).body.meta.total).toBe(0)
    }
    expect(await store.read.select().from(messageFiles)).toEqual([])
  })

  test("leaves no canary of a subscriber that was merged into this one by way of another", async () => {
    const project = await service.project()
    const fields = { email: "kept@mailbox.test", phone: "+4915100000000", name: "Kept" }
    const kept = await addSubscriber(project, fields)
    const between = await addSubscriber(project)
    const gone = await knownPerson(project)
    await project.post(path(between.id, "/merge"), { from_id: gone.id })
    await project.post(path(kept.id, "/merge"), { from_id: between.id })
    expect((await remaining(project)).length).toBeGreaterThanOrEqual(18)
    const answer = await project.post(path(kept.id, "/erase"), { confirm: kept.external_id })
    expect(answer.body.data.counts).toMatchObject({
      ...{ messages: 3, captures: 2, inbound_emails: 1, unsubscribes: 2, topics: 1 },
      ...{ suppressions: 2, unsubscribe_links: 1, devices: 1 },
    })
    await runLaterJobs()
    expect(await remaining(project)).toEqual([])
    const events = (await project.get("/v1/events?limit=100")).text
    for (const { id } of [kept, between, gone]) expect(events).not.toContain(id)
  })

  test("leaves what belongs to a new subscriber with the names of one that was merged", async () => {
    const project = await service.project()
    const names = { external_id: "again", email: "again@mailbox.test", phone: "+4915155555555" }
    const [kept, gone] = [await addSubscriber(project), await addSubscriber(project, names)]
    await project.post(path(kept.id, "/merge"), { from_id: gone.id })
    await project.call("PATCH", path(kept.id), { body: { email: null, phone: null } })
    const fresh = await addSubscriber(project, names)
    await project.post(path(fresh.id, "/unsubscribe"), { channel: "sms" })
    const sent = await project.post("/v1/emails", mail({ to: names.email }))
    await project.post("/v1/suppressions", { email: names.email })
    await project.post(path(kept.id, "/erase"), { confirm: kept.external_id })
    expect((await project.get(`/v1/emails/${sent.body.id}`)).status).toBe(200)
    expect((await project.get("/v1/suppressions")).body.data).toHaveLength(1)
    expect((await project.get("/v1/events?limit=100")).text).toContain(fresh.id)
    await project.post(path(fresh.id, "/erase"), { confirm: fresh.external_id })
    expect((await project.get(`/v1/emails/${sent.body.id}`)).status).toBe(404)
    expect((await project.get("/v1/suppressions")).body.data).toEqual([])
  })

  test("needs the external id as its confirmation", async () => {
    const project = await service.project()
    const { id, external_id } = await addSubscriber(project)
    const wrong = await project.post(path(id, "/erase"), { confirm: id })
    expect([wrong.status, complaints(wrong)]).toEqual([422, ["confirm"]])
    expect(complaints(await project.post(path(id, "/erase"), {}))).toEqual(["confirm"])
    expect((await project.get(path(id))).status).toBe(200)
    expect((await project.post(path(external_id, "/erase"), { confirm: external_id })).status).toBe(
      200,
    )
    const again = await project.post(path(id, "/erase"), { confirm: external_id })
    expect(refusal(again)).toEqual([404, "subscriber_not_found"])
  })

  test("of nobody, or of somebody else's subscriber, is a 404", async () => {
    const project = await service.project()
    const theirs = await addSubscriber(await service.project())
    for (const name of [theirs.id, theirs.external_id, NOBODY, "a/b"]) {
      const answer = await project.post(path(name, "/erase"), { confirm: theirs.external_id })
      expect(refusal(answer)).toEqual([404, "subscriber_not_found"])
    }
  })

  test("removes by the id of a deleted subscriber what is still held under it", async () => {
    const project = await service.project()
    const { id, external_id } = await addSubscriber(project, { email: "gone@mailbox.test" })
    const consent = { channel: "email", action: "granted", source: "import", proof: "form 7" }
    await project.post(path(id, "/consents"), consent)
    await project.post(path(id, "/unsubscribe"), { channel: "sms" })
    const named = { to: "gone@mailbox.test", subscriber_id: id }
    const scheduled_at = secondsFromNow(3600)
    const sent = await project.post("/v1/emails", mail({ ...named, scheduled_at }))
    await project.call("DELETE", path(id))

    const { data } = (await project.get(path(id, "/export"))).body
    expect([data.subscriber, data.preferences]).toEqual([null, null])
    expect(data.consents).toHaveLength(2)
    expect(data.messages).toMatchObject([{ id: sent.body.id }])
    expect(data.events).toMatchObject([{ type: "subscriber.unsubscribed" }])

    const other = await service.project()
    for (const verb of ["/erase", "/export"]) {
      const foreign = await other.call(verb === "/erase" ? "POST" : "GET", path(id, verb), {
        ...(verb === "/erase" && { body: { confirm: id } }),
      })
      expect(refusal(foreign)).toEqual([404, "subscriber_not_found"])
    }
    const wrong = await project.post(path(id, "/erase"), { confirm: external_id })
    expect([wrong.status, complaints(wrong)]).toEqual([422, ["confirm"]])
    const answers = await Promise.all(
      [1, 2].map(() => project.post(path(id, "/erase"), { confirm: id })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 404])
    const erased = answers.find(({ status }) => status === 200)?.body.data
    expect(erased.counts).toMatchObject({ messages: 1, consents: 2, topics: 0 })
    const closing = await store.read.select().from(consents).where(eq(consents.subscriber_id, id))
    expect(closing).toMatchObject([{ id: erased.receipt_id, action: "erased", number: 3 }])
    expect((await project.get("/v1/events?limit=100")).text).not.toContain(id)
    expect((await project.get("/v1/subscribers")).body.meta.total).toBe(0)
    expect(refusal(await project.get(path(id, "/export")))).toEqual([404, "subscriber_not_found"])
  })

  test("does not know an id that nothing of a person stands under", async () => {
    const project = await service.project()
    const [kept, gone, bare] = [
      await addSubscriber(project),
      await addSubscriber(project),
      await addSubscriber(project),
    ]
    await project.post(path(gone.id, "/unsubscribe"), { channel: "sms" })
    await project.post(path(kept.id, "/merge"), { from_id: gone.id })
    await project.call("DELETE", path(bare.id))
    const sent = await project.post("/v1/emails", mail()) // it has events, and is no person
    for (const id of [gone.id, bare.id, sent.body.id]) {
      const answer = await project.post(path(id, "/erase"), { confirm: id })
      expect(refusal(answer)).toEqual([404, "subscriber_not_found"])
    }
    expect((await project.get(`/v1/emails/${sent.body.id}/events`)).body.data.events).toHaveLength(
      1,
    )
  })

  test("leaves what another subscriber with the same address shares", async () => {
    const project = await service.project()
    const email = "shared@mailbox.test"
    const [ann, ben] = [
      await addSubscriber(project, { email }),
      await addSubscriber(project, { email }),
    ]
    const named = await project.post("/v1/emails", mail({ to: email }))
    const other = await project.post("/v1/emails", mail({ to: email }))
    await store.tx((tx) =>
      tx.update(messages).set({ subscriber_id: ann.id }).where(eq(messages.id, named.body.id)),
    )
    await project.post("/v1/suppressions", { email })
    const answer = await project.post(path(ann.id, "/erase"), { confirm: ann.external_id })
    expect(answer.body.data.counts).toMatchObject({ messages: 1, suppressions: 0 })
    expect((await project.get(`/v1/emails/${other.body.id}`)).status).toBe(200)
    expect((await project.get(path(ben.id))).status).toBe(200)
    expect((await project.get(`/v1/suppressions/check?email=${email}`)).body.data.suppressed).toBe(
      true,
    )
  })

  test("leaves what is about a subscriber whose external id differs in upper and lower case", async () => {
    const project = await service.project()
    for (const external_id of ["User-A", "user-a"]) {
      const { id } = await addSubscriber(project, { external_id })
      await project.post(path(id, "/unsubscribe"), { channel: "sms" })
    }
    const told = async (): Promise<string[]> =>
      (await project.get("/v1/events?limit=100")).body.data
        .filter(({ type }: { type: string }) => type === "subscriber.unsubscribed")
        .map(({ data }: { data: { external_id: string } }) => data.external_id)
    expect((await told()).sort()).toEqual(["User-A", "user-a"])
    await project.post(path("user-a", "/erase"), { confirm: "user-a" })
    expect(await told()).toEqual(["User-A"])
  })

  test("leaves what the audit log keeps of the account and of other projects", async () => {
    const [project, other] = [await service.project(), await service.project()]
    const email = "audited@mailbox.test"
    const { id, external_id } = await addSubscriber(project, { email })
    const { account_id, project_id } = project
    const places = [null, other.project_id, project_id]
    const action = `test.${newId()}`
    await store.tx(async (tx) => {
      for (const place of places) {
        const target = { type: "invitation", id: newId() }
        const what = { account_id, project_id: place, action, target, after: { email } }
        await audit.record(tx, audit.SYSTEM, what)
      }
    })
    await project.post(path(id, "/erase"), { confirm: external_id })
    const rows = await store.read.select().from(auditLog).where(eq(auditLog.action, action))
    const kept = new Map(rows.map((row) => [row.project_id, row.after]))
    expect(places.map((place) => kept.get(place))).toEqual([{ email }, { email }, null])
  })

  test("leaves a message whose attempt runs to the job, which looks until it has ended", async () => {
    const project = await service.project()
    const email = "slow@mailbox.test"
    const { id, external_id } = await addSubscriber(project, { email })
    const sent = await project.post("/v1/emails", mail({ to: email }))
    const later = await project.post("/v1/emails", {
      ...mail({ to: email }),
      scheduled_at: secondsFromNow(3600),
    })
    const status = async ({ body }: typeof sent) =>
      (await project.get(`/v1/emails/${body.id}`)).status
    const [begun, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const schedule = () => undefined
    const delivering = deliverBy(parts, {
      ...{ name: "mailbox", schedule, close: async () => {} },
      async send({ to }) {
        begun.resolve()
        await answer.promise
        const [first, ...others] = to.map(delivered)
        if (!first) throw new Error("a mail without recipients was handed over")
        return { ...first, others, transcript: [], provider: "mailbox", schedule }
      },
    })
    await begun.promise
    const erased = await project.post(path(id, "/erase"), { confirm: external_id })
    expect(erased.body.data.counts.messages).toBe(1)
    expect(erased.body.data.remains[0].what).toContain("delivery is running")
    expect(await status(later)).toBe(404)
    const all = await store.read.select().from(jobs).where(eq(jobs.name, subscriberErased.name))
    const job = all.at(-1)
    if (!job) throw new Error("there is no job")
    const payload = job.payload as never
    expect(JSON.stringify(payload)).not.toContain("slow@")
    const retry = "messages being delivered: 1"
    expect(await eraseRest(parts).run(payload, job)).toEqual({ retry })
    answer.resolve()
    await delivering
    expect(await status(sent)).toBe(200)
    expect(await eraseRest(parts).run(payload, job)).toEqual({})
    expect(await status(sent)).toBe(404)
    expect((await project.get("/v1/events?limit=100")).text).not.toContain("slow@")
  })

  test("leaves mail that is sent to the address afterwards", async () => {
    const project = await service.project()
    const email = "later@mailbox.test"
    const { id, external_id } = await addSubscriber(project, { email })
    await project.post(path(id, "/erase"), { confirm: external_id })
    clock.advance({ seconds: 1 })
    const sent = await project.post("/v1/emails", mail({ to: email }))
    clock.advance({ seconds: 90 })
    await runJobs()
    expect((await project.get(`/v1/emails/${sent.body.id}`)).status).toBe(200)
  })
})

/** Space of rows that are gone is used again after this; until then the files may hold their bytes. */
async function vacuum() {
  await using sql = new SQL(service.database_url ?? "", { max: 1 })
  await sql.unsafe("VACUUM")
}
