import type { Components } from "../../src/client/components"
import { buttons, metadata, variables } from "../lib/body-flags"
import { fieldsOf } from "../lib/client"
import type { Context } from "../lib/context"
import { explanationText, isFinal } from "../lib/email-text"
import { exits } from "../lib/errors"
import { flag, type PlainOptions } from "../lib/field-flags"
import { ANY_PERIOD, IDEMPOTENCY_KEY } from "../lib/flags"
import { objectOrFile, wholeNumber } from "../lib/input"
import { pushColumns, pushText } from "../lib/push-text"
import { own, type PlainFlags, row } from "../lib/resource"
import { lookUntil } from "../lib/time"
import { batchOf } from "./batch"
import { SCHEDULE_AT, whenText } from "./scheduled"

const override = (provider: string, name: string) =>
  flag<string>(
    [`--${provider} <json>`, `merged into what ${name} gets: a JSON object, or @file`],
    objectOrFile,
  )

const CONTENT: PlainFlags = {
  ...{ variables, metadata, scheduled_at: SCHEDULE_AT, environment: false },
  user_id: "user whose devices get it",
  external_id: "external id of a subscriber, in place of --to",
  subscriber_id: "subscriber, by id or external id, in place of --to",
  device_id: "one device, in place of --to",
  title: "title of the message",
  body: "text of the message",
  url: "where a tap leads to: an http or https URL, or a path such as /invoices/7",
  data: flag<string>(
    ["--data <json>", "texts for your app: a JSON object, or @file"],
    objectOrFile,
  ),
  badge: flag(
    ["--badge <number>", "number on the icon of the app; `unread` counts the inbox"],
    (text, option) => (text === "unread" ? text : wholeNumber(text, option)),
  ),
  action_buttons: buttons("id"),
  category: "kind of the message, which its recipient can unsubscribe from",
  collapse_id: "a later message with the same one takes the place of this one",
  content_available: "wake the app, also without a text",
  icon: "URL of an icon, which browsers show",
  image_url: "URL of an image",
  priority: "how urgent it is: high or normal",
  tags: flag(["--tag <tag>", "label of the message; may be repeated", "several"]),
  template_id: "template in place of title and text, by id or name",
  ttl_seconds: "seconds that it may wait for its device (default: four weeks)",
  ...{ apns: override("apns", "APNs"), fcm: override("fcm", "FCM") },
  webpush: override("webpush", "Web Push"),
}

const POLLING = { limit: 60_000, every: 100 }

/** The messages of a send: one request brings all of them. */
async function sentBy(context: Context, { id, messages }: Components["PushSend"]) {
  if (messages.length > 1) {
    const query = { batch_id: id, per_page: 100 }
    return (await context.call("GET /v1/push", { query })).data
  }
  return [(await context.call("GET /v1/push/{push_id}", { params: { push_id: id } })).data]
}

/** Exit 1 when a message ended elsewhere, or when no device told in time that it has it. */
async function waited(context: Context, sent: Components["PushSend"]): Promise<number> {
  const { output, paint, timeout: limit = POLLING.limit } = context
  await output.note(paint.dim(`queued ${sent.id}, waiting`))
  const found = await lookUntil(
    () => sentBy(context, sent),
    (all) => all.every(({ status }) => isFinal(status)),
    { ...POLLING, limit },
  )
  await output.list(found, pushColumns)
  if (!found.every(({ status }) => isFinal(status)))
    await output.note("the waiting time is over, and not every device has told that it has it")
  return found.every(({ status }) => status === "delivered") ? exits.done : exits.failed
}

const batch = batchOf({
  route: "POST /v1/push/batch",
  fields: ["total", "succeeded", "failed", "results"],
  next: () => "push list",
})

const many = (count: number, what: string) => `${count} ${count === 1 ? what : `${what}s`}`

const TO_ANN = "--to user-42"

export const pushRows = [
  row("send [title] [body]", "POST /v1/push", {
    about: "send one message to all devices of a user, or to one device",
    word: "'Your table is ready'",
    example: [
      TO_ANN,
      `'We keep it for 15 minutes.' ${TO_ANN} --link /tables/7 --wait`,
      `${TO_ANN} --action yes='I am coming' --action no='Give it away'`,
      `${TO_ANN} --badge unread --collapse-id table-7 --ttl-seconds 900`,
    ],
    flags: CONTENT,
    aliases: { user_id: "to", subscriber_id: "subscriber", url: "link" },
    options: [
      ["--test", "reach only the devices of the environment `test`"],
      [
        "--wait",
        "wait for the devices; exit 1 if one does not have it by --timeout (default: 60s)",
      ],
    ],
    input: ({ test }) => (test === true ? { environment: "test" } : {}),
    refuse(options, _, context) {
      if (options.wait) context.output.promises(fieldsOf("GET /v1/push"))
      return undefined
    },
    print: (context, answer, { wait }: PlainOptions) =>
      wait ? waited(context, answer.data) : undefined,
    done({ id, devices }, _, { scheduled_at }) {
      const when = scheduled_at ? `scheduled for ${whenText(String(scheduled_at))}` : "queued"
      return `${when}, ${many(devices, "device")}  ${id}`
    },
    next: ({ messages: [first, ...others] }) =>
      first && (others.length === 0 ? `push get ${first.id}` : "push list"),
  }),
  own("batch <file>", batch, {
    about: "send up to 100 messages from a JSON array or NDJSON; exit 8 if some are refused",
    word: ["messages.json", "-"],
    example: ["", "< messages.ndjson"],
    options: [IDEMPOTENCY_KEY],
  }),
  row("list", "GET /v1/push", {
    about: "list push messages, newest first",
    example: ["--user-id user-42", "--status failed --json=id,device_id,title"],
    aliases: { user_id: "user-id" },
    columns: pushColumns,
    next: ([first]) => (first ? `push get ${first.id}` : `push send Hello ${TO_ANN}`),
  }),
  row("get <id>", "GET /v1/push/{push_id}", {
    shown: pushText,
    next: ({ id }) => `push explain ${id}`,
  }),
  row("explain <id>", "GET /v1/push/{push_id}/explain", {
    about: "explain what happened to a push message, and why, stage by stage",
    shown: explanationText,
  }),
  row("cancel <id>", "POST /v1/push/{push_id}/cancel", {
    done: () => "cancelled",
    shown: pushText,
  }),
  row("ack <id> <event>", "POST /v1/push/{push_id}/ack", {
    about: "tell, as the device does, that it has a message: delivered, opened or dismissed",
    example: "--ack-token …",
    note: "The device finds the token in the data of the message.",
    flags: { ack_token: "token of the message" },
    anonymous: true,
    done: ({ recorded }) => (recorded ? "recorded" : "recorded before"),
  }),
  row("stats", "GET /v1/push/stats", {
    about: "count the messages of a period by status, platform and provider",
    example: ["", "--period day", "--period 2026-11"],
    flags: { period: flag(ANY_PERIOD) },
  }),
  row("public-key", "GET /v1/push/webpush/public-key", {
    about: "show the key with which a page subscribes to Web Push",
    shown: ({ public_key }) => public_key,
    brief: ({ public_key }) => public_key,
  }),
]
