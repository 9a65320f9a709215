import { expect, test } from "bun:test"
import "../../src/channels"
import { eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { acceptNotes, newNote } from "../../src/inbox/accept"
import * as inbox from "../../src/inbox/inbox"
import { list } from "../../src/inbox/inbox-list"
import { countsIn, followInboxes, type InboxChange, unreadByCategory } from "../../src/inbox/ledger"
import { markAll } from "../../src/inbox/mark-all"
import { inboxChanges } from "../../src/inbox/tables"
import { idFor } from "../harness/ids"
import { testStore } from "../harness/store"

const PROJECT = idFor("project_1")
const ACCOUNT = idFor("account_1")

const content = (title: string) => ({
  ...{ title, body: null, action_url: null, action_label: null, actions: [], icon: null },
  ...{ image_url: null, priority: "normal" as const, data: {} },
})

const noteFor = (
  id: string,
  title: string,
  more: { collapse_key?: string; category?: string } = {},
) =>
  newNote({
    ...{ account_id: ACCOUNT, project_id: PROJECT, api_key_id: null, sandbox: false },
    ...{
      stream: "transactional",
      source: "api",
      category: more.category ?? null,
      template_id: null,
    },
    ...{ tags: ["t"], metadata: {}, subscriber: { id, external_id: "ann" }, envelope: {} },
    note: {
      ...{ content: content(title), shared_id: null, expires_at: null },
      collapse_key: more.collapse_key ?? null,
    },
  })

const PAGE = { limit: 10, offset: 0 }

test("each change of an inbox has the next number, and the totals are those of its messages", async () => {
  await using open = await testStore()
  const { store } = open
  const ann = newId()
  const heard: InboxChange[] = []
  followInboxes(store.read, (changes) => void heard.push(...changes))
  const send = (title: string, more = {}) =>
    store.tx((tx) =>
      acceptNotes(tx, [{ message: noteFor(ann, title, more), allowance: null }]),
    ) as Promise<{ id: string }[]>
  const [first] = await send("one", { category: "billing" })
  await send("two", { collapse_key: "k" })
  const [again] = await send("three", { collapse_key: "k", category: "news" })
  const owner = { project_id: PROJECT, subscriber_id: ann }
  expect(await countsIn(store.read, ann)).toEqual({ unread: 2, unseen: 2, total: 2, last_seq: 3 })
  expect(await unreadByCategory(store.read, ann)).toEqual({ billing: 1, news: 1 })
  await store.tx((tx) => inbox.markOne(tx, owner, first?.id ?? "", "read"))
  await store.tx((tx) => inbox.markOne(tx, owner, first?.id ?? "", "read"))
  await store.tx((tx) => inbox.patch(tx, owner, again?.id ?? "", { archived: true }))
  expect(await countsIn(store.read, ann)).toEqual({ unread: 0, unseen: 0, total: 1, last_seq: 5 })
  await store.tx((tx) => inbox.patch(tx, owner, again?.id ?? "", { archived: false }))
  expect(await markAll(store, owner, "read", {})).toBe(1)
  expect(await markAll(store, owner, "read", {})).toBe(0)
  await store.tx((tx) => inbox.remove(tx, owner, first?.id ?? "", []))
  expect(await countsIn(store.read, ann)).toEqual({ unread: 0, unseen: 0, total: 1, last_seq: 8 })
  expect(heard.map(({ seq, kind }) => [seq, kind])).toEqual([
    ...[
      [1, "created"],
      [2, "created"],
      [3, "updated"],
      [4, "updated"],
      [5, "updated"],
    ],
    ...[
      [6, "updated"],
      [7, "read"],
      [8, "deleted"],
    ],
  ] as never)
  const { rows } = await list(store.read, PROJECT, { subscriber_id: ann, filter: "all" }, PAGE)
  expect(rows.map(({ id, seq }) => [id, seq])).toEqual([[again?.id ?? "", 7]])
  const log = await store.read
    .select()
    .from(inboxChanges)
    .where(eq(inboxChanges.subscriber_id, ann))
  expect(log.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
})
