import { afterAll, describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { localPartFor } from "../../src/core/mail-token"
import { now } from "../../src/core/time"
import { events } from "../../src/events/tables"
import { accounts } from "../../src/identity/tables"
import { comparableMatch, isMatch, routeFor } from "../../src/inbound/inbound-route"
import { inboundRoutes, type RouteAction } from "../../src/inbound/tables"
import { messageContents, messages } from "../../src/messages/tables"
import { firstProject } from "../../src/tenancy/setup"
import { deliveries } from "../../src/webhooks/tables"
import { addReceivingDomain } from "../harness/inbound-rows"
import { HOST, inboundServer } from "../harness/inbound-server"
import { mail } from "../harness/mail"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"

const logged = quietLog()

const service = await sharedService()
const { store, parts } = service
const server = await inboundServer(service)
afterAll(() => server[Symbol.asyncDispose]())

interface RouteInput {
  match_to: string
  action?: RouteAction
  target?: string | null
  priority?: number
}

const addRoutes = async ({ project_id }: TestProject, ...routes: RouteInput[]) => {
  const fresh = { action: "webhook" as const, target: null, priority: 100 }
  const rows = routes.map((route) => {
    return { id: newId(), project_id, ...fresh, ...route, created_at: now(), updated_at: now() }
  })
  await store.tx((tx) => tx.insert(inboundRoutes).values(rows))
  return rows.map(({ id }) => id)
}

async function receiving() {
  const project = await service.project()
  return { project, domain: await addReceivingDomain(store, project) }
}

async function endpoint(project: TestProject, types: string[]) {
  const url = "http://127.0.0.1:9099/"
  const { body } = await project.post("/v1/webhooks", { url, events: types })
  return body.data.id as string
}

const toldOf = async (event_id: string | null) => {
  const planned = eq(deliveries.event_id, event_id ?? "")
  const rows = event_id === null ? [] : await store.read.select().from(deliveries).where(planned)
  return rows.map(({ webhook_id }) => webhook_id)
}

const RAW = `From: Ann <ann@elsewhere.test>
Subject: A question
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: text/plain

Where is it?
--b
Content-Type: text/plain; name="a.txt"
Content-Disposition: attachment; filename="a.txt"

a file
--b--
`

const receive = async (to: string, raw = RAW) => {
  const [row] = await server.receive({ to, raw })
  if (!row) throw new Error("the mail has no row")
  return row
}

describe("a match", () => {
  test.each([
    ["sales@d.test", "sales@d.test", true],
    ["sales@d.test", "sales+1@d.test", false],
    ["sales@d.test", "sales@e.test", false],
    ["support+*@d.test", "support+1@d.test", true],
    ["support+*@d.test", "support+a+b@d.test", true],
    ["support+*@d.test", "support@d.test", false],
    ["support+*@d.test", "xsupport+1@d.test", false],
    ["*@d.test", "any@d.test", true],
    ["*@d.test", "any@sub.d.test", false],
  ])("%s on %s: %p", (match, address, is) => {
    expect(isMatch(match, address)).toBe(is)
  })

  test.each([
    ["Support+*@In.Example.com", "support+*@in.example.com"],
    ["*@bücher.example", "*@xn--bcher-kva.example"],
    [" a@b.test ", "a@b.test"],
    ["*", undefined],
    ["*@*", undefined],
    ["a*@b.test", undefined],
    ["+*@b.test", "+*@b.test"],
    ["a+*b@b.test", undefined],
    ["a@b@c.test", undefined],
    ["a", undefined],
  ])("%p is kept as %p", (given, kept) => {
    expect(comparableMatch(given)).toBe(kept)
  })

  test("of the lowest priority number wins, then the longer one", async () => {
    const { project, domain } = await receiving()
    const [all, tagged, exact, first] = await addRoutes(
      project,
      { match_to: `*@${domain}` },
      { match_to: `sales+*@${domain}` },
      { match_to: `sales+1@${domain}` },
      { match_to: `sales+2@${domain}`, priority: 1 },
    )
    const idFor = async (local: string) =>
      (await routeFor(store.read, project.project_id, `${local}@${domain}`))?.id
    expect(await idFor("any")).toBe(all ?? "")
    expect(await idFor("sales+3")).toBe(tagged ?? "")
    expect(await idFor("sales+1")).toBe(exact ?? "")
    expect(await idFor("sales+2")).toBe(first ?? "")
    await store.tx((tx) =>
      tx
        .update(inboundRoutes)
        .set({ priority: 0 })
        .where(eq(inboundRoutes.id, all ?? "")),
    )
    if (service.database_url !== null) await Bun.sleep(1100)
    expect(await idFor("sales+2")).toBe(all ?? "")
  })
})

describe("a route", () => {
  test("to one webhook tells that one, whatever it subscribes to, and no other", async () => {
    const { project, domain } = await receiving()
    const [one, other] = [
      await endpoint(project, ["domain.*"]),
      await endpoint(project, ["email.*"]),
    ]
    const [route_id = ""] = await addRoutes(project, { match_to: `a@${domain}`, target: one })
    const row = await receive(`a@${domain}`)
    expect(row.route_id).toBe(route_id)
    expect(await toldOf(row.event_id)).toEqual([one])
    const unrouted = await receive(`b@${domain}`)
    expect([unrouted.route_id, await toldOf(unrouted.event_id)]).toEqual([null, [other]])
  })

  test("to webhooks tells all that subscribe; to one that was deleted none", async () => {
    const { project, domain } = await receiving()
    const one = await endpoint(project, ["email.received"])
    await addRoutes(
      project,
      { match_to: `a@${domain}` },
      { match_to: `b@${domain}`, target: newId() },
    )
    expect(await toldOf((await receive(`a@${domain}`)).event_id)).toEqual([one])
    const row = await receive(`b@${domain}`)
    expect(row.event_id).not.toBeNull()
    expect(await toldOf(row.event_id)).toEqual([])
  })

  test("that drops keeps the row and tells nobody", async () => {
    const { project, domain } = await receiving()
    await endpoint(project, ["*"])
    await addRoutes(project, { match_to: `spam+*@${domain}`, action: "drop" })
    const row = await receive(`spam+1@${domain}`)
    expect(row).toMatchObject({ status: "processed", event_id: null })
    const told = await store.read.select().from(events).where(eq(events.subject_id, row.id))
    expect(told).toEqual([])
  })

  test("that forwards sends the mail on from its own address, and records the event for nobody", async () => {
    const { project, domain } = await receiving()
    await endpoint(project, ["email.received"])
    const target = "team@elsewhere.test"
    await addRoutes(project, { match_to: `a@${domain}`, action: "forward", target })
    const row = await receive(`a@${domain}`)
    const sent = await store.read
      .select()
      .from(messages)
      .where(eq(messages.project_id, project.project_id))
    expect(sent).toMatchObject([
      {
        address: target,
        sender: `a@${domain}`,
        source: "inbound_reply",
        thread_id: row.thread_id,
      },
    ])
    const [email] = sent
    expect(email?.envelope?.reply_to).toEqual([{ email: "ann@elsewhere.test", name: "Ann" }])
    const [file] = email?.envelope?.attachments ?? []
    expect(file?.filename).toBe("a.txt")
    expect(Buffer.from((await parts.blobs.get(file?.sha256 ?? "")) ?? []).toString()).toBe("a file")
    const written = eq(messageContents.message_id, email?.id ?? "")
    const [content] = await store.read.select().from(messageContents).where(written)
    expect(JSON.stringify(content?.content)).toContain("Where is it?")
    expect(row.event_id).not.toBeNull()
    expect(await toldOf(row.event_id)).toEqual([])
  })

  test("that forwards what it forwarded before tells the event instead: loops end", async () => {
    const { project, domain } = await receiving()
    const one = await endpoint(project, ["email.received"])
    const target = `b@${domain}`
    await addRoutes(project, { match_to: `a@${domain}`, action: "forward", target })
    const row = await receive(`a@${domain}`, `X-Loop: a@${domain}\n${RAW}`)
    expect(await toldOf(row.event_id)).toEqual([one])
    const sent = await store.read
      .select()
      .from(messages)
      .where(eq(messages.project_id, project.project_id))
    expect(sent).toEqual([])
  })

  test.each([
    ["the account is suspended", { status: "suspended" as const }],
    ["the quota is used up", { limits: { emails_per_month: 0 } }],
  ])("that forwards tells the event instead when %s, and the log says why", async (_, change) => {
    const { project, domain } = await receiving()
    const one = await endpoint(project, ["email.received"])
    await addRoutes(project, {
      match_to: `a@${domain}`,
      action: "forward",
      target: "x@elsewhere.test",
    })
    const ours = eq(accounts.id, project.account_id)
    await store.tx((tx) => tx.update(accounts).set(change).where(ours))
    const row = await receive(`a@${domain}`)
    expect(row.status).toBe("processed")
    expect(await toldOf(row.event_id)).toEqual([one])
    expect(logged().some((line) => line.includes("a mail was not forwarded"))).toBe(true)
  })

  test("is not asked for an address with a MAC", async () => {
    const { project, domain } = await receiving()
    await addRoutes(project, { match_to: `*@${domain}`, action: "drop" })
    const { body } = await project.post("/v1/emails", mail())
    const local = localPartFor(parts.secrets, "r", body.id)
    for (const host of [HOST, domain]) {
      const row = await receive(`${local}@${host}`)
      expect(row).toMatchObject({ kind: "reply", route_id: null })
      expect(row.event_id).not.toBeNull()
    }
  })
})

test("routes decide about the mail of this machine's own domain as well", async () => {
  const [first] = await firstProject(store.read)
  const to = `${newId()}@in.mailbox.test`
  const [route] = await addRoutes(first as TestProject, { match_to: to, action: "drop" })
  await using local = await inboundServer(service, { own_domain: "in.mailbox.test" })
  const [row] = await local.receive({ to, raw: RAW })
  expect(row).toMatchObject({ status: "processed", route_id: route, event_id: null })
})
