import { describe, expect, test } from "bun:test"
import { sharedService } from "../harness/shared-service"
import { enter, numbered, person } from "./inbox-dial"

const service = await sharedService()
const { url } = service.listen()
const project = await service.project()

describe("a socket of an inbox", () => {
  test("says where the inbox is, then every change with its totals", async () => {
    const ann = await person(service, project)
    const first = await ann.send("one")
    using socket = await enter(url, ann.token)
    expect(socket.protocol).toBe("svc.inbox.v1")
    expect(socket.frames).toEqual([
      {
        ...{ type: "ready", session: expect.any(String), subscriber_id: ann.subscriber_id },
        ...{ last_seq: 1, counts: { unread: 1, unseen: 1, total: 1 }, heartbeat: 25 },
      },
    ])
    const second = await ann.send("two", { metadata: { order: "A" } })
    await numbered(socket, 2)
    await ann.mark(first, "read")
    await numbered(socket, 3)
    await ann.remove(second)
    await numbered(socket, 4)
    await socket.next(({ total }) => total === 1)
    expect(socket.frames.slice(1)).toMatchObject([
      { type: "message.created", seq: 2, message: { id: second, seq: 2, title: "two" } },
      { type: "counts", unread: 2, unseen: 2, total: 2 },
      { type: "message.updated", seq: 3, message: { id: first, read_at: expect.any(String) } },
      { type: "counts", unread: 1, unseen: 1, total: 2 },
      { type: "message.deleted", seq: 4, id: second },
      { type: "counts", unread: 0, unseen: 0, total: 1 },
    ])
    expect(JSON.stringify(socket.frames)).not.toContain("metadata")
  })
})
