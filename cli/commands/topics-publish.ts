import type { Command } from "commander"
import type { AnswerOf } from "../../src/client/client"
import { type Client, fieldsOf, requireParams } from "../lib/client"
import type { Action, Context } from "../lib/context"
import { exits, usage } from "../lib/errors"
import { IDEMPOTENCY_KEY, LIMIT, VARIABLE } from "../lib/flags"
import { given, pairs, readJson } from "../lib/input"
import { isHeld } from "../lib/message-status"
import { limitOf, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import {
  isOver,
  type ProgressSample,
  type Publish,
  progressText,
  rateOf,
  skippedText,
  totalsOf,
  withSample,
} from "../lib/publish-progress"
import { ID } from "../lib/resource"
import { examples, run, several } from "../lib/run"
import { ago, type Columns, count, fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { millis, momentAhead, pause } from "../lib/time"
import { contentOf } from "./emails-send"
import { readTime } from "./scheduled"

const WAIT = [
  "--wait",
  "show the progress until the end; exit 1 if it failed, 75 at --timeout (default: 1h)",
] as const

/** Publishes to the members of a topic. */
export function definePublishing(topics: Command): void {
  definePublish(topics)
  topics
    .command("publishes <topic> [id]")
    .description("list the publishes to a topic, newest first, or show one")
    .option(...LIMIT)
    .option(...WAIT)
    .addHelpText(
      "after",
      examples("topics publishes product-news", `topics publishes product-news ${ID} --wait`),
    )
    .action(run(publishes))

  topics
    .command("cancel <topic> <id>")
    .description("cancel the rest of a publish, and its messages that are not sent yet")
    .addHelpText("after", examples(`topics cancel product-news ${ID} --yes`))
    .action(run(cancel))
}

function definePublish(topics: Command): void {
  topics
    .command("publish <topic>")
    .description("publish to the members of a topic; a file named `-` is stdin")
    .option(
      "--channel <channel>",
      "channel of the publish; may be repeated (default: email)",
      several,
    )
    .option("--template <template>", "template in place of subject and texts, by id or name")
    .option("--from <address>", "sender: an address, or `Ann <ann@example.test>`")
    .option("--subject <text>", "subject of the email")
    .option("--text <text>", "plain text body; `-` reads stdin")
    .option("--html <html>", "HTML body; `-` reads stdin")
    .option("--text-file <file>", "file with the plain text body")
    .option("--html-file <file>", "file with the HTML body")
    .option("--category <category>", "kind of the mail, which its recipient can unsubscribe from")
    .option(...VARIABLE, several)
    .option("--exclude <subscriber>", "subscriber that gets nothing; may be repeated", several)
    .option("--schedule-at <time>", "when to send: `in 10m`, `tomorrow 9:00` or ISO")
    .option("--expires <when>", "when to stop: a time, or a span from now (default: never)")
    .option("--dedupe-key <key>", "the same key starts nothing more within 24 hours")
    .option("--ignore-preferences", "send although a subscriber chose against it")
    .option(
      "--file <file>",
      "JSON body of POST /v1/topics/{topic_key}/publish; other flags replace its fields",
    )
    .option(...IDEMPOTENCY_KEY)
    .option(...WAIT)
    .addHelpText(
      "after",
      examples(
        "topics publish product-news --template news --wait",
        "topics publish product-news --subject News --html-file news.html --category news",
      ),
    )
    .action(run(publish))
}

/** What `topics publish` takes, as commander reads it. */
interface PublishOptions extends WaitOptions {
  channel?: string[]
  template?: string
  from?: string
  subject?: string
  text?: string
  html?: string
  textFile?: string
  htmlFile?: string
  category?: string
  var?: string[]
  exclude?: string[]
  scheduleAt?: string
  expires?: string
  dedupeKey?: string
  ignorePreferences?: boolean
  file?: string
  idempotencyKey?: string
}

interface WaitOptions {
  wait?: boolean
}

const publish: Action<PublishOptions> = async (context, options, topic_key = "") => {
  const name = "POST /v1/topics/{topic_key}/publish"
  context.output.promises(fieldsOf(name))
  const client = context.client(options.wait ? CALL_LIMIT : undefined)
  const { idempotencyKey: key } = options
  const headers = key === undefined ? {} : { "idempotency-key": key }
  const body = await bodyOf(options, context)
  const answer = await client.send(name, { params: { topic_key }, body, headers })
  const { data } = answer as AnswerOf<typeof name>
  if (options.wait) return await followed(context, client, data)
  const { output, paint } = context
  const hint = `belfry topics publishes ${topic_key} ${data.id} --wait`
  const line = `${paint.green("✓")} ${data.status}  ${data.id}${paint.dim(`   → ${output.again(hint)}`)}`
  await output.record(data, () => line)
  return exits.done
}

async function bodyOf(options: PublishOptions, context: Context) {
  const own = options.file === undefined ? {} : await readObject(options.file)
  const texts = await contentOf(options)
  const email = given({ from: options.from, subject: options.subject, ...texts })
  const { scheduleAt: begins, expires } = options
  return {
    channels: ["email"],
    ...own,
    ...given({
      channels: options.channel,
      template_id: options.template,
      content: Object.keys(email).length > 0 ? { email } : undefined,
      category: options.category,
      variables: options.var && pairs(options.var, "--var"),
      exclude: options.exclude,
      scheduled_at: begins && (await readTime(begins, "--schedule-at", context)),
      expires_at: expires && momentAhead(expires, "--expires"),
      dedupe_key: options.dedupeKey,
      respect_preferences: options.ignorePreferences ? false : undefined,
    }),
  }
}

async function readObject(path: string): Promise<object> {
  const body = await readJson(path, "--file")
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body
  throw usage("--file: the file must have one JSON object")
}

const CALL_LIMIT = 30_000
const WAIT_MILLISECONDS = 3_600_000
const LOOK_MILLISECONDS = 500

/** Shows the progress until the publish is over: 1 where it failed or was cancelled, 75 at the time limit. */
async function followed(context: Context, client: Client, first: Publish): Promise<number> {
  const { output } = context
  const deadline = millis() + (context.timeout ?? WAIT_MILLISECONDS)
  let samples: readonly ProgressSample[] = []
  let seen = first
  while (!isOver(seen) && millis() < deadline) {
    samples = withSample(samples, { at: millis(), done: totalsOf(seen).done })
    output.passing(progressText(seen, rateOf(samples)))
    await pause(LOOK_MILLISECONDS)
    seen = await lookAt(client, first.topic_key, first.id)
  }
  output.passing("")
  await output.record(seen, () => shownPublish(seen, context.paint))
  if (!isOver(seen)) return exits.try_later
  return seen.status === "completed" ? exits.done : exits.failed
}

async function lookAt(client: Client, topic_key: string, publish_id: string): Promise<Publish> {
  const params = { topic_key, publish_id }
  const { data } = await client.call("GET /v1/topics/{topic_key}/publishes/{publish_id}", {
    params,
  })
  return data
}

function shownPublish(publish: Publish, paint: Paint): string {
  const { planned, sent, failed, left } = totalsOf(publish)
  return fields(
    [
      ["id", publish.id],
      ["topic", publish.topic_key],
      ["status", [publish.status, publish.status_reason].filter(Boolean).join(", ")],
      ["channels", Object.keys(publish.channels).join(" ")],
      ["audience", publish.audience],
      ["planned", planned],
      ["sent", sent],
      ["skipped", skippedText(publish) || 0],
      ["failed", failed],
      ["left", left],
      ["scheduled", publish.scheduled_at],
      ["created", publish.created_at],
      ["completed", publish.completed_at],
    ],
    paint,
  )
}

export const publishColumns: Columns<Publish> = {
  ID: idColumn("publish"),
  STATUS: {
    cell: ({ status, status_reason }) => [status, status_reason].filter(Boolean).join(" "),
    paint: paintPublish,
  },
  AUDIENCE: count(({ audience }) => audience, 3),
  SENT: count((row) => totalsOf(row).sent),
  SKIPPED: count((row) => totalsOf(row).skipped),
  FAILED: {
    ...count((row: Publish) => totalsOf(row).failed),
    paint: (text, row, paint) => (totalsOf(row).failed > 0 ? paint.red(text) : text),
  },
  LEFT: count((row) => (isOver(row) ? 0 : totalsOf(row).left)),
  AGE: ago(({ created_at }) => created_at),
}

const BRUSHES: Partial<Record<string, keyof Paint>> = {
  completed: "green",
  fanning_out: "cyan",
  paused: "yellow",
  failed: "red",
}

/** By how it goes; work that is held since a restore waits like a paused one. */
export function paintPublish(text: string, { status, status_reason }: Publish, paint: Paint) {
  const brush = isHeld(status_reason) ? "yellow" : BRUSHES[status]
  return brush ? paint[brush](text) : text
}

const publishes: Action<WaitOptions & { limit?: string }> = async (
  context,
  options,
  topic_key = "",
  id,
) => {
  const client = context.client()
  if (id !== undefined) {
    const data = await lookAt(client, topic_key, id)
    if (options.wait) return await followed(context, client, data)
    await context.output.record(data, () => shownPublish(data, context.paint))
    return exits.done
  }
  if (options.wait) throw usage("--wait needs the id of a publish")
  const route = "GET /v1/topics/{topic_key}/publishes"
  const params = { topic_key }
  const { rows } = await listUpTo(client, route, limitOf(options.limit), { params })
  await context.output.list(rows, publishColumns)
  return exits.done
}

const cancel: Action<object> = async (context, _, topic_key = "", publish_id = "") => {
  const name = "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel"
  context.output.promises(fieldsOf(name))
  requireParams({ topic_key, publish_id })
  await confirm(context, `The rest of the publish ${publish_id} will not be sent.`, "cancel")
  const { data } = await context.call(name, { params: { topic_key, publish_id } })
  await context.output.record(data, () => shownPublish(data, context.paint))
}
