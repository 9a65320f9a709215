import { type Static, Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { oneOf } from "../http/field-schemas"
import { BAD_LINK, isLink, line, link, NO_NUL, optional } from "../inbox/note-fields"
import { isFields } from "./providers/overrides"
import {
  LONGEST_TTL_SECONDS,
  MOST_PAYLOAD_BYTES,
  type PushContent,
  RESERVED_DATA,
} from "./push-content"

/* The fields of a push message, as requests and publishes give them. */

export const LONGEST_TITLE = 200
export const LONGEST_BODY = 2000
const LONGEST_LABEL = 100
const LONGEST_SOUND = 100
const LONGEST_ACTION_ID = 64
const LONGEST_COLLAPSE_BYTES = 64
const MOST_ACTIONS = 3
const MOST_BADGE = 2_147_483_647

const dataField = (description: string) =>
  t.Optional(t.Record(t.String(), t.String({ pattern: NO_NUL }), { description }))

const DATA = `Texts for your app. The names ${RESERVED_DATA.map((name) => `\`${name}\``).join(", ")} are reserved.`

/** The texts that a template may say, and that may be Handlebars: of those, what comes of them is checked. */
export const textFields = {
  title: optional(line(LONGEST_TITLE, "Required without `body` and without a template.")),
  body: optional(t.String({ minLength: 1, maxLength: LONGEST_BODY, pattern: NO_NUL })),
  image_url: optional(t.String({ description: "The URL of an image." })),
  url: optional(t.String({ description: "Where a tap leads to." })),
  data: dataField(DATA),
}

/** The same texts in a publish, each as long as the source of a template may be. */
export const sourceFields = (most: number) => {
  const source = optional(t.String({ minLength: 1, maxLength: most, pattern: NO_NUL }))
  return { title: source, body: source, image_url: source, url: source, data: dataField(DATA) }
}

const override = (provider: string) =>
  optional(
    t.Record(t.String(), t.Unknown(), {
      description: `Merged into what Belfry builds for ${provider}. The reserved names of \`data\` are refused here, too.`,
    }),
  )

/** What is the same for all devices, whatever the texts say. */
export const otherFields = {
  icon: optional(link("The URL of an icon. Browsers show it.")),
  badge: optional(
    t.Union([t.Integer({ minimum: 0, maximum: MOST_BADGE }), t.Literal("unread")], {
      description: "The number on the icon of the app. `unread`: the unread messages of the inbox.",
    }),
  ),
  sound: optional(line(LONGEST_SOUND, "The name of a sound of the app, or `default`.")),
  content_available: optional(t.Boolean({ description: "Wakes the app, also without a text." })),
  action_buttons: t.Optional(
    t.Array(
      t.Object({
        id: line(LONGEST_ACTION_ID, "Its name, unique in the message."),
        label: line(LONGEST_LABEL, "The text of the button."),
        url: optional(link("Where the button leads to.")),
      }),
      { maxItems: MOST_ACTIONS },
    ),
  ),
  collapse_id: optional(
    line(
      LONGEST_COLLAPSE_BYTES,
      `A later message with the same one takes the place of this one. At most ${LONGEST_COLLAPSE_BYTES} bytes.`,
    ),
  ),
  ttl_seconds: optional(
    t.Integer({
      minimum: 0,
      maximum: LONGEST_TTL_SECONDS,
      description: "How long it may wait for the device. Default: four weeks.",
    }),
  ),
  priority: optional(oneOf("high", "normal")),
  apns: override("APNs"),
  fcm: override("FCM"),
  webpush: override("Web Push"),
}

const texts = t.Object(textFields)
const others = t.Object(otherFields)

/** The texts of a push message, rendered or to be rendered. */
export type PushTexts = Pick<PushContent, "title" | "body" | "image_url" | "url" | "data">

export type OtherPushContent = Omit<PushContent, keyof PushTexts>

export const NO_TEXT = "Give title or body, a template, or content_available."

const LINKS = ["url", "image_url"] as const

/** Texts that are sent as they are. `prefix` ends with a dot. */
export function checkLinks(given: Static<typeof texts>, problems: Problems): void {
  for (const name of LINKS) {
    const text = given[name]
    if (text != null && !isLink(text)) problems.add(name, "invalid_url", BAD_LINK)
  }
}

/** `prefix` ends with a dot. */
export function checkOthers(
  given: Static<typeof others> & Pick<Static<typeof texts>, "data">,
  problems: Problems,
  prefix = "",
): void {
  const { action_buttons = [], collapse_id, data = {} } = given
  for (const [at, { id }] of action_buttons.entries()) {
    if (action_buttons.findIndex((other) => other.id === id) === at) continue
    problems.add(`${prefix}action_buttons.${at}.id`, "duplicate", "Two buttons have this id.")
  }
  refuseReserved(data, `${prefix}data.`, problems)
  if (collapse_id != null && Buffer.byteLength(collapse_id) > LONGEST_COLLAPSE_BYTES) {
    const hint = `The value must have at most ${LONGEST_COLLAPSE_BYTES} bytes.`
    problems.add(`${prefix}collapse_id`, "invalid", hint)
  }
  for (const name of ["apns", "fcm", "webpush"] as const) {
    const override = given[name] ?? {}
    checkData(override, `${prefix}${name}.`, DATA_IN[name], problems)
    if (Buffer.byteLength(JSON.stringify(override)) <= MOST_PAYLOAD_BYTES) continue
    const hint = `The value must have at most ${MOST_PAYLOAD_BYTES} bytes as JSON.`
    problems.add(`${prefix}${name}`, "too_large", hint)
  }
}

function refuseReserved(data: object, at: string, problems: Problems): void {
  for (const name of RESERVED_DATA) {
    if (!Object.hasOwn(data, name)) continue
    problems.add(at + name, "reserved", "This name is reserved. Take another one.")
  }
}

/** Where the data is in what each provider gets. */
const DATA_IN = { apns: [], fcm: ["data"], webpush: ["notification", "data"] }

/** An override would replace, without a word, what the device acknowledges with. */
function checkData(override: object, at: string, way: string[], problems: Problems): void {
  const [step, ...rest] = way
  if (step === undefined) refuseReserved(override, at, problems)
  else if (Object.hasOwn(override, step)) {
    const inner: unknown = override[step as never]
    if (isFields(inner)) checkData(inner, `${at}${step}.`, rest, problems)
    else problems.add(at + step, "invalid", "The value must be an object.")
  }
}

export const textsOf = ({
  title,
  body,
  image_url,
  url,
  data = {},
}: Static<typeof texts>): PushTexts =>
  sparse({ title, body, image_url, url, data: Object.keys(data).length > 0 ? data : null })

/** What only wakes the app has no priority over what people see. */
export function othersOf(given: Static<typeof others>, is_silent: boolean): OtherPushContent {
  const { icon, badge, sound, collapse_id, apns, fcm, webpush } = given
  const buttons = given.action_buttons ?? []
  return {
    ...sparse({ icon, badge, sound, collapse_id, apns, fcm, webpush }),
    ...(given.content_available && { content_available: true }),
    ...(buttons.length > 0 && {
      action_buttons: buttons.map(({ id, label, url }) => ({ id, label, ...sparse({ url }) })),
    }),
    priority: given.priority ?? (is_silent ? "normal" : "high"),
  }
}

type Sparse<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], null | undefined> }

/** Without what has no value. */
export const sparse = <Fields extends object>(fields: Fields): Sparse<Fields> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as Sparse<Fields>
