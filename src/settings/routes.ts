import { Type as t } from "@sinclair/typebox"
import { readAddress } from "../emails/fields"
import type { Problems } from "../http/problems"
import { type AnyRoute, route } from "../http/route"
import { orNull } from "../http/texts"
import { flag, maybe, text } from "../lib/record-fields"
import type { ProjectSettings } from "../projects/tables"
import type { Store } from "../store/store"
import { patch } from "./changes"
import { DEFAULTS } from "./settings"

const address = t.String({ description: "a@example.com" })
const sender = t.Object({ email: address, name: t.Optional(orNull(t.String())) })

const Settings = t.Object(
  {
    default_from: maybe(
      t.Object(
        { email: text("hello@example.com"), name: maybe(text("Acme")) },
        { description: "Sender of what names none." },
      ),
    ),
    default_reply_to: maybe(text("support@example.com")),
    sandbox: flag(false, "Everything goes to the embedded mailbox, and counts no quota."),
    allow_subdomains: flag(false, "Subdomains of verified domains may send, too."),
  },
  { title: "Settings" },
)

const SettingsPatch = t.Object({
  default_from: t.Optional(t.Union([sender, address, t.Null()])),
  default_reply_to: t.Optional(orNull(address)),
  sandbox: t.Optional(t.Union([t.Boolean(), t.Null()])),
  allow_subdomains: t.Optional(t.Union([t.Boolean(), t.Null()])),
})

type Wanted = Partial<{ [Name in keyof ProjectSettings]: ProjectSettings[Name] | null }>

export const settingsRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...may("settings:read"),
    method: "GET",
    summary: "What the project has decided",
    description: "Every setting of the project, with the default where nothing was chosen.",
    response: Settings,
    handle: ({ caller }) => ({ data: caller.project_settings }),
  }),
  route<Wanted, unknown>({
    ...may("settings:write"),
    method: "PATCH",
    summary: "Change settings: what is absent stays, null is the default again",
    description: "A merge patch. Unknown settings are refused, so that a typing error is seen.",
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

const may = (scope: string) => ({
  path: "/v1/settings",
  callers: ["key", "console"] as AnyRoute["callers"],
  status: [200] as [number],
  scope,
})

/** A setting that nothing here acts upon is refused: silence would look like consent. */
function readPatch(body: unknown, problems: Problems): Wanted {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    problems.add("body", "invalid", "An object of settings.")
    return {}
  }
  const wanted: Wanted = {}
  for (const name of Object.keys(body)) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      const known = Object.keys(DEFAULTS).join(", ")
      problems.add(name, "unknown_field", `There is no such setting here; there are ${known}.`)
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
    else if (given !== undefined) problems.add(name, "invalid", "Either true or false.")
  }
  return wanted
}

const readOrNull = (name: string, given: unknown, problems: Problems) =>
  given === null || given === undefined ? given : readAddress(given, name, problems)
