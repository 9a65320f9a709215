import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { localPartFor } from "../../src/core/mail-token"
import { now, secondsFromNow } from "../../src/core/time"
import { accounts } from "../../src/identity/tables"
import { remove as removeReceived } from "../../src/inbound/inbound-retention"
import { jobs } from "../../src/jobs/tables"
import * as mailbox from "../../src/mailbox/mailbox"
import { expireContents, removeMessages } from "../../src/messages/message-retention"
import { countedRows, countInSteps } from "../../src/operations/counted-rows"
import { namedByMessages } from "../../src/operations/table-lives"
import { counterSweeper } from "../../src/operations/tidy"
import { MB, STORED, storedTotal } from "../../src/plans/stored-bytes"
import { totals } from "../../src/store/counters"
import { usageAlert } from "../../src/tenancy/quotas"
import { movableClock } from "../harness/clock"
import { deliverAll, delivered } from "../harness/delivery"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

quietLog()

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

const { deliveries: DELIVERIES, ...COUNTED } = STORED
const NAMES = Object.values(COUNTED)

/** What the counters say, which is what the rows hold. */
async function stored({ project_id }: TestProject) {
  const told = await totals(store.read, project_id, NAMES)
  for (const name of NAMES) {
    const rows = countedRows("project", project_id, name)
    const counted = rows && (await countInSteps(store.read, rows, async () => {}))
    expect([name, told.get(name)]).toEqual([name, counted])
  }
  const {
    email = 0,
    received = 0,
    mailbox = 0,
  } = Object.fromEntries(NAMES.map((name) => [name.split(".")[1], told.get(name)]))
  return { email, received, mailbox }
}

const file = (kilobytes: number, filename = "a.txt") => ({
  filename,
  content: Buffer.alloc(kilobytes * 1024, filename).toString("base64"),
})

const send = (project: TestProject, more: Record<string, unknown> = {}) =>
  project.post("/v1/emails", mail(more))

describe("what a project stores is counted with the rows, and goes with them:", () => {
  test("contents and files of messages, until retention or a removal", async () => {
    const project = await service.project()
    await send(project)
    const plain = (await stored(project)).email
    expect(plain).toBeGreaterThan(100)
    await send(project, { attachments: [file(40)] })
    expect((await stored(project)).email - 2 * plain).toBeWithin(40 * 1024 - 500, 40 * 1024 + 500)
    await deliverAll(service, (email) => delivered(email))
    const old = {
      project_id: project.project_id,
      channel: "email" as const,
      before: secondsFromNow(60),
    }
    const before = await stored(project)
    await expireContents(store, old, "")
    expect((await stored(project)).email).toBe(0)
    expect(before.email).toBeGreaterThan(0)
    await send(project)
    await deliverAll(service, (email) => delivered(email))
    await removeMessages(store, { ...old, before: secondsFromNow(60) }, "", namedByMessages)
    expect(await stored(project)).toEqual({ email: 0, received: 0, mailbox: 0 })
  })

  test("a file that a batch names many times counts once", async () => {
    const project = await service.project()
    const shared = mail({ attachments: [file(60)] })
    await project.post("/v1/emails/batch", { messages: [shared, shared, shared] })
    expect((await stored(project)).email).toBeWithin(60 * 1024, 64 * 1024)
  })

  test("long texts, which are a file", async () => {
    const project = await service.project()
    await send(project, { html: "x".repeat(600 * 1024) })
    expect((await stored(project)).email).toBeWithin(600 * 1024, 601 * 1024)
  })

  test("received mail: each recipient's own where it is small, a part of the file where it is large", async () => {
    const project = await service.project()
    const domain = await addReceivingDomain(store, project)
    const to = [`a@${domain}`, `b@${domain}`]
    const small = await server.receive({ to, raw: "Subject: hello\n\nText\n" })
    const { received } = await stored(project)
    expect(received).toBe(small.reduce((sum, { size }) => sum + size, 0))
    const large = await server.receive({
      to,
      raw: `Subject: x\n\n${"0123456789abcde\n".repeat(9000)}`,
    })
    const size = large[0]?.size ?? 0
    expect((await stored(project)).received - received).toBeWithin(size, size + 2)
    await store.tx((tx) =>
      removeReceived(
        tx,
        [...small, ...large].map(({ id }) => id),
      ),
    )
    expect((await stored(project)).received).toBe(0)
  })

  test("caught mail", async () => {
    const project = await service.project()
    const { account_id, project_id } = project
    const id = newId()
    await store.tx((tx) =>
      mailbox.keep(tx, {
        ...{
          id,
          project_id,
          account_id,
          email_id: null,
          mail_from: "a@b.test",
          recipients: ["c@d.test"],
        },
        ...{
          to_address: "c@d.test",
          from_address: "a@b.test",
          subject: "x",
          raw: Buffer.from("abc"),
        },
        ...{ size: 3, created_at: now(), read_at: null, attachments: 0 },
      }),
    )
    expect((await stored(project)).mailbox).toBe(3)
    await store.tx((tx) => mailbox.removeByIds(tx, project_id, [id]))
    expect((await stored(project)).mailbox).toBe(0)
  })
})

describe("a project that stores all that its plan allows", () => {
  const limited = () => service.project({ plan: "starter", limits: { stored_mb: 1 } })

  const alerts = async ({ project_id }: TestProject) => {
    const rows = await store.read.select().from(jobs).where(eq(jobs.name, usageAlert.name))
    const payloads = rows.map(({ payload }) => payload as { project_id?: string; share: number })
    return payloads.filter((one) => one.project_id === project_id).map(({ share }) => share)
  }

  test("refuses sends that do not fit with 403, also those of a strict batch and of the sandbox", async () => {
    const project = await limited()
    expect((await send(project, { attachments: [file(700)] })).status).toBe(201)
    const refused = await send(project, { attachments: [file(500)] })
    expect(refused).toMatchObject({ status: 403, body: { error: { code: "plan_limit_exceeded" } } })
    const { details } = refused.body.error
    expect(details).toEqual({ resource: "stored_mb", used: 1, limit: 1, plan: "starter" })
    const messages = [mail(), mail({ attachments: [file(500)] })]
    const strict = await project.post("/v1/emails/batch", messages as never)
    expect(strict.status).toBe(403)
    expect((await send(project)).status).toBe(201) // it fits
    await project.call("PATCH", "/v1/settings", { body: { sandbox: true } })
    expect((await send(project, { attachments: [file(500)] })).status).toBe(403)
    await stored(project)
  })

  test("takes no received mail, but reports about its own", async () => {
    const project = await limited()
    const domain = await addReceivingDomain(store, project)
    const { body } = await send(project, { attachments: [file(900)] })
    expect(await server.offer({ to: `a@${domain}`, raw: "x" })).toStartWith("2.0.0")
    const raw = `Subject: x\n\n${"0123456789abcde\n".repeat(9000)}`
    await server.receive({ to: `a@${domain}`, raw })
    expect(await server.offer({ to: `a@${domain}`, raw: "x" })).toMatch(
      /^452 4\.2\.2 plan_limit_exceeded: /,
    )
    const returnPath = `${localPartFor(parts.secrets, "b", body.id)}@${HOST}`
    expect(await server.offer({ to: returnPath, raw: "x" })).toStartWith("2.0.0")
    expect(await alerts(project)).toEqual([80, 100])
  })

  test("has its owners told at 80 and 100 %, and again only when it stored less meanwhile", async () => {
    const project = await limited()
    await send(project, { attachments: [file(500)] })
    expect(await alerts(project)).toEqual([])
    await send(project, { attachments: [file(400, "b.txt")] })
    await send(project)
    expect(await alerts(project)).toEqual([80])
    await send(project, { attachments: [file(400, "c.txt")] })
    expect(await alerts(project)).toEqual([80, 100])
    await deliverAll(service, (email) => delivered(email))
    const { project_id } = project
    await expireContents(store, { project_id, channel: "email", before: secondsFromNow(60) }, "")
    clock.advance({ seconds: 86_400 })
    const sweep = counterSweeper(store)
    do await sweep()
    while ((await storedTotal(store.read, project_id)).told > 0)
    const before = await alerts(project)
    await send(project, { attachments: [file(900, "d.txt")] })
    expect(await alerts(project)).toEqual([...before, 80])
  })

  test("shows it in the usage of the project", async () => {
    const project = await limited()
    await send(project, { attachments: [file(500)] })
    const { body } = await project.get("/v1/usage")
    expect(body.data.stored_mb).toEqual({ used: 1, limit: 1, remaining: 0 })
    await store.tx((tx) =>
      tx.update(accounts).set({ limits: null }).where(eq(accounts.id, project.account_id)),
    )
    const { used, told } = await storedTotal(store.read, project.project_id)
    expect([used < MB, told]).toEqual([true, 0])
  })
})
