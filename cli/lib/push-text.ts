import type { Components } from "../../src/client/components"
import { eventText, paintStatus, statusCell, statusMark } from "./email-text"
import { ago, type Columns, fields, idColumn, wide } from "./table"
import { cleanLine, cleanText, type Paint } from "./terminal"
import { age } from "./time"

type PushMessage = Components["PushMessage"]

/** What stands for the words of a message that only wakes an app. */
const SILENT = "(no text)"

/** The one line that tells what a push message says. */
export const pushTitle = ({ title, body }: Pick<PushMessage, "title" | "body">): string =>
  title ?? body ?? SILENT

export const pushColumns: Columns<Components["PushSummary"]> = {
  ID: idColumn("push"),
  USER: { cell: ({ user_id }) => user_id ?? "", spare: 2 },
  DEVICE: wide(({ device_id }) => device_id, "last"),
  TITLE: wide(pushTitle, "first"),
  PLATFORM: { cell: ({ platform }) => platform ?? "", spare: 1 },
  STATUS: { cell: ({ status }) => statusCell({ status, status_reason: null }), paint: paintStatus },
  AGE: ago(({ created_at }) => created_at),
}

/** A push message with its way: its device, what it says, and what the provider answered. */
export function pushText(message: PushMessage, paint: Paint): string {
  const { error_code, provider_code, error_message, data, action_buttons, platform } = message
  const codes = [error_code, provider_code].filter(Boolean).join(", ")
  const head = fields(
    [
      ["id", message.id],
      ["send", message.batch_id],
      ["user", message.user_id],
      ["device", message.device_id],
      ["provider", `${message.provider}, ${platform}`],
      ["its id", message.provider_message_id],
      ["opens", message.url],
      ["badge", message.badge],
      ["collapse", message.collapse_id],
      ["priority", message.priority],
      ["data", data && Object.keys(data).length > 0 ? JSON.stringify(data) : null],
      ["buttons", action_buttons.map(({ id, label }) => `${id} ${label}`).join(", ")],
      ["tags", message.tags.join(", ")],
      ["scheduled", timeText(message.scheduled_at)],
      ["expires", timeText(message.expires_at)],
      ["error", error_code && `${codes}: ${error_message}`],
      ["accepted", `${message.created_at} (${age(message.created_at)} ago)`],
    ],
    paint,
  )
  const lines = message.events.map((entry) => eventText({ ...entry, recipient_email: null }, paint))
  const said = [paint.bold(cleanLine(pushTitle(message))), cleanText(message.body ?? "")]
  return [statusMark(message, paint), head, "", ...said, "", ...lines].join("\n").trimEnd()
}

const timeText = (at: string | null) => at && `${at} (${age(at)})`
