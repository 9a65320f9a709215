import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { Command } from "commander"
import type { OperationName } from "../../src/client/client"
import { readOwnFile } from "./folder-files"
import { cacheFolder, type Environment, originOf } from "./profiles"

/** What a record is told by, beside its id. */
type Label = (row: Record<string, unknown>) => unknown[]

export interface IdKind {
  /** `2 emails`. */
  plural: string
  /** The list of them. */
  route: OperationName
  /** The field of the id; default `id`. */
  field?: string
  label: Label
  /** The kinds that an ending may belong to: a person or a key makes a change. */
  one_of?: readonly ("api_key" | "member")[]
  /** People name them, too: what no id ends with is such a name. */
  is_named?: true
}

const address = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "email" in value ? value.email : value

const of_mail: Label = ({ to, subject }) => [address(to), subject]

/** Everything whose ids stand in tables, so that the command line takes their endings. */
export const id_kinds = {
  account: { plural: "accounts", route: "GET /v1/accounts", label: ({ name }) => [name] },
  actor: {
    plural: "members and API keys",
    route: "GET /v1/accounts/me/members",
    label: () => [],
    one_of: ["member", "api_key"],
  },
  application: {
    plural: "applications",
    route: "GET /v1/auth/applications",
    label: ({ name }) => [name],
  },
  api_key: { plural: "API keys", route: "GET /v1/api-keys", label: ({ name }) => [name] },
  delivery: {
    plural: "deliveries",
    route: "GET /v1/webhooks/{webhook_id}/deliveries",
    label: ({ event_type, status }) => [event_type, status],
  },
  device: {
    plural: "devices",
    route: "GET /v1/devices",
    label: ({ device_id, user_id }) => [device_id, user_id],
    is_named: true,
  },
  domain: { plural: "domains", route: "GET /v1/domains", label: ({ domain }) => [domain] },
  email: { plural: "emails", route: "GET /v1/emails", label: of_mail },
  event: { plural: "events", route: "GET /v1/events", label: ({ type }) => [type] },
  inbound: {
    plural: "received mails",
    route: "GET /v1/inbound-emails",
    label: ({ from, subject }) => [address(from), subject],
  },
  inbound_route: {
    plural: "routes",
    route: "GET /v1/inbound-routes",
    label: ({ match, action }) => [(match as { to?: string }).to, action],
  },
  inbox: { plural: "inbox messages", route: "GET /v1/inbox", label: ({ title }) => [title] },
  invitation: {
    plural: "invitations",
    route: "GET /v1/accounts/me/invitations",
    label: ({ email }) => [email],
  },
  mail: { plural: "mails", route: "GET /v1/mailbox", label: of_mail },
  member: {
    plural: "members",
    route: "GET /v1/accounts/me/members",
    field: "user_id",
    label: ({ email }) => [email],
  },
  organization: {
    plural: "organizations",
    route: "GET /v1/auth/organizations",
    label: ({ name }) => [name],
  },
  project: { plural: "projects", route: "GET /v1/projects", label: ({ name }) => [name] },
  provider: { plural: "providers", route: "GET /v1/providers", label: ({ name }) => [name] },
  publish: {
    plural: "publishes",
    route: "GET /v1/topics/{topic_key}/publishes",
    label: ({ status, created_at }) => [status, created_at],
  },
  push: {
    plural: "push messages",
    route: "GET /v1/push",
    label: ({ device_id, title }) => [device_id, title],
  },
  session: {
    plural: "sessions",
    route: "GET /v1/users/me/sessions",
    label: ({ client_name, ip }) => [client_name, ip],
  },
  sms: { plural: "texts", route: "GET /v1/sms", label: ({ to, body }) => [to, body] },
  suppression: {
    plural: "suppressions",
    route: "GET /v1/suppressions",
    label: ({ address, reason }) => [address, reason],
  },
  user: {
    plural: "users",
    route: "GET /v1/auth/users",
    label: ({ email, phone_number, name }) => [email ?? phone_number, name],
  },
  webhook: { plural: "webhooks", route: "GET /v1/webhooks", label: ({ url }) => [url] },
} satisfies Record<string, IdKind>

export type IdKindName = keyof typeof id_kinds

/** What an argument `<id>` is, by the noun of its command. */
const of_noun: Partial<Record<string, IdKindName>> = {
  accounts: "account",
  applications: "application",
  emails: "email",
  events: "event",
  inbound: "inbound",
  inbox: "inbox",
  invitations: "invitation",
  keys: "api_key",
  mailbox: "mail",
  mfa: "user",
  orgs: "organization",
  projects: "project",
  providers: "provider",
  push: "push",
  routes: "inbound_route",
  scheduled: "email",
  sessions: "session",
  sms: "sms",
  suppressions: "suppression",
  topics: "publish",
  users: "user",
  webhooks: "webhook",
}

const of_argument: Partial<Record<string, IdKindName>> = {
  application: "application",
  delivery: "delivery",
  device: "device",
  domain: "domain",
  organization: "organization",
  user: "member",
}

const of_flag: Partial<Record<string, IdKindName>> = {
  "--account": "account",
  "--actor": "actor",
  "--after": "event",
  "--event-id": "event",
  "--key": "api_key",
  "--project": "project",
  "--user": "member",
  "--webhook": "webhook",
}

/** Whose id an argument of a command is; undefined for every other argument. */
export function kindOfArgument(command: Command, name: string): IdKindName | undefined {
  const noun = command.parent?.name() ?? ""
  if (name === "id") return of_noun[noun]
  // A user of an application is no member of the account.
  if (name === "user" && command.parent?.parent?.name() === "orgs") return "user"
  // `domains add acme.test` names a domain that is not there yet.
  return noun === "domains" && command.name() === "add" ? undefined : of_argument[name]
}

export const kindOfFlag = (long: string | undefined): IdKindName | undefined =>
  long === undefined ? undefined : of_flag[long]

/** The last 8 characters of an id, or some more of them. A whole id has hyphens. */
const SHORT_ID = /^[0-9a-f]{8,12}$/

export const isShortId = (text: unknown): text is string =>
  typeof text === "string" && SHORT_ID.test(text)

const WHOLE_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Whether a name is an id of the server, and not one that people gave. */
export const isWholeId = (name: string): boolean => WHOLE_ID.test(name)

const MOST_IDS = 1000

/** By server and kind: the ids of the last table. */
type ListedIds = Record<string, Partial<Record<IdKindName, string[]>>>

const pathIn = (environment: Environment) => join(cacheFolder(environment), "listed.json")

/** Remembers which ids a table showed by their endings. A folder that takes no file is no reason to fail. */
export function cacheListedIds(
  environment: Environment,
  url: string,
  kind: IdKindName,
  ids: readonly string[],
): void {
  try {
    const path = pathIn(environment)
    const all = readAll(path)
    const here = { ...all[originOf(url)], [kind]: ids.slice(0, MOST_IDS) }
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${process.pid}.new`
    writeFileSync(draft, JSON.stringify({ ...all, [originOf(url)]: here }), { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    // The newest of the server are looked through then.
  }
}

/** The ids of the last table of a kind; none where nothing is remembered. */
export function cachedIds(environment: Environment, url: string, kind: IdKindName): string[] {
  try {
    return readAll(pathIn(environment))[originOf(url)]?.[kind] ?? []
  } catch {
    return []
  }
}

function readAll(path: string): ListedIds {
  try {
    return JSON.parse(readOwnFile(path) ?? "{}") as ListedIds
  } catch {
    return {}
  }
}
