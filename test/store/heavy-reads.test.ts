import { beforeAll, describe, expect, test } from "bun:test"
import { auditLog } from "../../src/audit-log/tables"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { HeavyReads } from "../../src/store/heavy-reads"
import { inserter } from "../../src/store/statements"
import type { HeavyRead } from "../../src/store/store"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const service = await sharedService()
const { owner, account_id } = await team(service)

/** More than two stretches that a filter looks at in one request. */
const ROWS = 7000
/** Every so many entries is a rare one. */
const RARE = 2500

const list = (query: string) => owner.get(`/v1/audit-log?${query}`)

beforeAll(async () => {
  const actor = { type: "system" as const, id: null, name: null }
  const entry = { account_id, project_id: null, actor, actor_id: null, ip: null }
  const target = { target_type: "thing", target_id: null, before: null, after: null }
  const rows = Array.from({ length: ROWS }, (_, at) => {
    const action = at % RARE === 0 ? "thing.rare" : "thing.changed"
    return { id: newId(), ...entry, ...target, action, created_at: now() }
  })
  const insert = inserter(auditLog)
  await service.store.tx((tx) => insert(tx, rows))
})

describe("a filter without an index", () => {
  test("looks at a limited number of rows in one request, and its cursor goes on", async () => {
    const found: number[] = []
    let cursor = ""
    let requests = 0
    do {
      const { body, headers } = await list(`action=thing.rare${cursor}`)
      found.push(body.data.length)
      requests += 1
      cursor = body.meta.next_cursor ? `&cursor=${body.meta.next_cursor}` : ""
      expect(headers.get("link")?.includes("cursor=") ?? false).toBe(cursor !== "")
      expect(body.meta.incomplete).toBe(cursor === "" ? undefined : true)
    } while (cursor !== "")
    expect([requests, found]).toEqual([3, [1, 1, 1]])
  })

  test("tells no total where it stopped, and goes back as it goes on", async () => {
    const { body } = await list("action=thing.rare")
    expect(body.meta).toMatchObject({ has_more: true, total: null, total_pages: null, page: 1 })
    const oldest = (await list("action=thing.rare&created_before=2100-01-01T00:00:00Z")).body.meta
    const last = (await list(`action=thing.rare&cursor=${oldest.next_cursor}`)).body.data[0]
    const back = await list(`action=thing.rare&before=${last.id}`)
    expect(back.body).toMatchObject({ data: [{ action: "thing.rare" }], has_more: true })
    expect(back.body.meta.incomplete).toBe(true)
  })

  test("that fills the page is complete", async () => {
    const { body } = await list("action=thing.changed&per_page=5")
    expect(body.data).toHaveLength(5)
    expect(body.meta).toMatchObject({ has_more: true, total: null })
    expect(body.meta.incomplete).toBeUndefined()
  })

  test("of a shorter list is read to the end, with its total", async () => {
    const others = await team(service)
    const { body } = await others.owner.get("/v1/audit-log?action=account.created")
    expect(body.meta).toMatchObject({ has_more: false, next_cursor: null, total: 1 })
  })
})

describe("heavy reads", () => {
  /** A place whose reads end when they are told to. */
  function heldReads() {
    const ends: (() => void)[] = []
    const place = async <Result>(act: (read: HeavyRead) => Promise<Result>) => {
      await new Promise<void>((resolve) => ends.push(resolve))
      return act(async () => [])
    }
    const reads = new HeavyReads(place, 1)
    const done: string[] = []
    const begin = (who: string) => reads.run(who, async () => void done.push(who))
    return { begin, done, ends }
  }

  test("of one project wait for each other, and those of another one do not wait for all of them", async () => {
    const { begin, done, ends } = heldReads()
    const all = ["one", "one", "one", "two"].map(begin)
    for (let at = 0; at < all.length; at++) {
      await Bun.sleep(0)
      expect(ends).toHaveLength(at + 1)
      ends[at]?.()
    }
    await Promise.all(all)
    expect(done).toEqual(["one", "two", "one", "one"])
  })

  test("beyond ten that wait are refused", async () => {
    const { begin, ends } = heldReads()
    const all = Array.from({ length: 11 }, () => begin("one"))
    const details = { retry_after: 1, limit: 10, window_seconds: 1, scope: "reads" }
    await expect(begin("one")).rejects.toMatchObject({ code: "rate_limit_exceeded", details })
    const other = begin("two")
    for (let at = 0; at < 12; at++) {
      await Bun.sleep(0)
      ends[at]?.()
    }
    await Promise.all([...all, other])
  })
})
