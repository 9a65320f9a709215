import { expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import { secondsFromNow } from "../../src/core/time"
import { inboxEntries } from "../../src/inbox/tables"
import { wakeInboxes } from "../../src/inbox/waking"
import { namedByMessages } from "../../src/operations/table-lives"
import { client } from "../harness/client"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"
import { addSubscriber, bearer, tokenOf } from "./subscriber-app"

const clock = movableClock()
const service = await sharedService()
const { store, app } = service
const INBOX = "/v1/subscriber-inbox"
const SEED = 20_261_129

/** Numbers that look random, the same in every run (mulberry32). */
function numbers(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const CATEGORIES = ["billing", "news", undefined]
const MARKS = ["read", "unread", "seen", "archived", "unarchived"]
const LOOKS = 25

test("the counts of an inbox equal a recount, whatever is done with it", async () => {
  const project = await service.project({ plan: "enterprise" })
  const subscriber_id = await addSubscriber(service, project)
  const headers = bearer(await tokenOf(project, subscriber_id, 604_800))
  const below = numbers(SEED)
  const mine: string[] = []
  const any = () => mine[below(mine.length)] ?? "x"
  const flag = () => below(2) === 1
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await client(app, undefined).call(method, INBOX + path, { body, headers })
    if (![200, 404].includes(answer.status)) throw new Error(`${path}: ${answer.text}`)
    return answer.body
  }
  const send = async (more: object = {}) => {
    const category = CATEGORIES[below(3)]
    const sent = await project.post("/v1/inbox", { subscriber_id, title: "T", category, ...more })
    mine.push(sent.body.data.id)
  }
  const acts = [
    () => send(),
    () => send({ collapse_key: `k${below(5)}` }),
    () => send({ expires_at: secondsFromNow(1 + below(30)) }),
    () => ask("PATCH", `/${any()}`, { read: flag(), archived: flag() }),
    () => ask("PATCH", `/${any()}`, { seen: flag() }),
    () =>
      ask("PATCH", `/${any()}`, { snoozed_until: flag() ? secondsFromNow(1 + below(30)) : null }),
    () => ask("POST", "/mark", { ids: [any(), any(), any()], as: MARKS[below(5)] }),
    () => ask("DELETE", `/${any()}`),
    () => below(4) === 0 && ask("POST", "/read-all", { category: CATEGORIES[below(3)] }),
    () => below(4) === 0 && ask("POST", "/seen-all", {}),
    () => below(4) === 0 && ask("POST", "/archive-all", { read_only: flag() }),
    async () => {
      clock.advance({ seconds: below(5) })
      await wakeInboxes(store, namedByMessages)
    },
  ]
  for (let turn = 1; turn <= sizes.inbox_acts; turn++) {
    await acts[below(acts.length)]?.()
    if (turn % LOOKS !== 0) continue
    await wakeInboxes(store, namedByMessages)
    const { data } = await ask("GET", "/unread-count")
    expect([turn, data]).toEqual([turn, await recount(project.project_id, subscriber_id)])
  }
  const ids = (await inSight(project.project_id, subscriber_id)).map(({ id }) => id)
  const seen: string[] = []
  for (let next = ""; ; ) {
    const { data, has_more } = await ask("GET", `?limit=7${next}`)
    seen.push(...data.map(({ id }: { id: string }) => id))
    if (!has_more) break
    next = `&after=${seen.at(-1)}`
  }
  expect(seen).toEqual(ids.toSorted().reverse())
})

const inSight = async (project_id: string, subscriber_id: string) => {
  const ours = and(
    eq(inboxEntries.project_id, project_id),
    eq(inboxEntries.subscriber_id, subscriber_id),
  )
  const rows = await store.read.select().from(inboxEntries).where(ours)
  return rows.filter((row) => row.archived_at === null && row.snoozed_until === null)
}

async function recount(project_id: string, subscriber_id: string) {
  const rows = await inSight(project_id, subscriber_id)
  const unread = rows.filter(({ read_at }) => read_at === null)
  const by_category: Record<string, number> = {}
  for (const { category } of unread) {
    if (category !== null) by_category[category] = (by_category[category] ?? 0) + 1
  }
  const unseen = rows.filter(({ seen_at }) => seen_at === null).length
  return { unread: unread.length, unseen, total: rows.length, by_category }
}
