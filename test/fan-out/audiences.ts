import { and, eq } from "drizzle-orm"
import { newId } from "../../src/core/ids"
import { now, sleep } from "../../src/core/time"
import * as fanOut from "../../src/fan-out/fan-out"
import type { PublishIntent } from "../../src/fan-out/publish-input"
import { fanOuts } from "../../src/fan-out/tables"
import { start, walkChunk } from "../../src/fan-out/walk"
import { projectCaller } from "../../src/identity/caller"
import { jobs } from "../../src/jobs/tables"
import { comparable } from "../../src/lib/address"
import { sharedLanguages } from "../../src/messages/contents"
import { messages } from "../../src/messages/tables"
import type { Reader, Store } from "../../src/store/store"
import { subscribers } from "../../src/subscribers/tables"
import { topicMembers, topics } from "../../src/topics/tables"
import type { TestProject, TestService } from "../harness/service"
import { WorkLoops, workOf } from "../harness/work-loops"

type Subscriber = typeof subscribers.$inferInsert

/** Subscribers of a project who follow one topic, in the order of their numbers. */
export async function audience(
  store: Store,
  { project_id }: Pick<TestProject, "project_id">,
  people: Partial<Subscriber>[],
) {
  const at = now()
  const topic: typeof topics.$inferInsert = {
    id: newId(),
    project_id,
    key: "releases",
    name: "Releases",
    description: null,
    default: "on",
    visibility: "private",
    subscriber_count: people.length,
    last_number: people.length,
    search_key: "releases",
    created_at: at,
    updated_at: at,
  }
  const rows = people.map((person, nth) => subscriber(project_id, nth, person))
  await store.tx(async (tx) => {
    await tx.insert(topics).values(topic)
    for (let from = 0; from < rows.length; from += 500) {
      const some = rows.slice(from, from + 500)
      await tx.insert(subscribers).values(some)
      await tx.insert(topicMembers).values(
        some.map(({ id }, nth) => ({
          topic_id: topic.id,
          number: from + nth + 1,
          project_id,
          subscriber_id: id,
          created_at: at,
        })),
      )
    }
  })
  return { topic, ids: rows.map(({ id }) => id) }
}

function subscriber(project_id: string, nth: number, person: Partial<Subscriber>): Subscriber {
  const at = now()
  const email = person.email === undefined ? `reader${nth}@example.test` : person.email
  return {
    id: newId(),
    project_id,
    external_id: `reader-${nth}`,
    email,
    email_key: email && comparable(email),
    phone: null,
    name: null,
    avatar_url: null,
    locale: null,
    timezone: null,
    metadata: {},
    tags: [],
    status: "active",
    preferences: null,
    auth_user_id: null,
    search_key: "",
    last_seen_at: null,
    created_at: at,
    updated_at: at,
    ...person,
  } as Subscriber
}

export const INLINE = {
  subject: "News for you",
  html: "<p>Hello {{subscriber.name}}</p>",
  text: null,
  from: { email: "news@example.test", name: "News" },
}

type Wish = Partial<PublishIntent> & Partial<fanOut.FanOutTimes>

/** Publishes to a topic as the route does. */
export async function publish(
  { parts }: Pick<TestService, "parts">,
  { project_id }: Pick<TestProject, "project_id">,
  topic: { id: string; key: string },
  { scheduled_at = null, expires_at = null, dedupe_key = null, ...wish }: Wish = {},
) {
  const { store } = parts
  const caller = await projectCaller(store.read, project_id)
  if (!caller) throw new Error("the project does not send")
  const intent: PublishIntent = {
    channels: ["email"],
    template: null,
    content: { email: INLINE },
    variables: null,
    category: null,
    exclude: [],
    respect_preferences: true,
    ...wish,
  }
  const prepared = await fanOut.prepare(parts, caller, intent)
  const times = { scheduled_at, expires_at, dedupe_key }
  return store.tx((tx) => fanOut.create(tx, caller, topic, prepared, times))
}

/** The record of a publish as it stands. */
export async function record({ store }: Pick<TestService["parts"], "store">, id: string) {
  const rows = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
  const [found] = await fanOut.toResponses(store.read, rows)
  if (!found) throw new Error("there is no such publish")
  return found
}

/** The messages of a publish, in the order of their making. */
export const messagesOf = (
  { store }: Pick<TestService["parts"], "store">,
  { project_id }: Pick<TestProject, "project_id">,
  id: string,
) =>
  store.read
    .select()
    .from(messages)
    .where(and(eq(messages.project_id, project_id), eq(messages.fan_out_id, id)))
    .orderBy(messages.id)

/** The loop of jobs of one node, which walks. */
export function walker({ parts }: Pick<TestService, "parts">) {
  const { store } = parts
  const { handlers } = workOf(parts, {} as never, parts)
  return new WorkLoops({
    store,
    work: { handlers },
    concurrency: 4,
    lease_ms: 30_000,
    alone: store.isAlone,
  })
}

/** A publish that has begun, and goes on only step by step: a step is one chunk. */
export async function begun({ parts }: Pick<TestService, "parts">, id: string) {
  const { store } = parts
  await start(parts).run({ fan_out_id: id }, {} as never)
  const read = async () => {
    const [row] = await store.read.select().from(fanOuts).where(eq(fanOuts.id, id))
    if (!row) throw new Error("there is no such publish")
    return row
  }
  return {
    step: async (part = 0) => {
      const languages = await sharedLanguages(store.read, id)
      return walkChunk(parts, await read(), part, languages)
    },
  }
}

/** Walks until no job is due. */
export async function walkAll(service: Pick<TestService, "parts">) {
  const loop = walker(service)
  await loop.start()
  const { read } = service.parts.store
  try {
    while (await isAnyDue(read)) await sleep(5)
  } finally {
    await loop.stop(5000)
  }
}

async function isAnyDue(db: Reader): Promise<boolean> {
  const waiting = await db.select({ run_at: jobs.run_at, name: jobs.name }).from(jobs)
  return waiting.some(({ name, run_at }) => name.startsWith("fan_out.") && run_at <= now())
}
