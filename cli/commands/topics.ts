import type { Components } from "../../src/client/components"
import { type Client, requireParams } from "../lib/client"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import type { OptionWords } from "../lib/field-flags"
import { readText } from "../lib/input"
import { recordMissing } from "../lib/missing"
import { confirm } from "../lib/prompts"
import { deletes, own, type Resource, row } from "../lib/resource"
import { ago, type Columns, count, wide } from "../lib/table"
import { publishRows } from "./topics-publish"

export const topicColumns: Columns<Components["Topic"]> = {
  KEY: wide(({ key }) => key, "last"),
  NAME: wide(({ name }) => name),
  MEMBERS: count(({ subscriber_count }) => subscriber_count),
  DEFAULT: "default",
  VISIBILITY: { cell: ({ visibility }) => visibility, spare: 2 },
  AGE: { cell: ago(({ created_at }) => created_at), spare: 1 },
}

export const subscribedColumns: Columns<Components["SubscribedTopic"]> = {
  KEY: wide(({ key }) => key, "last"),
  NAME: wide(({ name }) => name),
  SINCE: ago(({ subscribed_at }) => subscribed_at),
}

const FIELDS = {
  name: "name that people read",
  description: "description; none removes it",
  default: "what holds for members without a choice of their own: on or off (default: on)",
  visibility: "public or private; people see public topics (default: private)",
}

const FILE: OptionWords = ["--file <file>", "file with one id a line; - reads stdin"]

const MOST_AT_ONCE = 1000

interface MembersOptions {
  file?: string
}

async function subscribersIn({ file }: MembersOptions, words: readonly string[]) {
  const lines = file === undefined ? [] : (await readText(file, "--file")).split(/\r?\n/)
  const all = [...words, ...lines.map((line) => line.trim())].filter((name) => name !== "")
  if (all.length === 0) throw usage("name at least one subscriber, or give --file")
  return all
}

const LONGEST_ID = 255

/** A text that no subscriber can be called: it is not found, and does not keep the others from being sent. */
const isNoName = (text: string) =>
  [...text].length > LONGEST_ID || /[\p{Cc}\u2028\u2029]/u.test(text)

const shares = (all: string[]): string[][] =>
  Array.from({ length: Math.ceil(all.length / MOST_AT_ONCE) }, (_, at) =>
    all.slice(at * MOST_AT_ONCE, (at + 1) * MOST_AT_ONCE),
  )

/** Exit 3 where the project has no such subscriber. */
const join: Action<MembersOptions> = async (context, options, topic_key = "", ...words) => {
  const client = context.client()
  const all = await subscribersIn(options, words)
  const result = { added: 0, already: 0, not_found: all.filter(isNoName) }
  for (const subscriber_ids of shares(all.filter((name) => !isNoName(name)))) {
    const asked = { params: { topic_key }, body: { subscriber_ids } }
    const { data } = await client.call("POST /v1/topics/{topic_key}/subscribers", asked)
    result.added += data.added
    result.already += data.already
    result.not_found.push(...data.not_found)
  }
  const done = `added ${result.added} to ${topic_key}; ${result.already} were members already`
  return await recordMissing(context, result, done, (name) => `there is no subscriber ${name}`)
}

/** Exit 3 where the topic has no such member. */
const leave: Action<MembersOptions> = async (context, options, topic_key = "", ...words) => {
  const all = await subscribersIn(options, words)
  const [only = ""] = all
  const is_one = all.length === 1
  requireParams({ topic_key, ...(is_one && { subscriber_id: only }) })
  const what = is_one ? only : `${all.length} subscribers`
  await confirm(context, `This removes ${what} from the topic ${topic_key}.`, "remove")
  const result = await removed(context.client(), topic_key, all)
  const done = `removed ${result.removed} from ${topic_key}`
  return await recordMissing(context, result, done, (name) => `there is no member ${name}`)
}

async function removed(client: Client, topic_key: string, all: string[]) {
  const [only] = all
  if (only !== undefined && all.length === 1) {
    const params = { topic_key, subscriber_id: only }
    await client.call("DELETE /v1/topics/{topic_key}/subscribers/{subscriber_id}", { params })
    return { removed: 1, not_found: [] as string[] }
  }
  const result = { removed: 0, not_found: all.filter(isNoName) }
  for (const subscriber_ids of shares(all.filter((name) => !isNoName(name)))) {
    const asked = { params: { topic_key }, body: { subscriber_ids } }
    const { data } = await client.call("DELETE /v1/topics/{topic_key}/subscribers", asked)
    result.removed += data.removed
    result.not_found.push(...data.not_found)
  }
  return result
}

/** Topics of the project. A command takes the key. */
const rows = [
  row("list", "GET /v1/topics", {
    about: "list the topics of the project, newest first",
    example: "--search news",
    columns: topicColumns,
    next: ([first]) => first && `topics members ${first.key}`,
  }),
  row("create <key>", "POST /v1/topics", {
    word: "product-news",
    about: "create a topic; its key never changes",
    example: "--name 'Product news'",
    flags: { ...FIELDS, description: "description", default_subscription: false },
    done: ({ key, id }) => `created the topic ${key} ${id}`,
    brief: ({ key }) => key,
    next: ({ key }) => `topics join ${key} user-1042`,
  }),
  row("get <topic>", "GET /v1/topics/{topic_key}"),
  row("update <topic>", "PATCH /v1/topics/{topic_key}", {
    about: "change a topic; its key stays",
    example: "--name News --visibility public",
    flags: FIELDS,
    done: ({ key }) => `changed the topic ${key}`,
  }),
  row("rm <topic>", "DELETE /v1/topics/{topic_key}", {
    about: "delete a topic with its memberships; the subscribers stay",
    ...deletes((key) => `The topic ${key} and its memberships will be deleted.`),
    done: (_, [key]) => `deleted the topic ${key}`,
  }),
  row("members <topic>", "GET /v1/topics/{topic_key}/subscribers", {
    example: "--limit 100",
    columns: {
      SUBSCRIBER: wide(({ external_id }) => external_id, "last"),
      EMAIL: wide(({ email }) => email ?? ""),
      SINCE: ago(({ subscribed_at }) => subscribed_at),
      ID: "subscriber_id",
    },
  }),
  row("of <subscriber>", "GET /v1/subscribers/{subscriber_id}/topics", {
    about: "list the topics of a subscriber, named by its id or its external id",
    example: "--limit 100",
    columns: subscribedColumns,
  }),
  own("join <topic> [subscriber...]", join, {
    about: "add subscribers to a topic, by ids or external ids",
    example: ["user-1042", "--file ids.txt"],
    options: [FILE],
  }),
  own("leave <topic> [subscriber...]", leave, {
    about: "remove subscribers from a topic, by ids or external ids",
    example: ["user-1042", "--file ids.txt"],
    options: [FILE],
  }),
  ...publishRows,
]

export const topicResource: Resource = {
  noun: "topics",
  about: "manage subjects that subscribers follow, and publish to their members",
  example: ["topics list", "topics join product-news user-1042"],
  rows,
}
