import { Type as t } from "@sinclair/typebox"
import type { Problems } from "../core/errors"
import { readAddress } from "../emails/fields"
import { orNull } from "../http/field-schemas"
import { type AnyRoute, projectRow, route } from "../http/route"
import { PROJECT_DEFAULTS } from "../identity/caller"
import { flag, maybe, text } from "../lib/record-fields"
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
  },
  { title: "Settings" },
)

const SettingsPatch = t.Object({
  default_from: t.Optional(t.Union([sender, address, t.Null()])),
  default_reply_to: t.Optional(orNull(address)),
  sandbox: t.Optional(t.Union([t.Boolean(), t.Null()])),
  allow_subdomains: t.Optional(t.Union([t.Boolean(), t.Null()])),
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
  for (const name of ["sandbox", "allow_subdomains"] as const) {
    const given = rest[name]
    if (given === null || typeof given === "boolean") wanted[name] = given
    else if (given !== undefined)
      problems.add(name, "invalid", "The value must be true, false or null.")
  }
  return wanted
}

const readOrNull = (name: string, given: unknown, problems: Problems) =>
  given === null || given === undefined ? given : readAddress(given, name, problems)
