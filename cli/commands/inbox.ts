import { buttons, metadata, variables } from "../lib/body-flags"
import type { Action } from "../lib/context"
import { usage } from "../lib/errors"
import { flag, type OptionWords, type PlainOptions } from "../lib/field-flags"
import { ANY_PERIOD } from "../lib/flags"
import { type InboxFrame, InboxStream, type NamedInbox } from "../lib/inbox-stream"
import { frameLine, inboxColumns, inboxText } from "../lib/inbox-text"
import { objectOrFile } from "../lib/input"
import { limitOf } from "../lib/paging"
import { deletes, own, type PlainFlags, row } from "../lib/resource"
import { notifyLink } from "../lib/stream"

const CONTENT: PlainFlags = {
  ...{ metadata, priority: "how urgent it is: low, normal, high or urgent" },
  body: "text of the message; line breaks stay",
  action_url: "where the message leads to: an http or https URL, or a path such as /invoices/7",
  actions: buttons("key"),
  data: flag<string>(["--data <json>", "data for your app: a JSON object, or @file"], objectOrFile),
  tags: flag(["--tag <tag>", "label of the message; may be repeated", "several"]),
  category: "kind of the message, which its recipient can unsubscribe from",
  expires_at: "when the message is removed: a time, or a span from now",
}

/** What a message becomes. */
const MARKS: readonly [option: string, field: string, value: boolean, about: string][] = [
  ["--read", "read", true, "mark it as read"],
  ["--unread", "read", false, "mark it as not read"],
  ["--seen", "seen", true, "mark it as seen"],
  ["--archived", "archived", true, "move it to the archive"],
  ["--unarchived", "archived", false, "move it back from the archive"],
]

const markOptions = MARKS.map(([option, , , about]): OptionWords => [option, about])

function marksOf(options: PlainOptions): object {
  const wanted = MARKS.filter(([option]) => options[option.slice(2)] === true)
  return Object.fromEntries(wanted.map(([, field, value]) => [field, value]))
}

function contradiction(options: PlainOptions): string | undefined {
  const pairs = [
    ["read", "unread"],
    ["archived", "unarchived"],
  ]
  const both = pairs.find((names) => names.every((name) => options[name]))
  return both && `--${both[0]} and --${both[1]}: use one`
}

interface TailOptions {
  externalId?: string
  subscriberId?: string
  limit?: string
}

function ownerOf({ externalId, subscriberId }: TailOptions): NamedInbox {
  if (externalId !== undefined && subscriberId !== undefined)
    throw usage("--external-id and --subscriber-id: use one")
  if (externalId !== undefined) return { external_id: externalId }
  if (subscriberId !== undefined) return { subscriber_id: subscriberId }
  throw usage("give --external-id or --subscriber-id")
}

/** Follows an inbox over its socket, as an app of the subscriber would, until Ctrl-C or --timeout. */
const tail: Action<TailOptions> = async (context, options) => {
  const { output, paint, terminal, timeout } = context
  const owner = ownerOf(options)
  let left = options.limit === undefined ? Number.POSITIVE_INFINITY : limitOf(options.limit)
  const show = async (frame: InboxFrame) => {
    if (left === 0) return
    const human = () => frameLine(frame, paint, terminal)
    await output.line(output.form === "quiet" ? { id: idIn(frame) } : { ...frame }, human)
    if ("seq" in frame || "upto_seq" in frame) left -= 1
    if (left === 0) stream.close()
  }
  const onState = notifyLink(context, "No change was missed.")
  await output.note(paint.dim("following the inbox; Ctrl-C stops"))
  // With --timeout the calls for a token keep a limit of their own.
  const client = context.client(CALL_LIMIT)
  const wire = context.anonymous(undefined, CALL_LIMIT)
  const stream = new InboxStream(client, wire, owner, { onFrame: show, onState, timeout })
  await stream.ended
  return undefined
}

const CALL_LIMIT = 30_000

const idIn = (frame: InboxFrame): string | undefined =>
  "message" in frame && typeof frame.message === "object" ? frame.message.id : undefined

const TO_ANN = "--to user-42"

export const inboxRows = [
  row("send", "POST /v1/inbox", {
    about: "send one message to the inbox of one subscriber, or of up to 500",
    example: [
      `${TO_ANN} --title 'Your invoice is ready' --action-url /invoices/7`,
      `${TO_ANN} --title 'Ben invites you' --action accept=Accept --action decline=Decline`,
      `${TO_ANN} --template invoice --var number=1042 --collapse-key invoice-1042`,
    ],
    flags: {
      ...CONTENT,
      variables,
      external_id: "external id of the recipient",
      subscriber_id: "id of the recipient, in place of --to",
      subscriber_ids: "several recipients, by id or external id; may be repeated",
      title: "title of the message, unless a template has it",
      template_id: "template in place of title and text, by id or name",
    },
    aliases: { external_id: "to" },
    done: ({ messages, skipped, id }) => {
      const many = messages.length === 1 ? "1 message" : `${messages.length} messages`
      return `created ${many}${skipped > 0 ? `, skipped ${skipped}` : ""}${id ? `  ${id}` : ""}`
    },
    next: ({ messages: [first, ...others] }) =>
      first && (others.length === 0 ? `inbox get ${first.id}` : "inbox list"),
  }),
  row("list", "GET /v1/inbox", {
    about: "list messages in inboxes, newest first",
    example: ["--external-id user-42 --state unseen", "--tag invoice --json=id,title,read_at"],
    flags: { category: "show only messages of this category" },
    columns: inboxColumns,
    next: ([first]) => (first ? `inbox get ${first.id}` : `inbox send ${TO_ANN} --title Hello`),
  }),
  row("get <id>", "GET /v1/inbox/{inbox_id}", { shown: inboxText }),
  row("update <id>", "PATCH /v1/inbox/{inbox_id}", {
    about: "change a message or its state; open pages show it at once",
    example: ["--title 'Your invoice is paid' --read", "--archived", "--expires 7d"],
    flags: { ...CONTENT, read: false, seen: false, archived: false },
    options: markOptions,
    refuse: contradiction,
    input: marksOf,
    done: ({ id }) => `changed ${id}`,
    shown: inboxText,
  }),
  row("rm <id>", "DELETE /v1/inbox/{inbox_id}", {
    about: "delete a message; it disappears from the inbox at once",
    ...deletes((id) => `The message ${id} will disappear from the inbox.`),
  }),
  row("stats", "GET /v1/inbox/stats", {
    about: "count the messages of a period that were created, seen, read and archived",
    example: ["", "--period day", "--period 2026-11"],
    flags: { period: flag(ANY_PERIOD) },
  }),
  row("token", "POST /v1/subscriber-inbox/token", {
    about: "make a token with which an app acts for one subscriber",
    example: "--external-id user_42 --ttl-seconds 3600",
    shown: ({ token }) => token,
    brief: ({ token }) => token,
  }),
  own("tail", tail, {
    about: "follow the inbox of a subscriber without a gap, until Ctrl-C",
    example: ["--external-id user-42", "--external-id user-42 | jq .message.title"],
    options: [
      ["--external-id <id>", "external id of the subscriber"],
      ["--subscriber-id <id>", "id of the subscriber"],
      ["--limit <number>", "end after this number of changes"],
    ],
  }),
]
