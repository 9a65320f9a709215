import type { Components } from "../../src/client/components"
import { html, text, variables } from "../lib/body-flags"
import type { Context } from "../lib/context"
import { isHeld } from "../lib/email-text"
import { exits } from "../lib/errors"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { asks, ID, row } from "../lib/resource"
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

export const publishRows = [
  row("publish <topic>", "POST /v1/topics/{topic_key}/publish", {
    about: "publish to the members of a topic; a file named `-` is stdin",
    example: [
      "--template news --wait",
      "--subject News --html-file news.html --category news",
      "--channel sms --sms-body 'Hello {{subscriber.name}}'",
      "--channel push --push-title 'Hello {{subscriber.name}}' --push-link /news",
      "--channel in_app --title 'Hello {{subscriber.name}}' --action-url /news",
    ],
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
      "content.sms.body": flag(["--sms-body <text>", "text of the SMS, with `--channel sms`"]),
      "content.push.title": flag([
        "--push-title <text>",
        "title of the notification, with `--channel push`",
      ]),
      "content.push.body": flag(["--push-body <text>", "text of the notification"]),
      "content.push.url": flag(["--push-link <url>", "where a tap on it leads to"]),
      "content.in_app.title": flag([
        "--title <text>",
        "title of the message, with `--channel in_app`",
      ]),
      "content.in_app.body": flag(["--body <body>", "text of the message in the inbox"]),
      "content.in_app.action_url": flag(["--action-url <url>", "where it leads to"]),
      category: "kind of the message, which its recipient can unsubscribe from",
      exclude: flag([
        "--exclude <subscriber>",
        "subscriber that gets nothing; may be repeated",
        "several",
      ]),
      scheduled_at: SCHEDULE_AT,
      expires_at: "when to stop: a time, or a span from now (default: never)",
      dedupe_key: "the same key starts nothing more within 24 hours",
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
    example: ["", `${ID} --wait`],
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

export type Publish = Components["Publish"]

/** What became of the recipients of a publish, over all of its channels. */
interface PublishTotals {
  planned: number
  sent: number
  skipped: number
  failed: number
  /** Recipients that are decided: sent or skipped. */
  done: number
  left: number
}

export function totalsOf({ channels }: Pick<Publish, "channels">): PublishTotals {
  const totals = { planned: 0, sent: 0, skipped: 0, failed: 0 }
  for (const counts of Object.values(channels)) {
    totals.planned += counts.planned
    totals.sent += counts.sent
    totals.skipped += sum(counts.skipped)
    totals.failed += counts.failed
  }
  const done = totals.sent + totals.skipped
  return { ...totals, done, left: Math.max(0, totals.planned - done) }
}

const sum = (counts: Record<string, number>) =>
  Object.values(counts).reduce((all, one) => all + one, 0)

export const isOver = ({ completed_at }: Pick<Publish, "completed_at">): boolean =>
  completed_at !== null

/** Skipped recipients with their reasons, as `41 preference, 2 suppressed`. */
export function skippedText({ channels }: Pick<Publish, "channels">): string {
  const all = new Map<string, number>()
  for (const { skipped } of Object.values(channels)) {
    for (const [reason, count] of Object.entries(skipped)) {
      all.set(reason, (all.get(reason) ?? 0) + count)
    }
  }
  const told = [...all].filter(([, count]) => count > 0)
  return told.map(([reason, count]) => `${count} ${reason.replaceAll("_", " ")}`).join(", ")
}

/** How many recipients were done at a moment, in epoch milliseconds. */
export interface ProgressSample {
  at: number
  done: number
}

const WINDOW_MILLISECONDS = 10_000
const LEAST_MILLISECONDS = 1000

export const withSample = (
  samples: readonly ProgressSample[],
  sample: ProgressSample,
): readonly ProgressSample[] => [
  ...samples.filter(({ at }) => at >= sample.at - WINDOW_MILLISECONDS),
  sample,
]

/** Recipients per second over these samples; undefined until it is known. */
export function rateOf(samples: readonly ProgressSample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (!first || !last || last.at - first.at < LEAST_MILLISECONDS) return undefined
  return ((last.done - first.done) * 1000) / (last.at - first.at)
}

/** Seconds until the rest is done at this speed; undefined where nothing moves. */
export const secondsLeft = (left: number, rate: number | undefined): number | undefined =>
  rate === undefined || rate <= 0 ? undefined : Math.ceil(left / rate)

/** `4 s`, `3 min`, `2 h`: how long something still takes. */
export function spanText(seconds: number): string {
  if (seconds < 90) return `${seconds} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return `${Math.round(seconds / 3600)} h`
}

const BAR_CHARACTERS = 20

/** `[#####---------------]` */
export function barText(done: number, planned: number, width = BAR_CHARACTERS): string {
  const filled = planned === 0 ? 0 : Math.floor((Math.min(done, planned) * width) / planned)
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}]`
}

export function progressText(publish: Publish, rate: number | undefined): string {
  const { planned, done, left } = totalsOf(publish)
  const words = [publish.status.replaceAll("_", " ")]
  if (publish.status_reason) words.push(`(${publish.status_reason})`)
  if (planned > 0) words.push(barText(done, planned), `${done} of ${planned}`)
  if (rate !== undefined && left > 0) words.push(`${Math.round(rate)}/s`)
  const seconds = secondsLeft(left, rate)
  if (seconds !== undefined && left > 0) words.push(`${spanText(seconds)} left`)
  return words.join(" ")
}
