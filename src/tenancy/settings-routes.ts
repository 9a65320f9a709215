import { type TSchema, Type as t } from "@sinclair/typebox"
import { ai, requireAiOverrides } from "../ai/ai-settings"
import type { Problems } from "../core/errors"
import { readDomain } from "../domains/names"
import { readAddress } from "../emails/fields"
import { oneOf, orNull } from "../http/field-schemas"
import { type AnyRoute, projectRow, route } from "../http/route"
import { type SettingField, settingField, settingGroup, settingRows } from "../http/setting-fields"
import { type Caller, PROJECT_DEFAULTS } from "../identity/caller"
import {
  type Branding,
  INBOUND_MODES,
  type ProjectSettings,
  type Retention,
} from "../identity/tables"
import { isName } from "../lib/address"
import { isLocale } from "../lib/locale"
import type { FrequencyCap } from "../lib/preferences"
import { count, flag, maybe, rarely, text, word } from "../lib/record-fields"
import { featuresOf, upgradeRequired } from "../plans/plans"
import type { Store } from "../store/store"
import { quietHours } from "../subscribers/preferences-input"
import { type PatchOf, type ProjectSettingsChange, patch, zoneOf } from "./settings"

/** They have routes of their own. */
type OtherSetting = "default_preferences" | "mailbox_chaos"

type SettingName = Exclude<keyof ProjectSettings, OtherSetting>

type SettingRows = { [Name in SettingName]: SettingField<PatchOf<Name> | null> }

const flagRow = (example: boolean, description: string) =>
  settingField<boolean>({
    answer: flag(example, description),
    patch: orNull(t.Boolean()),
    hint: "The value must be true, false or null.",
  })

/** A setting that is true, false, or what the account says. */
const inheritedRow = (description: string): SettingField<boolean> => ({
  ...flagRow(true, description),
  answer: rarely(flag(true, description)),
})

const address = t.String({ description: "An email address, such as a@example.com." })
const sender = t.Object({ email: address, name: t.Optional(orNull(t.String())) })

const MOST_ORIGINS = 100
const MOST_CHARACTERS = 300

const MOST_NAME_CHARACTERS = 100
const MOST_URL_CHARACTERS = 2048

/** As a browser will read it. */
function httpsUrl(given: string): string | undefined {
  const url = given.length <= MOST_URL_CHARACTERS ? URL.parse(given) : null
  if (url?.protocol !== "https:" || url.username !== "" || url.password !== "") return undefined
  return url.href.length <= MOST_URL_CHARACTERS ? url.href : undefined
}

const webAddress = (example: string, description: string) =>
  settingField<string | null>({
    answer: maybe(text(example)),
    patch: orNull(t.String({ description })),
    keep: httpsUrl,
    hint: "The value must be an https:// URL without a password.",
  })

const HEX_COLOR = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i

const branding = settingGroup<Branding>(
  {
    name: settingField({
      answer: maybe(text("Acme")),
      patch: orNull(t.String({ maxLength: MOST_NAME_CHARACTERS })),
      keep: (given: string) => (isName(given) ? given.trim() || undefined : undefined),
      hint: `The value must be one line of 1 to ${MOST_NAME_CHARACTERS} characters.`,
    }),
    logo_url: webAddress("https://example.com/logo.png", "An https:// URL of an image."),
    primary_color: settingField({
      answer: maybe(text("#2457c5")),
      patch: orNull(t.String({ description: "A color such as #2457c5." })),
      keep: (given: string) => (HEX_COLOR.test(given) ? given : undefined),
      hint: "The value must be a color in hex, such as #2457c5.",
    }),
    support_url: webAddress("https://example.com/help", "An https:// URL."),
  },
  { description: "What pages for recipients show: name, logo, color of buttons, link to help." },
)

const whole = (least: number, most: number, description?: string) =>
  t.Integer({ minimum: least, maximum: most, ...(description !== undefined && { description }) })

const LEAST_DAYS = 1
const MOST_DAYS = 3650

/** Null is the default. */
const days = (name: keyof Retention, description: string) => {
  const fallback = PROJECT_DEFAULTS.retention[name]
  return settingField<number>({
    answer: count(fallback, description),
    patch: orNull(whole(LEAST_DAYS, MOST_DAYS, description)),
    null_is: fallback,
    hint: `The value must be a whole number of days from ${LEAST_DAYS} to ${MOST_DAYS}.`,
  })
}

const retention = settingGroup<Retention>(
  {
    messages_days: days("messages_days", "Messages with their attempts."),
    bodies_days: days(
      "bodies_days",
      "Contents, sent bytes and attachments of messages that are settled.",
    ),
    inbound_days: days("inbound_days", "Received mail."),
    webhook_deliveries_days: days("webhook_deliveries_days", "Webhook deliveries that have ended."),
    events_days: days(
      "events_days",
      "Events. With webhooks they are kept at least as long as webhook deliveries.",
    ),
  },
  { description: "For how many days what belongs to the project is kept." },
)

const MOST_MESSAGES = 1000
/** A window is no longer than a month. */
const LONGEST_SECONDS = 30 * 24 * 3600

const wholeUpTo = (most: number, answer: TSchema) =>
  settingField<number>({
    answer,
    patch: whole(1, most),
    hint: `The value must be a whole number from 1 to ${most}.`,
  })

const frequencyCap = settingGroup<FrequencyCap>(
  {
    count: wholeUpTo(
      MOST_MESSAGES,
      count(3, "Messages to one subscriber by one channel in one category."),
    ),
    per_seconds: wholeUpTo(
      LONGEST_SECONDS,
      count(86_400, "The time within which Belfry counts them."),
    ),
  },
  {
    or_null: true,
    title: "FrequencyCap",
    description: "A message beyond the cap is not sent.",
  },
)

/** Every setting that this server acts upon, in the order of answers. Another one is refused. */
const SETTING_ROWS: SettingRows = {
  default_from: {
    answer: maybe(
      t.Object(
        { email: text("hello@example.com"), name: maybe(text("Acme")) },
        { description: "The sender of emails without `from`." },
      ),
    ),
    patch: t.Union([sender, address, t.Null()]),
    read: readAddress,
  },
  default_reply_to: {
    answer: maybe(text("support@example.com")),
    patch: orNull(address),
    read: (given, path, problems) => readAddress(given, path, problems)?.email,
  },
  track_opens: inheritedRow(
    "Whether html mail gets the picture that reports openings. Null is the setting of the account.",
  ),
  track_clicks: inheritedRow(
    "Whether links of html mail report clicks. Null is the setting of the account.",
  ),
  allowed_origins: {
    answer: t.Array(text("https://app.example.com"), {
      description:
        "The origins of web pages that may use the token of a subscriber. With an empty list, every page may.",
    }),
    patch: t.Union([
      t.Array(t.String({ description: "An origin, such as https://app.example.com." }), {
        maxItems: MOST_ORIGINS,
      }),
      t.Null(),
    ]),
    read: readOrigins,
  },
  tracking_domain: {
    answer: rarely(
      text(
        "links.example.com",
        "The host of pixels and tracked links. Its DNS must lead to this server. Null is the address of this server.",
      ),
    ),
    patch: orNull(t.String({ description: "A host name, such as links.example.com." })),
    read: readHost,
  },
  sandbox: flagRow(
    false,
    "Whether the embedded mailbox catches all mail. Such mail uses no quota.",
  ),
  allow_subdomains: flagRow(false, "Whether subdomains of verified domains may send, too."),
  reply_tracking: flagRow(
    false,
    "Whether emails without `reply_to` get a Reply-To address of their own, so that an answer names the email.",
  ),
  inbound: {
    answer: t.Object(
      { mode: word(INBOUND_MODES) },
      {
        description:
          "Which addresses of receiving domains take mail: every one (`catch_all`), or those that a route matches (`routes`).",
      },
    ),
    patch: t.Union([t.Object({ mode: oneOf(...INBOUND_MODES) }), t.Null()]),
    read: readInbound,
  },
  branding,
  retention,
  emit_machine_events: flagRow(
    false,
    "Whether `email.opened` and `email.clicked` are also emitted for hits of machines.",
  ),
  locale: settingField({
    answer: text("en", "The language of subscribers without one, as a tag of BCP 47."),
    patch: orNull(t.String({ description: "A language tag, such as en or de-AT." })),
    keep: (given: string) =>
      given.length <= MOST_LOCALE_CHARACTERS && isLocale(given) ? given : undefined,
    hint: "The value must be a language tag, such as en or de-AT.",
  }),
  timezone: settingField({
    answer: text("UTC", "The time zone of subscribers without one, from the IANA database."),
    patch: orNull(t.String({ description: "A time zone, such as Europe/Vienna." })),
    keep: zoneOf,
    hint: "The value must be a time zone, such as Europe/Vienna.",
  }),
  quiet_hours: quietHours,
  frequency_cap: frequencyCap,
  auto_link_users: flagRow(
    false,
    "Whether a verified end user becomes a subscriber whose `external_id` is the id of the user.",
  ),
  ai,
}

/** Reads origins in the form in which browsers send them (RFC 6454, section 6.2), each once. */
function readOrigins(given: unknown, path: string, problems: Problems): string[] | undefined {
  if (!Array.isArray(given)) {
    return problems.add(path, "invalid", "The value must be a list of origins, or null.")
  }
  if (given.length > MOST_ORIGINS) {
    return problems.add(path, "too_many", `The list must have at most ${MOST_ORIGINS} origins.`)
  }
  const origins = given.map((one: unknown) => originOf(one))
  for (const [at, origin] of origins.entries()) {
    if (origin === undefined) problems.add(`${path}.${at}`, "invalid", HINT)
  }
  return [...new Set(origins.filter((origin) => origin !== undefined))]
}

const HINT =
  "The value must be one origin without a path and without *, such as https://app.example.com."

/** A scheme with a host, and nothing behind them; apps in a shell have schemes of their own. A `*` would match no page. */
function originOf(given: unknown): string | undefined {
  if (typeof given !== "string" || given.length > MOST_CHARACTERS) return undefined
  const url = URL.parse(given)
  if (!url || url.host === "" || url.username !== "" || url.password !== "") return undefined
  if (/[?#*\\\s]/.test(given) || !["", "/"].includes(url.pathname)) return undefined
  return `${url.protocol}//${url.host}`
}

const MOST_LOCALE_CHARACTERS = 35

function readHost(given: unknown, path: string, problems: Problems) {
  const read = typeof given === "string" ? readDomain(given) : { reason: NO_HOST }
  return "name" in read ? read.name : problems.add(path, "invalid", read.reason)
}

const NO_HOST = "The value must be a host name, such as links.example.com, or null."

/** Throws 402 where the plan has no tracking domain of its own. */
function requireTrackingDomain({ plan }: Caller, { tracking_domain }: ProjectSettingsChange) {
  if (!tracking_domain || featuresOf(plan).tracking_domain) return
  throw upgradeRequired("tracking_domain", plan, "starter", 402)
}

function readInbound(given: unknown, path: string, problems: Problems) {
  const object = typeof given === "object" ? (given as Record<string, unknown>) : {}
  const { mode = "", ...others } = object
  if (mode === null) return null
  for (const name of Object.keys(others)) {
    problems.add(`${path}.${name}`, "unknown_field", "There is no such setting. There is mode.")
  }
  const known = INBOUND_MODES.find((one) => one === mode)
  if (known) return { mode: known }
  return problems.add(`${path}.mode`, "invalid", `The value must be ${INBOUND_MODES.join(" or ")}.`)
}

const rows = settingRows<ProjectSettingsChange>(SETTING_ROWS)

const Settings = t.Unsafe<ShownSettings>(t.Object(rows.answer, { title: "Settings" }))

type ShownSettings = Omit<ProjectSettings, OtherSetting>

const toResponse = ({
  default_preferences: _,
  mailbox_chaos: __,
  ...settings
}: ProjectSettings): ShownSettings => settings

export const settingsRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/settings", "settings:read"),
    summary: "Show the settings of the project",
    description: "Shows every setting, with its default if the project has not set it.",
    response: Settings,
    handle: ({ caller }) => ({ data: toResponse(caller.project_settings) }),
  }),
  route({
    ...projectRow("PATCH", "/v1/settings", "settings:write"),
    summary: "Change settings of the project",
    description:
      "Settings that are absent stay as they are. Null restores the default. Unknown settings are refused.",
    body: rows.patch,
    example: { default_from: { email: "hello@example.com", name: "Acme" }, sandbox: false },
    readRaw: readPatch,
    response: Settings,
    errors: ["invalid_email", "plan_upgrade_required", ["plan_upgrade_required", 402]],
    handle: async ({ caller, body }) => {
      requireTrackingDomain(caller, body)
      if (body.ai) requireAiOverrides(caller)
      return { data: toResponse(await store.tx((tx) => patch(tx, caller, body))) }
    },
  }),
]

/** A setting that nothing here acts upon is refused: silence would look like consent. */
function readPatch(body: unknown, problems: Problems): ProjectSettingsChange {
  for (const name of Object.keys(Object(body))) {
    if (Object.hasOwn(SETTING_ROWS, name)) continue
    const known = Object.keys(SETTING_ROWS).join(", ")
    problems.add(name, "unknown_field", `There is no such setting. The settings are ${known}.`)
  }
  return rows.read(body, problems)
}
