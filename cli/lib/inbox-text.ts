import type { Components } from "../../src/client/components"
import type { InboxFrame, TailedCounts } from "./inbox-stream"
import { ago, type Columns, coloured, fields, idColumn, lineId, shortId, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"
import { age, clockTime, millis } from "./time"

/** A message as its subscriber sees it. */
export type OwnInboxMessage = Omit<Components["InboxMessage"], "metadata">

type States = Pick<OwnInboxMessage, "seen_at" | "read_at" | "archived_at" | "snoozed_until">

/** The one word for where a message is, as the filter of the list has it. */
export function inboxState({ seen_at, read_at, archived_at, snoozed_until }: States) {
  if (archived_at !== null) return "archived"
  if (snoozed_until !== null) return "snoozed"
  if (read_at !== null) return "read"
  return seen_at === null ? "unseen" : "seen"
}

export const inboxColumns: Columns<Components["InboxMessage"]> = {
  ID: idColumn("inbox"),
  SUBSCRIBER: { cell: ({ subscriber_id }) => shortId(subscriber_id), spare: 3 },
  TITLE: wide(({ title }) => title, "last"),
  CATEGORY: { cell: ({ category }) => category ?? "", spare: 2 },
  PRIORITY: { cell: ({ priority }) => (priority === "normal" ? "" : priority), spare: 1 },
  STATE: coloured(inboxState, { unseen: "yellow", seen: "cyan" }, "green"),
  AGE: ago(({ created_at }) => created_at),
}

/** A message with its states, and what became of its actions. */
export function inboxText(message: OwnInboxMessage, paint: Paint): string {
  const { actions, data, tags, action_url, action_label } = message
  const head = fields(
    [
      ["id", message.id],
      ["subscriber", message.subscriber_id],
      ["state", inboxState(message)],
      ["seq", message.seq],
      ["category", message.category],
      ["priority", message.priority],
      ["leads to", action_url && [action_label, action_url].filter(Boolean).join("  ")],
      ["icon", message.icon],
      ["image", message.image_url],
      ["key", message.collapse_key],
      ["tags", tags.join(", ")],
      ["data", Object.keys(data).length > 0 ? JSON.stringify(data) : null],
      ...STATES.map(([name, field]) => [name, whenText(message[field])] as const),
    ],
    paint,
  )
  const title = paint.bold(cleanLine(message.title))
  const body = message.body === null ? [] : ["", cleanText(message.body)]
  const buttons = actions.map((action) => actionLine(action, paint))
  return [title, head, ...body, ...(buttons.length > 0 ? ["", ...buttons] : [])].join("\n")
}

const STATES = [
  ["created", "created_at"],
  ["seen", "seen_at"],
  ["read", "read_at"],
  ["archived", "archived_at"],
  ["snoozed", "snoozed_until"],
  ["expires", "expires_at"],
] as const

const whenText = (at: string | null) => {
  if (at === null) return null
  const since = age(at)
  return `${at} (${since.startsWith("in ") ? since : `${since} ago`})`
}

/** `✓ accept  Accept  https://…  used 12:00:01`, or without the mark where nobody used it yet. */
function actionLine(
  { key, label, url, completed_at }: OwnInboxMessage["actions"][number],
  paint: Paint,
): string {
  const used = completed_at && paint.dim(`used ${clockTime(completed_at)}`)
  const words = [key, label, url].flatMap((word) => word ?? []).map(cleanLine)
  return [used ? paint.green("✓") : "–", words.join("  "), used].filter(Boolean).join(" ")
}

/** `12:00:01.131 #1043 created   98783dac unseen    Your invoice is ready`: a line for each frame. */
export function frameLine(frame: InboxFrame, paint: Paint, terminal: { width: number }): string {
  const { seq, what, words } = frameWords(frame, (id) => lineId(id, terminal))
  const at = paint.dim(clockTime(new Date(millis()).toISOString()))
  const number = (seq === undefined ? "" : `#${seq}`).padEnd(SEQ_WIDTH)
  const verb = what.padEnd(WHAT_WIDTH)
  return `${at} ${paint.dim(number)} ${what === "counts" ? paint.dim(verb) : verb} ${words}`
}

const SEQ_WIDTH = 7
const WHAT_WIDTH = 8

interface FrameWords {
  seq?: number
  what: string
  words: string
}

function frameWords(frame: InboxFrame, brief: (id: string) => string): FrameWords {
  switch (frame.type) {
    case "ready":
      return { seq: frame.last_seq, what: "ready", words: countsText(frame.counts) }
    case "counts":
      return { what: "counts", words: countsText(frame) }
    case "message.created":
    case "message.updated": {
      const { seq, message, type } = frame
      const state = inboxState(message).padEnd(WHAT_WIDTH)
      const words = `${brief(message.id)} ${state} ${cleanLine(message.title)}`
      return { seq, what: type.slice("message.".length), words }
    }
    case "message.deleted":
      return { seq: frame.seq, what: "deleted", words: brief(frame.id) }
    case "resync":
      return { what: "resync", words: "more was missed than the server keeps; see `inbox list`" }
    case "ack":
      return { what: "ack", words: "" }
    case "error":
      return { what: "error", words: `${frame.code}: ${cleanLine(frame.message)}` }
    default: {
      const { category, before, read_only } = frame
      const of = category === undefined ? "" : ` in ${cleanLine(category)}`
      const until = before === undefined ? "" : ` from before ${cleanLine(before)}`
      return {
        seq: frame.upto_seq,
        what: frame.type.slice("messages.".length),
        words: `all ${read_only ? "read " : ""}messages${of}${until}`,
      }
    }
  }
}

const countsText = ({ unread, unseen, total }: TailedCounts): string =>
  `${unread} unread, ${unseen} unseen, ${total} in all`
