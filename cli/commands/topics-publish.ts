import { html, text, variables } from "../lib/body-flags"
import type { Context } from "../lib/context"
import { exits } from "../lib/errors"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { isHeld } from "../lib/message-status"
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
import { asks, row } from "../lib/resource"
import { ago, type Columns, count, fields, idColumn } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { millis, pause } from "../lib/time"
import { SCHEDULE_AT } from "./scheduled"

const ONE = "GET /v1/topics/{topic_key}/publishes/{publish_id}"

const WAIT_MILLISECONDS = 3_600_000
const LOOK_MILLISECONDS = 500

/** Shows the progress until the publish is over: 1 where it failed or was cancelled, 75 at the time limit. */
async function followed(context: Context, first: Publish): Promise<number> {
  const { output } = context
  const deadline = millis() + (context.timeout ?? WAIT_MILLISECONDS)
  let samples: readonly ProgressSample[] = []
  const params = { topic_key: first.topic_key, publish_id: first.id }
  let seen = first
  while (!isOver(seen) && millis() < deadline) {
    samples = withSample(samples, { at: millis(), done: totalsOf(seen).done })
    output.passing(progressText(seen, rateOf(samples)))
    await pause(LOOK_MILLISECONDS)
    seen = (await context.call(ONE, { params })).data
  }
  output.passing("")
  await output.record(seen, () => shownPublish(seen, context.paint))
  if (!isOver(seen)) return exits.try_later
  return seen.status === "completed" ? exits.done : exits.failed
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

const WAIT: OptionWords = [
  "--wait",
  "show the progress until the end; exit 1 if it failed, 75 at --timeout (default: 1h)",
]

const waits = {
  options: [WAIT],
  print: (context: Context, { data }: { data: Publish }, { wait }: PlainOptions) =>
    wait ? followed(context, data) : undefined,
}

const publishRow = row("", ONE, { ...waits, shown: shownPublish })

/** Publishes to the members of a topic. */
export const publishRows = [
  row("publish <topic>", "POST /v1/topics/{topic_key}/publish", {
    about: "publish to the members of a topic; a file named `-` is stdin",
    example: ["--template news --wait", "--subject News --html-file news.html --category news"],
    file: { channels: ["email"] },
    flags: {
      channels: flag([
        "--channel <channel>",
        "channel of the publish; may be repeated (default: email)",
        "several",
      ]),
      template_id: "template in place of subject and texts, by id or name",
      "content.email.from": flag([
        "--from <address>",
        "sender: an address, or `Ann <ann@example.test>`",
      ]),
      "content.email.subject": flag(["--subject <text>", "subject of the email"]),
      ...{ "content.email.text": text, "content.email.html": html, variables },
      category: "kind of the mail, which its recipient can unsubscribe from",
      exclude: flag([
        "--exclude <subscriber>",
        "subscriber that gets nothing; may be repeated",
        "several",
      ]),
      scheduled_at: SCHEDULE_AT,
      expires_at: "when to stop: a time, or a span from now (default: never)",
      dedupe_key: flag(["--dedupe-key <key>", "the same key starts nothing more within 24 hours"]),
      respect_preferences: flag(
        ["--ignore-preferences", "send although a subscriber chose against it"],
        () => false,
      ),
    },
    ...waits,
    done: ({ status, id }) => `${status}  ${id}`,
    next: ({ topic_key, id }) => `topics publishes ${topic_key} ${id} --wait`,
  }),
  row("publishes <topic> [id]", "GET /v1/topics/{topic_key}/publishes", {
    about: "list the publishes to a topic, newest first, or show one",
    example: "",
    options: [WAIT],
    refuse: ({ wait }) => (wait ? "--wait needs the id of a publish" : undefined),
    instead: (_, { length }) => length > 1 && publishRow,
    columns: publishColumns,
  }),
  row("cancel <topic> <id>", "POST /v1/topics/{topic_key}/publishes/{publish_id}/cancel", {
    about: "cancel the rest of a publish, and its messages that are not sent yet",
    example: "--yes",
    confirm: asks((_, id) => `The rest of the publish ${id} will not be sent.`, "cancel"),
    shown: shownPublish,
  }),
]
