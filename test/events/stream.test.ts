import { describe, expect, test } from "bun:test"
import * as feed from "../../src/events/feed"
import { SOCKETS_PER_PROJECT } from "../../src/http/sockets"
import * as apiKeys from "../../src/identity/api-keys"
import { notifyWatchers } from "../../src/messages/status-changes"
import { seat } from "../../src/tenancy/accounts"
import { team } from "../harness/people"
import { quietLog } from "../harness/quiet"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { dial, type Frame, refusedUpgrade } from "../harness/socket"
import { notifyEvents } from "./stream-facts"

quietLog()

const service = await sharedService({
  socket_times: { look_ms: 50, ping_ms: 200, silence_ms: 60_000, stuck_ms: 60_000 },
})
const { url } = service.listen()

const happened = (project: TestProject, ...names: string[]) =>
  notifyEvents(service.store, project, names)

const isEvent = (type: string) => (frame: Frame) => frame.event?.type === type

const types = (frames: Frame[]) => frames.flatMap(({ event }) => event?.type ?? [])

const activityOf = ({ project_id }: TestProject) => ({
  id: "m1",
  project_id,
  channel: "email" as const,
  status: "sent" as const,
  status_reason: null,
  recipient: "ann@mailbox.test",
  at: "2026-11-21T10:30:00.000Z",
  event_type: "email.sent",
  elapsed_ms: 12,
  next_attempt_at: null,
})

describe("the way in", () => {
  test.each([
    ["no credential", {}, 401, "unauthorized"],
    ["an unknown key", { "x-api-key": "svc_live_x" }, 401, "unauthorized"],
  ])("%s is answered as plain HTTP", async (_, headers, status, code) => {
    expect(await refusedUpgrade(url, "", headers)).toMatchObject({ status, code })
  })

  test("a key without the scope, or from elsewhere, is refused before the upgrade", async () => {
    const project = await service.project()
    const narrow = await project.addKey({ scopes: ["email:send"] })
    const elsewhere = await project.addKey({ ip_addresses: ["192.0.2.1"], scopes: ["email:send"] })
    const ask = (key: string) => refusedUpgrade(url, "", { "x-api-key": key })
    expect(await ask(narrow.key)).toMatchObject({ status: 403, code: "forbidden" })
    expect(await ask(elsewhere.key)).toMatchObject({ status: 403, code: "ip_not_allowed" })
  })

  test("a mere GET, another protocol and a wrong query hear what is wrong", async () => {
    const project = await service.project()
    const proof = { "x-api-key": project.key }
    const plain = await project.get("/v1/events/stream")
    expect(plain.body.error).toMatchObject({
      code: "validation_error",
      details: { reason: "upgrade_required" },
    })
    const other = { ...proof, "sec-websocket-protocol": "svc.inbox.v1" }
    expect(await refusedUpgrade(url, "", other)).toMatchObject({
      status: 422,
      reason: "subprotocol_required",
    })
    for (const query of [
      "?after=evt_none",
      "?types=nonsense",
      "?forward=perhaps",
      "?newest_every_ms=-1",
      "?newest_every_ms=60001",
      "?newest_every_ms=500&forward=true",
    ]) {
      expect(await refusedUpgrade(url, query, proof)).toMatchObject({ status: 422 })
    }
  })

  test("somebody who is signed in comes in with his token", async () => {
    const { owner, account_id, project_id } = await team(service)
    const headers = { "x-account-id": account_id, "x-project-id": project_id }
    using socket = await dial(url, "", { token: owner.token, headers })
    expect(socket.protocol).toBe("svc.events.v1")
  })
})

test("a page, which sends no headers, names its account and project in the query", async () => {
  const { owner, account_id, project_id } = await team(service)
  const others = await team(service)
  await service.store.tx((tx) => seat(tx, others.account_id, owner.id, "admin"))
  const protocols = ["svc.events.v1", `bearer.${owner.token}`]
  const dialIn = (query: string) => dial(url, query, { protocols })
  for (const [account, project] of [
    [account_id, project_id],
    [others.account_id, others.project_id],
  ]) {
    using socket = await dialIn(`?account_id=${account}&project_id=${project}`)
    expect(socket.protocol).toBe("svc.events.v1")
  }
  const offered = { "sec-websocket-protocol": protocols.join(", ") }
  expect(await refusedUpgrade(url, "", offered)).toMatchObject({ status: 422 })
  const foreign = await team(service)
  for (const query of [
    `?account_id=${foreign.account_id}`,
    `?account_id=${account_id}&project_id=${foreign.project_id}`,
    `?account_id=${account_id}&project_id=${others.project_id}`,
  ]) {
    expect(await refusedUpgrade(url, query, offered)).toMatchObject({ status: 404 })
  }
})

describe("what is told", () => {
  test("events as they come, and only of one's own project", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    await happened(ours, "email.queued")
    using socket = await dial(url, "", ours)
    await happened(theirs, "email.opened")
    const [sent] = await happened(ours, "email.sent", "email.delivered")
    await socket.next(isEvent("email.delivered"))
    expect(types(socket.frames)).toEqual(["email.sent", "email.delivered"])
    expect(socket.frames[0]).toEqual({
      type: "event",
      event: feed.envelopeOf(sent as feed.Event),
    })
  })

  test("from an event on, from the oldest on, and of some types only", async () => {
    const project = await service.project()
    const [first] = await happened(project, "email.queued", "sms.sent", "email.sent")
    using after = await dial(url, `?after=${first?.id}`, project)
    using oldest = await dial(url, "?after=", project)
    using some = await dial(url, "?after=&types=sms.*,email.sent", project)
    for (const socket of [after, oldest, some]) await socket.next(isEvent("email.sent"))
    expect(types(after.frames)).toEqual(["sms.sent", "email.sent"])
    expect(types(oldest.frames)).toEqual(["email.queued", "sms.sent", "email.sent"])
    expect(types(some.frames)).toEqual(["sms.sent", "email.sent"])
  })

  test("changes of messages, to those who watch the project", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    using socket = await dial(url, "", ours)
    using other = await dial(url, "", theirs)
    const activity = activityOf(ours)
    notifyWatchers(service.store.read, activity)
    expect(await socket.next(({ type }) => type === "message")).toEqual({
      type: "message",
      message: activity,
    })
    await happened(theirs, "email.sent")
    await other.next(isEvent("email.sent"))
    expect(other.frames.map(({ type }) => type)).toEqual(["event"])
  })

  test("with newest_every_ms the newest event alone, and no changes of messages", async () => {
    const project = await service.project()
    const every_ms = 100
    using every = await dial(url, "", project)
    using newest = await dial(url, `?newest_every_ms=${every_ms}&types=email.*`, project)
    const begun = performance.now()
    for (let n = 0; n < 600; n += 3) {
      await notifyEvents(service.store, project, ["email.sent", "email.delivered", "sms.sent"], n)
      notifyWatchers(service.store.read, activityOf(project))
    }
    await newest.next(({ event }) => event?.data.n === 598)
    const passed_ms = performance.now() - begun
    await every.next(({ event }) => event?.data.n === 599)
    await every.next(({ type }) => type === "message")
    expect(newest.frames.every(({ type }) => type === "event")).toBe(true)
    expect(newest.frames.length).toBeLessThanOrEqual(2 + (1.1 * passed_ms) / every_ms)
    const numbers = newest.frames.map(({ event }) => Number(event?.data.n))
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(types(newest.frames)).not.toContain("sms.sent")
    const [last] = await happened(project, "email.opened")
    expect((await newest.next(isEvent("email.opened"))).event?.id).toBe(last?.id)
  })

  test("a ping now and then", async () => {
    using socket = await dial(url, "", await service.project())
    expect(await socket.next(({ type }) => type === "ping")).toEqual({ type: "ping" })
    socket.send({ type: "ping" })
    expect(await socket.next(({ type }) => type === "pong")).toEqual({ type: "pong" })
  })
})

describe("the end", () => {
  test.each([
    ["no JSON", "hello"],
    ["no object", "[1]"],
    ["an unknown type", '{"type":"subscribe"}'],
    ["a result that nobody asked for", '{"type":"result","delivery_id":"x"}'],
    ["more than 16 KiB", JSON.stringify({ type: "pong", padding: "x".repeat(16_384) })],
  ])("%s is a bad frame: 4400", async (_, frame) => {
    using socket = await dial(url, "", await service.project())
    socket.send(frame)
    expect(await socket.closed).toMatchObject({ code: 4400 })
  })

  test("a frame beyond all measure is not even read", async () => {
    using socket = await dial(url, "", await service.project())
    socket.send("x".repeat(70_000))
    expect((await socket.closed).code).toBe(1009)
  })

  test("more than twenty frames a second: 4429", async () => {
    using socket = await dial(url, "", await service.project())
    for (let n = 0; n < 50; n++) socket.send({ type: "pong" })
    expect((await socket.closed).code).toBe(4429)
  })

  test("one connection too many of a project closes its oldest: 4429", async () => {
    const project = await service.project()
    const first = await dial(url, "", project)
    const rest = []
    for (let n = 0; n < SOCKETS_PER_PROJECT; n++) rest.push(await dial(url, "", project))
    expect((await first.closed).code).toBe(4429)
    await happened(project, "email.sent")
    for (const socket of rest) await socket.next(isEvent("email.sent"))
    for (const socket of rest) socket[Symbol.dispose]()
  })

  test("a revoked key ends its connections, and nobody else's: 4401", async () => {
    const project = await service.project()
    const other = await project.addKey()
    using socket = await dial(url, "", other)
    using ours = await dial(url, "", project)
    await service.store.tx((tx) => apiKeys.revoke(tx, project.project_id, other.id))
    expect(await socket.closed).toMatchObject({ code: 4401 })
    await happened(project, "email.sent")
    await ours.next(isEvent("email.sent"))
  })

  test("who signs out ends what he left open: 4401", async () => {
    const { owner, account_id, project_id } = await team(service)
    const headers = { "x-account-id": account_id, "x-project-id": project_id }
    using socket = await dial(url, "", { token: owner.token, headers })
    await owner.call("DELETE", "/v1/session")
    expect(await socket.closed).toMatchObject({ code: 4401 })
  })
})
