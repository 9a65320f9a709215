import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { readAddress } from "../emails/fields"
import { oneOf, orNull } from "../http/field-schemas"
import { type AnyRoute, projectRow, route } from "../http/route"
import { PROJECT_DEFAULTS } from "../identity/caller"
import { INBOUND_MODES } from "../identity/tables"
import { flag, maybe, text, word } from "../lib/record-fields"
import type { Store } from "../store/store"
import { type ProjectSettingsChange, patch } from "./settings"

const address = t.String({ description: "An email address, such as a@example.com." })
const sender = t.Object({ email: address, name: t.Optional(orNull(t.String())) })

const Settings = t.Object(
  {
    default_from: maybe(
      t.Object(
        { email: text("hello@example.com"), name: maybe(text("Acme")) },
        { description: "The sender of emails without `from`." },
      ),
    ),
    default_reply_to: maybe(text("support@example.com")),
    sandbox: flag(
      false,
      "Whether all mail goes to the embedded mailbox. Such mail does not count for the quota.",
    ),
    allow_subdomains: flag(false, "Whether subdomains of verified domains may send, too."),
    reply_tracking: flag(
      false,
      "Whether emails without `reply_to` get a Reply-To address of their own, so that an answer names the email.",
    ),
    inbound: t.Object(
      { mode: word(INBOUND_MODES) },
      {
        description:
          "Which addresses of receiving domains take mail: every one (`catch_all`), or those that a route matches (`routes`).",
      },
    ),
  },
  { title: "Settings" },
)

const SettingsPatch = t.Object({
  default_from: t.Optional(t.Union([sender, address, t.Null()])),
  default_reply_to: t.Optional(orNull(address)),
  sandbox: t.Optional(t.Union([t.Boolean(), t.Null()])),
  allow_subdomains: t.Optional(t.Union([t.Boolean(), t.Null()])),
  reply_tracking: t.Optional(t.Union([t.Boolean(), t.Null()])),
  inbound: t.Optional(t.Union([t.Object({ mode: oneOf(...INBOUND_MODES) }), t.Null()])),
})

export const settingsRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", "/v1/settings", "settings:read"),
    summary: "Show the settings of the project",
    description: "Shows every setting, with its default if the project has not set it.",
    response: Settings,
    handle: ({ caller }) => ({ data: caller.project_settings }),
  }),
  route({
    ...projectRow("PATCH", "/v1/settings", "settings:write"),
    summary: "Change settings of the project",
    description:
      "Settings that are absent stay as they are. Null restores the default. Unknown settings are refused.",
    body: SettingsPatch,
    example: { default_from: { email: "hello@example.com", name: "Acme" }, sandbox: false },
    read: readPatch,
    response: Settings,
    errors: ["invalid_email"],
    handle: async ({ caller, body }) => ({
      data: await store.tx((tx) => patch(tx, caller, body)),
    }),
  }),
]

/** A setting that nothing here acts upon is refused: silence would look like consent. */
function readPatch(body: unknown, problems: Problems): ProjectSettingsChange {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    problems.add("body", "invalid", "The body must be an object of settings.")
    return {}
  }
  const wanted: ProjectSettingsChange = {}
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(PROJECT_DEFAULTS, name)) {
      const known = Object.keys(PROJECT_DEFAULTS).join(", ")
      problems.add(name, "unknown_field", `There is no such setting. The settings are ${known}.`)
    }
  }
  const { default_from, default_reply_to, ...rest } = body as Record<string, unknown>
  const from = readOrNull("default_from", default_from, problems)
  const reply_to = readOrNull("default_reply_to", default_reply_to, problems)
  if (from !== undefined) wanted.default_from = from
  if (reply_to !== undefined) wanted.default_reply_to = reply_to?.email ?? null
  for (const name of ["sandbox", "allow_subdomains", "reply_tracking"] as const) {
    const given = rest[name]
    if (given === null || typeof given === "boolean") wanted[name] = given
    else if (given !== undefined)
      problems.add(name, "invalid", "The value must be true, false or null.")
  }
  const inbound = readInbound(rest.inbound, problems)
  if (inbound !== undefined) wanted.inbound = inbound
  return wanted
}

function readInbound(given: unknown, problems: Problems): ProjectSettingsChange["inbound"] {
  if (given === null || given === undefined) return given
  const object = typeof given === "object" ? (given as Record<string, unknown>) : {}
  const { mode = "", ...others } = object
  if (mode === null) return null
  for (const name of Object.keys(others)) {
    problems.add(`inbound.${name}`, "unknown_field", "There is no such setting. There is mode.")
  }
  const known = INBOUND_MODES.find((one) => one === mode)
  if (known) return { mode: known }
  problems.add("inbound.mode", "invalid", `The value must be ${INBOUND_MODES.join(" or ")}.`)
  return undefined
}

const readOrNull = (name: string, given: unknown, problems: Problems) =>
  given === null || given === undefined ? given : readAddress(given, name, problems)
