import { afterAll, expect, test } from "bun:test"
import { InboxClient } from "../../src/component/inbox-client"
import type { InboxMark, InboxView } from "../../src/component/inbox-message"
import { markAll } from "../../src/inbox/mark-all"
import { sharedService } from "../harness/shared-service"
import { person } from "../inbox/inbox-dial"

const service = await sharedService()
const { url } = service.listen()

/** Every socket of the clients, so that a test can cut them. */
const lines = new Set<WebSocket>()
const Original = globalThis.WebSocket
globalThis.WebSocket = new Proxy(Original, {
  construct(kind, given) {
    const line: WebSocket = Reflect.construct(kind, given)
    lines.add(line)
    return line
  },
})
afterAll(() => {
  globalThis.WebSocket = Original
})

/** The same numbers in each run. */
function numbers(seed: number) {
  let at = seed
  return (below: number) => {
    at = (at * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((at / 2 ** 31) * below)
  }
}

const VIEWS: InboxView[] = [{}, { filter: "unread" }, { filter: "archived" }, { category: "news" }]
const MARKS: InboxMark[] = ["read", "unread", "seen", "archived", "unarchived"]

test.each([1, 2, 3])("clients equal the server after random changes and cuts, %d", async (seed) => {
  const next = numbers(seed)
  const project = await service.project({ plan: "enterprise" })
  const ann = await person(service, project)
  const clients = VIEWS.map(() => new InboxClient({ url, token: ann.token }))
  const news: string[] = []
  clients[0]?.addEventListener("message", (event) =>
    news.push((event as CustomEvent<{ message: { id: string } }>).detail.message.id),
  )
  await Promise.all(clients.map((one) => one.start()))
  await Promise.all(clients.map((one, at) => one.show(VIEWS[at] ?? {})))
  await Promise.all(clients.map((one) => until(one, () => one.state === "live")))
  const ids: string[] = []
  for (let step = 0; step < 60; step++) {
    const id = ids[next(ids.length)]
    const mark = MARKS[next(MARKS.length)] ?? "read"
    const client = clients[next(clients.length)]
    const kind = next(10)
    if (kind < 4 || !id)
      ids.push(await ann.send(`${step}`, next(2) ? { category: "news" } : { priority: "high" }))
    else if (kind < 6) await ann.mark(id, mark).catch(() => {})
    else if (kind < 8) await client?.mark(id, mark)
    else if (kind === 8) await markAll(service.store, ann.owner, "read", { category: "news" })
    else await client?.mark("*", "archived", { category: "news" })
    if (next(15) === 0) for (const line of lines) line.terminate()
  }
  for (const [at, one] of clients.entries()) {
    const query = new URLSearchParams({ limit: "100", ...VIEWS[at] })
    const list = await own<{ id: string }[]>(ann.token, `?${query}`)
    const counts = await own<object>(ann.token, "/unread-count")
    const expected = JSON.stringify([list.map(stateOf), counts])
    const isEqual = () => JSON.stringify([one.messages.map(stateOf), one.counts]) === expected
    await until(one, () => isEqual() && news.length >= ids.length)
    one.stop()
  }
  expect(news).toEqual(ids)
})

const stateOf = (message: object) => {
  const { id, read_at, seen_at, archived_at } = message as Record<string, string | null>
  return [id, read_at !== null, seen_at !== null, archived_at !== null]
}

async function own<Data>(token: string, path: string): Promise<Data> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${url}/v1/subscriber-inbox${path}`, { headers })
  return ((await answer.json()) as { data: Data }).data
}

function until(client: InboxClient, holds: () => boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = () => holds() && resolve()
  client.addEventListener("change", look)
  look()
  return promise
}
