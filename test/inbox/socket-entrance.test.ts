import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { secondsFromNow } from "../../src/core/time"
import { accounts } from "../../src/identity/tables"
import * as tickets from "../../src/inbox/tickets"
import { signerOf } from "../../src/signing-keys/signing-keys"
import { movableClock } from "../harness/clock"
import { testService } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import type { TestSocket } from "../harness/socket"
import { refusedUpgrade } from "../harness/socket"
import { enter, knock, PROTOCOL, person, typed } from "./inbox-dial"
import { signedWith, tokenOf } from "./subscriber-app"

const clock = movableClock()
const service = await sharedService({
  socket_times: { look_ms: 50, ping_ms: 60_000, silence_ms: 60_000, stuck_ms: 60_000 },
})
const { store, parts } = service
const { url } = service.listen()

const code = async ({ closed }: TestSocket) => (await closed).code

async function somebody() {
  const project = await service.project()
  return { project, ...(await person(service, project)) }
}

const ticketOf = ({ owner }: Awaited<ReturnType<typeof person>>, seconds = 3600) =>
  store.tx((tx) => tickets.issue(tx, { ...owner, token_ends_at: secondsFromNow(seconds) }))

const withBearer = (token: string) => knock(url, "", { protocols: [PROTOCOL, `bearer.${token}`] })

async function refused(token: unknown, origin?: string): Promise<number> {
  const socket = await knock(url, "", origin ? { headers: { origin } } : {})
  socket.send({ type: "auth", token })
  return await code(socket)
}

describe("signing in at the socket of an inbox", () => {
  test("works with a ticket, with a second subprotocol, and with a header", async () => {
    const ann = await somebody()
    const ready = { subscriber_id: ann.subscriber_id, last_seq: 0, heartbeat: 25 }
    const ways = [
      async () => knock(url, `?ticket=${await ticketOf(ann)}`),
      () => withBearer(ann.token),
      () => knock(url, "", { token: ann.token }),
    ]
    for (const way of ways) {
      const socket = await way()
      expect(socket.protocol).toBe(PROTOCOL)
      expect(await typed(socket, "ready")).toMatchObject(ready)
      await ann.send("live")
      await typed(socket, "message.created")
      socket.cut()
      ready.last_seq += 1
    }
  })

  test("needs a WebSocket of this subprotocol, which is told by HTTP", async () => {
    const plain = await service.anybody.get("/v1/subscriber-inbox/ws")
    expect(plain.body.error.details).toEqual({ reason: "upgrade_required" })
    const path = "/v1/subscriber-inbox/ws"
    const other = await refusedUpgrade(url, "", { "sec-websocket-protocol": "x" }, path)
    expect(other).toEqual({
      ...{ status: 422, code: "validation_error", reason: "subprotocol_required" },
    })
  })

  test("uses a ticket up, and refuses one that is late, unknown or beside a token", async () => {
    const ann = await somebody()
    const ticket = await ticketOf(ann)
    const late = await ticketOf(ann)
    using socket = await knock(url, `?ticket=${ticket}`)
    await typed(socket, "ready")
    expect(await code(await knock(url, `?ticket=${ticket}`))).toBe(4401)
    expect(await code(await knock(url, "?ticket=unknown"))).toBe(4401)
    const both = { protocols: [PROTOCOL, `bearer.${ann.token}`] }
    expect(await code(await knock(url, `?ticket=${late}`, both))).toBe(4401)
    clock.advance({ seconds: 61 })
    expect(await code(await knock(url, `?ticket=${late}`))).toBe(4401)
  })

  test("refuses what is no token of a subscriber of its project, with 4401", async () => {
    const [ann, bob] = [await somebody(), await somebody()]
    const { private_key } = await signerOf(store, parts.secrets, {
      project_id: ann.owner.project_id,
    })
    const [header, claims] = [decodeProtectedHeader(ann.token), decodeJwt(ann.token)]
    const [, body = "", signature = ""] = ann.token.split(".")
    const none = Buffer.from(JSON.stringify({ ...header, alg: "none" })).toString("base64url")
    const bad = {
      garbage: "a.b.c",
      "an API key": ann.project.key,
      "alg none": `${none}.${body}.`,
      "alg none with our signature": `${none}.${body}.${signature}`,
      "another audience": signedWith(private_key, header, { ...claims, aud: "web" }),
      "a subscriber of another project": signedWith(private_key, header, {
        ...claims,
        sub: bob.subscriber_id,
      }),
      "a token that is over": signedWith(private_key, header, { ...claims, exp: 1, iat: 0 }),
    }
    for (const [name, token] of Object.entries(bad))
      expect([name, await refused(token)]).toEqual([name, 4401])
    expect(await code(await withBearer(bad["alg none"]))).toBe(4401)
    const two = { protocols: [PROTOCOL, `bearer.${ann.token}`, `bearer.${bob.token}`] }
    expect(await code(await knock(url, "", two))).toBe(4401)
    await ann.project.call("DELETE", `/v1/subscribers/${ann.subscriber_id}`)
    expect(await refused(ann.token)).toBe(4401)
  })

  test("refuses pages of other origins and the blocked with 4403, also later", async () => {
    const ann = await somebody()
    const origins = (list: string[]) =>
      ann.project.call("PATCH", "/v1/settings", { body: { allowed_origins: list } })
    const block = (status: string) =>
      ann.project.call("PATCH", `/v1/subscribers/${ann.subscriber_id}`, { body: { status } })
    expect((await origins(["https://app.example.com"])).status).toBe(200)
    expect(await refused(ann.token, "https://evil.example")).toBe(4403)
    const page = await knock(url, "", { headers: { origin: "https://app.example.com" } })
    page.send({ type: "auth", token: ann.token })
    await typed(page, "ready")
    const program = await enter(url, ann.token)
    await origins(["https://other.example.com"])
    await parts.inbox_hub.look()
    expect(await code(page)).toBe(4403)
    await block("blocked")
    expect(await refused(ann.token)).toBe(4403)
    await parts.inbox_hub.look() // the first one was a turn that came to its end
    await parts.inbox_hub.look()
    expect(await code(program)).toBe(4403)
    await block("active")
    const again = await enter(url, ann.token)
    await store.tx((tx) =>
      tx
        .update(accounts)
        .set({ deleting_at: secondsFromNow(0) })
        .where(eq(accounts.id, ann.project.account_id)),
    )
    await parts.inbox_hub.look()
    await parts.inbox_hub.look()
    expect(await code(again)).toBe(4401)
  })

  test("ends with its token, which it announces a minute before, unless it gets a new one", async () => {
    const ann = await somebody()
    const bob = await person(service, ann.project)
    const short = await tokenOf(ann.project, ann.subscriber_id, 120)
    const [kept, lost] = [await enter(url, short), await enter(url, short)]
    clock.advance({ seconds: 61 })
    const { in: left } = await typed(kept, "token.expiring")
    expect(Number(left)).toBeLessThanOrEqual(60)
    kept.send({ type: "refresh", token: bob.token, ref: "r1" })
    expect(await typed(kept, "error")).toMatchObject({ ref: "r1", code: "forbidden" })
    kept.send({ type: "refresh", token: "a.b.c", ref: "r2" })
    expect(await kept.next(({ ref }) => ref === "r2")).toMatchObject({ code: "unauthorized" })
    kept.send({ type: "refresh", token: ann.token, ref: "r3" })
    expect(await kept.next(({ ref }) => ref === "r3")).toEqual({ type: "ack", ref: "r3" })
    clock.advance({ seconds: 61 })
    expect(await code(lost)).toBe(4401)
    await ann.send("still here")
    await typed(kept, "message.created")
    kept.cut()
  })

  test("has five seconds, and nothing else is heard before", async () => {
    const silent = await knock(url)
    const early = await knock(url)
    early.send({ type: "mark", id: "*", as: "read" })
    expect(await code(early)).toBe(4401)
    expect(await code(silent)).toBe(4401)
  })

  test("counts what fails by address, and lets in what is right", async () => {
    await using own = await testService()
    const { url: there } = own.listen()
    const socket = async (token: string) => {
      const one = await knock(there)
      one.send({ type: "auth", token })
      return one
    }
    for (let n = 0; n < 300; n++) own.parts.limits.countFailure("127.0.0.1")
    expect(await code(await socket("a.b.c"))).toBe(4429)
    const project = await own.project()
    const ann = await person(own, project)
    await typed(await socket(ann.token), "ready")
  })

  test("closes the oldest of eleven sockets of a subscriber, and none of others", async () => {
    const project = await service.project()
    const [ann, bob] = [await person(service, project), await person(service, project)]
    const other = await enter(url, bob.token)
    const all: TestSocket[] = []
    for (let n = 0; n < 11; n++) all.push(await enter(url, ann.token))
    expect(await code(all[0] as TestSocket)).toBe(4429)
    await ann.send("to all")
    await Promise.all(all.slice(1).map((socket) => typed(socket, "message.created")))
    await bob.send("to the other")
    await typed(other, "message.created")
    for (const socket of [other, ...all]) socket.cut()
  })
})
