import type { Components } from "../../src/client/components"
import { usage } from "../lib/errors"
import type { OptionWords, PlainOptions } from "../lib/field-flags"
import { CHANNELS } from "../lib/flags"
import { isObject, onOff, placed } from "../lib/input"
import { row } from "../lib/resource"
import { fields } from "../lib/table"
import type { Paint } from "../lib/terminal"

type Reachability = Components["Reachability"]

const FORMS =
  "Choices: <channel>.enabled, <channel>.categories.<slug>, topics.<key>.<channel>, workflows.<key> = on, off or none; quiet_hours.enabled, .start, .end, .timezone, .channels; quiet_hours=none."

/** The body that choices such as `email.categories.news=off` mean. Topic keys may have dots: a channel ends them. */
function readChoices(words: readonly string[]): object {
  let body: Record<string, unknown> = {}
  for (const word of words) {
    const [name = "", ...rest] = word.split("=")
    if (rest.length === 0) throw usage(`"${word}" is not <choice>=<value>. ${FORMS}`)
    const path = pathOf(name)
    if (path.includes("") || path.includes("__proto__"))
      throw usage(`"${path.join(".")}" is no choice. ${FORMS}`)
    if (isTaken(body, path)) throw usage(`"${path.join(".")}" is given in two ways`)
    body = placed(body, path, chosenValue(name, rest.join("=")))
  }
  return body
}

/** Whether a value stands on the path or at its end. What was given as `none` may be filled. */
function isTaken(body: Record<string, unknown>, path: readonly string[]): boolean {
  let group = body
  for (const [at, step] of path.entries()) {
    const inner = (Object.hasOwn(group, step) ? group[step] : undefined) ?? undefined
    if (inner === undefined) return false
    if (!isObject(inner) || at === path.length - 1) return true
    group = inner
  }
  return false
}

/** Where a choice stands in the body. */
function pathOf(name: string): string[] {
  const parts = name.split(".")
  const [group = "", ...rest] = parts
  if (group === "topics") return [group, rest.slice(0, -1).join("."), rest.at(-1) ?? ""]
  return parts
}

function chosenValue(name: string, text: string): unknown {
  if (text === "none") return null
  if (name === "quiet_hours.channels") return text.split(",").filter(Boolean)
  const is_text = /^quiet_hours\.(start|end|timezone)$/.test(name)
  return is_text ? text : onOff(text, name)
}

/** Each channel, and why and until when nothing may be sent to it. */
export function reachabilityText(found: Reachability, paint: Paint): string {
  const lines = CHANNELS.map((channel): [string, string] => {
    const { allowed, reason, next_allowed_at } = found[channel]
    const mark = allowed ? paint.green("✓") : paint.red("✗")
    const until = next_allowed_at ? `until ${next_allowed_at}` : ""
    return [channel, [mark, reason ?? "", until].filter(Boolean).join(" ")]
  })
  return fields(lines, paint)
}

const changing = {
  note: FORMS,
  options: [
    [
      "--choose <choice>",
      "a choice, such as email.categories.newsletter=off; may be repeated",
      "several",
    ],
  ] satisfies OptionWords[],
  refuse: ({ choose }: PlainOptions) =>
    choose === undefined ? `nothing is chosen: give at least one --choose. ${FORMS}` : undefined,
  input: ({ choose = [] }: PlainOptions) => readChoices([choose].flat().map(String)),
}

export const preferenceRows = [
  row("get <subscriber>", "GET /v1/subscribers/{subscriber_id}/preferences", {
    about: "show what a subscriber chose, by its id or external id",
  }),
  row("set <subscriber>", "POST /v1/subscribers/{subscriber_id}/preferences", {
    about: "change choices of a subscriber; the others stay",
    example: [
      "--choose email.categories.newsletter=off",
      "--choose quiet_hours.start=22:00 --choose sms.enabled=none",
    ],
    ...changing,
  }),
  row("replace <subscriber>", "PUT /v1/subscribers/{subscriber_id}/preferences", {
    about: "replace everything that a subscriber chose",
    example: "--choose email.enabled=off",
    ...changing,
  }),
  row("default", "GET /v1/subscribers/preferences/default", {}),
  row("set-default", "PUT /v1/subscribers/preferences/default", {
    example: "--choose sms.enabled=off --choose quiet_hours.start=22:00",
    ...changing,
  }),
]

export const reachabilityRow = row(
  "reachability <subscriber>",
  "GET /v1/subscribers/{subscriber_id}/reachability",
  {
    about: "show by which channels a subscriber would get a message now, and why not",
    example: "--category newsletter",
    shown: reachabilityText,
  },
)
