import { beforeAll, describe, expect, test } from "bun:test"
import { and, inArray } from "drizzle-orm"
import type { AuthEnvironment } from "../../src/auth/environments"
import type { OrganizationRow } from "../../src/auth/organization-rows"
import * as invitations from "../../src/auth/organizations/organization-invitations"
import * as members from "../../src/auth/organizations/organization-members"
import * as organizations from "../../src/auth/organizations/organizations"
import type { UserFilter } from "../../src/auth/user-list"
import * as users from "../../src/auth/user-list"
import type { Secrets } from "../../src/core/secrets"
import * as emails from "../../src/emails/emails"
import * as feed from "../../src/events/feed"
import * as idempotency from "../../src/http/idempotency"
import { answered, threadOfAncestor } from "../../src/inbound/correlate"
import type { InboundFilter } from "../../src/inbound/inbound-emails"
import * as inbound from "../../src/inbound/inbound-emails"
import { purgeInbound } from "../../src/inbound/inbound-retention"
import { holders, unhold } from "../../src/jobs/holds"
import { purgeDead } from "../../src/jobs/jobs"
import { RESTORE_HOLD } from "../../src/jobs/work-item"
import type { MessageListFilter } from "../../src/messages/message-list"
import { expireContents, removeMessages } from "../../src/messages/message-retention"
import * as pipeline from "../../src/messages/pipeline"
import * as scheduled from "../../src/messages/scheduled"
import { messageFiles, messages } from "../../src/messages/tables"
import { namedAmong } from "../../src/operations/file-sweep"
import { totals } from "../../src/store/counters"
import type { Store } from "../../src/store/store"
import { idsOf } from "../../src/subscribers/conditions"
import { wordFilter } from "../../src/subscribers/search-words"
import { deliveryRows } from "../../src/webhooks/delivery-rows"
import { purgeDeliveries, purgeEvents } from "../../src/webhooks/retention"
import { idFor } from "../harness/ids"
import { quietLog } from "../harness/quiet"
import { engine, testStore } from "../harness/store"
import * as queue from "../jobs/by-hand"
import { letter, PROJECT } from "../messages/letters"
import { outside } from "./outside"
import { planOf, slowSteps, statementsOf } from "./plans"

quietLog()

const ROWS = 2000

/** A hot path, and the index that every statement of it on that table must walk. */
interface Path {
  name: string
  index: string
  table: string
  walk(store: Store): Promise<unknown>
}

const lease = { owner: "me", lease_ms: 30_000 }
const page = { limit: 25, offset: 0, after: undefined, before: undefined }
const all = { after: undefined, before: undefined }

const list = (filter: Partial<MessageListFilter>) => (store: Store) =>
  emails.list(store.read, PROJECT, { ...all, ...filter }, page)

const follow = async (store: Store) => {
  const {
    rows: [first],
  } = await feed.read(store.read, PROJECT, { limit: 1, types: [] })
  await feed.read(store.read, PROJECT, { after: first?.id, limit: 25, types: [] })
}

const listInbound = (filter: Partial<InboundFilter>) => (store: Store) =>
  inbound.list(store.read, PROJECT, { ...all, ...filter }).list(page)

const ORGANIZATION = { id: idFor("organization_1"), project_id: PROJECT } as OrganizationRow

const listOrganizations = (filter: { user_id?: string }) => (store: Store) => {
  const environment = { id: idFor("environment_1"), project_id: PROJECT } as AuthEnvironment
  return organizations.list(store.read, environment, filter).list(page)
}

const listUsers = (filter: UserFilter) => (store: Store) => {
  const environment = { id: idFor("environment_1"), project_id: PROJECT } as AuthEnvironment
  return users.list(store.read, environment, filter).list(page)
}

const NO_SECRETS = { mac: () => Buffer.alloc(32) } as unknown as Secrets
const TO_US = { project_id: PROJECT, to_email: "a@in.test" }
const ANSWER = { in_reply_to: "<1@x.test>", references: [], from: null, returned: null }

const SCHEDULED = { project_id: PROJECT, channels: ["email" as const] }
/** Nothing is that old. */
const OLD = { project_id: PROJECT, channel: "email", before: "2020-01-01T00:00:00.000Z" } as const

const paths: Path[] = [
  ...(
    [
      ["users_by_environment", {}],
      ["users_by_status", { status: "active" }],
      ["users_by_email", { email: "a@example.test" }],
      ["users_by_phone", { phone_number: "+4915112345678" }],
      ["memberships_by_organization", { organization_id: idFor("organization_1") }],
    ] as [string, UserFilter][]
  )
    // Of an empty table every index is as good for Postgres.
    .slice(0, engine === "sqlite" ? 5 : 2)
    .map(([index, filter]) => ({
      name: `listing users along ${index}`,
      index,
      table: index.startsWith("memberships") ? "memberships" : "users",
      walk: listUsers(filter),
    })),
  {
    name: "listing the members of an organization",
    index: "memberships_in_organization",
    table: "memberships",
    walk: (store) => members.list(store.read, ORGANIZATION).list(page),
  },
  {
    name: "listing the invitations to an organization",
    index: "organization_invitations_by_organization",
    table: "organization_invitations",
    walk: (store) => invitations.list(store.read, ORGANIZATION).list(page),
  },
  {
    name: "listing the organizations of an environment",
    index: "organizations_by_environment",
    table: "organizations",
    walk: listOrganizations({}),
  },
  {
    name: "listing the organizations of a user",
    index: "memberships_by_user",
    table: "memberships",
    walk: listOrganizations({ user_id: idFor("user_1") }),
  },
  {
    name: "claiming jobs",
    index: "jobs_ready",
    table: "jobs",
    walk: (store) => queue.claim(store, 5, lease),
  },
  {
    name: "asking which holds keep deliveries",
    index: "webhook_deliveries_held_by_name",
    table: "webhook_deliveries",
    walk: (store) => holders(store.read, deliveryRows),
  },
  {
    name: "releasing deliveries from a hold",
    index: "webhook_deliveries_held_by_name",
    table: "webhook_deliveries",
    walk: (store) => unhold(store, deliveryRows, RESTORE_HOLD),
  },
  {
    name: "asking when the next job is due",
    index: "jobs_ready",
    table: "jobs",
    walk: (store) => queue.nextDue(store.read),
  },
  {
    name: "sweeping leases that ran out",
    index: "jobs_leased",
    table: "jobs",
    walk: (store) => queue.sweep(store, [idFor("held")]),
  },
  {
    name: "sweeping a former life",
    index: "jobs_leased",
    table: "jobs",
    walk: (store) => queue.sweepAll(store, "me"),
  },
  {
    name: "forgetting dead jobs",
    index: "jobs_dead",
    table: "jobs",
    walk: (store) => purgeDead(store),
  },
  { name: "the event feed", index: "events_by_project", table: "events", walk: follow },
  {
    name: "the story of one message",
    index: "events_by_subject",
    table: "events",
    walk: (store) => feed.about(store.read, PROJECT, idFor("message")),
  },
  {
    name: "the list of all emails",
    index: "messages_by_project",
    table: "messages",
    walk: list({}),
  },
  {
    name: "the list of emails by status",
    index: "messages_by_status",
    table: "messages",
    walk: list({ status: "queued" }),
  },
  {
    name: "the list of emails to somebody",
    index: "messages_by_recipient",
    table: "messages",
    walk: list({ to: "to@example.test" }),
  },
  {
    name: "the email that an answer names",
    index: "messages_by_message_id",
    table: "messages",
    walk: (store) => answered({ ...store, secrets: NO_SECRETS }, TO_US, ANSWER),
  },
  {
    name: "the received mail that another one names",
    index: "inbound_emails_by_message_id",
    table: "inbound_emails",
    walk: (store) => threadOfAncestor(store.read, PROJECT, ANSWER),
  },
  {
    name: "the list of all received mail",
    index: "inbound_emails_by_project",
    table: "inbound_emails",
    walk: listInbound({}),
  },
  {
    name: "the list of received mail to an address",
    index: "inbound_emails_by_recipient",
    table: "inbound_emails",
    walk: listInbound({ to: "a@in.test" }),
  },
  {
    name: "the list of received mail of a kind",
    index: "inbound_emails_by_kind",
    table: "inbound_emails",
    walk: listInbound({ kind: "dmarc_report" }),
  },
  {
    name: "the list of a thread",
    index: "inbound_emails_by_thread",
    table: "inbound_emails",
    walk: listInbound({ thread_id: idFor("thread") }),
  },
  {
    name: "the list of scheduled messages",
    index: "messages_scheduled",
    table: "messages",
    walk: (store) => scheduled.list(store.read, SCHEDULED, undefined).list(page),
  },
  {
    name: "the list of messages that wait for their time",
    index: "messages_scheduled",
    table: "messages",
    walk: (store) => scheduled.list(store.read, SCHEDULED, "scheduled").list(page),
  },
  {
    name: "contents whose days are over",
    index: "messages_by_project",
    table: "messages",
    walk: (store) => expireContents(store, OLD, ""),
  },
  {
    name: "messages whose days are over",
    index: "messages_by_project",
    table: "messages",
    walk: (store) => removeMessages(store, OLD, "", []),
  },
  {
    name: "the oldest events of a project",
    index: "events_by_project",
    table: "events",
    walk: (store) => purgeEvents(store, OLD),
  },
  {
    name: "the ended deliveries of an endpoint",
    index: "webhook_deliveries_by_webhook",
    table: "webhook_deliveries",
    walk: (store) => purgeDeliveries(store, idFor("hook"), OLD.before),
  },
  {
    name: "received mail whose days are over",
    index: "inbound_emails_by_project",
    table: "inbound_emails",
    walk: (store) => purgeInbound(store, PROJECT, OLD.before),
  },
  {
    name: "the messages that name a file",
    index: "message_files_by_name",
    table: "message_files",
    walk: (store) => namedAmong(store.read, messageFiles, ["a"]),
  },
  {
    name: "old answers",
    index: "idempotency_by_age",
    table: "idempotency",
    walk: (store) => idempotency.purge(store),
  },
]

/** Many projects, most of their work done: as a planner meets it. */
async function fillTables(store: Store) {
  const letters = Array.from({ length: ROWS }, (_, n) =>
    letter({ project_id: idFor(`project_${n % 40}`), address: `to${n % 50}@example.test` }),
  )
  await store.tx(async (tx) => {
    await pipeline.accept(tx, letters)
    const done = letters.filter((_, n) => n % 10 !== 0).map(({ id }) => id)
    await tx.update(messages).set({ status: "delivered" }).where(inArray(messages.id, done))
  })
}

describe("every hot path walks its index", () => {
  let it: Awaited<ReturnType<typeof testStore>>

  beforeAll(async () => {
    it = await testStore()
    await fillTables(it.store)
    return async () => it[Symbol.asyncDispose]()
  })

  test.each(paths)("$name", async ({ index, table, walk }) => {
    await using database = outside(it)
    await database.rows("ANALYZE").catch(() => []) // on SQLite only the writer may
    const statements = await statementsOf(() => walk(it.store))
    const wanted = statements.filter((text) => text.includes(`"${table}"`))
    expect(wanted.length).toBeGreaterThan(0)

    const plans: { text: string; plan: string[] }[] = []
    for (const text of wanted) plans.push({ text, plan: await planOf(database, text) })
    const byIndex = plans.filter(({ plan }) => plan.some((step) => step.includes(index)))
    const byKey = plans.filter(({ plan }) =>
      plan.some((step) => /autoindex|_pkey|rowid/.test(step)),
    )
    expect(plans.flatMap(({ plan }) => slowSteps(plan))).toEqual([])
    expect(byIndex.length).toBeGreaterThan(0)
    expect(new Set([...byIndex, ...byKey]).size).toBe(plans.length)
  })
})

test("the feed begins at its cursor: it does not walk what came before", async () => {
  await using it = await testStore()
  await using database = outside(it)
  await it.store.tx((tx) => pipeline.accept(tx, [letter(), letter()]))
  const statements = await statementsOf(() => follow(it.store))

  const plan = await planOf(database, statements.at(-1) ?? "")
  const expected =
    engine === "sqlite"
      ? "(project_id=? AND (position,id)>(?,?))"
      : 'Index Cond: ((project_id = $1) AND (ROW("position", id) > ROW('
  expect(plan.some((step) => step.includes(expected))).toBe(true)
})

test("a total is found by its key", async () => {
  await using it = await testStore()
  await using database = outside(it)
  const statements = await statementsOf(() => totals(it.store.read, PROJECT, ["email", "sms"]))

  for (const text of statements) {
    const plan = await planOf(database, text)
    expect(slowSteps(plan)).toEqual([])
  }
  expect(statements).toHaveLength(1)
})

test("a search of two words walks one of them and seeks the other by its key", async () => {
  await using it = await testStore()
  await using database = outside(it)
  const [one, other] = [wordFilter(PROJECT, "walker"), wordFilter(PROJECT, "runner")]
  const sought = { source: one.source, others: [other.source], where: and(one.row, other.row) }
  const statements = await statementsOf(() =>
    idsOf(it.store.read, sought, page, idFor("last_look")),
  )
  expect(statements).toHaveLength(1)
  const plan = await planOf(database, statements[0] ?? "")
  const seeks =
    engine === "sqlite"
      ? ["(project_id=? AND word=? AND subscriber_id=?)", "sqlite_autoindex_subscribers_1 (id=?)"]
      : ["(subscriber_id = ", "(id = "]
  for (const seek of seeks) expect(plan.some((step) => step.includes(seek))).toBe(true)
  expect(slowSteps(plan)).toEqual([])
})
