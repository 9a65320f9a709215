import type { Static } from "@sinclair/typebox"
import { fail, invalid } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { emailTrial, type TestParts } from "../emails/email-trial"
import { Deleted, deleted } from "../http/field-schemas"
import { keepAnswer } from "../http/idempotency"
import { type Cursors, listPage } from "../http/page"
import { type AnyRoute, type Call, consoleRow, projectRow, route } from "../http/route"
import { pushTrial } from "../push/push-trial"
import { textTrial } from "../sms/text-trial"
import type { ListWindow } from "../store/rows"
import type { Store } from "../store/store"
import { INSTANCE_NAME } from "./callbacks"
import { callbackRoutes } from "./callbacks-routes"
import * as configs from "./configs"
import {
  channelOf,
  findDescriptor,
  PROVIDER_KINDS,
  type ProviderDescriptor,
  type ProviderEnvironment,
  type ProviderKind,
} from "./provider"
import { routing } from "./routing"
import * as schemas from "./schemas"
import { type ConfigRow, INSTANCE } from "./tables"
import { tryProvider } from "./try-provider"
import { usableCredentials } from "./usable-credentials"

export interface ProviderParts extends TestParts {
  store: Store
  secrets: Secrets
  cursors: Cursors
  link_base: () => string
  providers: ProviderEnvironment
}

const ALL = "/v1/providers/{kind}/config"
const ONE = `${ALL}/{config_id}` as const

const choices = { kind: PROVIDER_KINDS }

/** The forms are those of every provider in the table. */
export const providerRoutes = (
  parts: ProviderParts,
  table: readonly ProviderDescriptor[],
): AnyRoute[] => [
  ...readingRoutes(parts, table),
  ...writingRoutes(parts, table),
  ...endingRoutes(parts),
  ...callbackRoutes(parts, table),
]

function readingRoutes(parts: ProviderParts, table: readonly ProviderDescriptor[]): AnyRoute[] {
  return [
    route({
      ...projectRow("GET", "/v1/providers", "providers:read"),
      summary: "List the configured providers",
      description:
        "Providers deliver messages to their recipients. The provider with the lowest `priority` is tried first. Secrets are masked.",
      query: schemas.configQuery,
      response: schemas.providerConfig(table),
      handle: (call) => list(parts, call),
    }),
    route({
      ...projectRow("GET", ONE, "providers:read"),
      choices,
      summary: "Show one configured provider, with masked secrets",
      description: "While `status` is `error`, `last_error` has the last refusal of the provider.",
      response: schemas.providerConfig(table),
      handle: async (call) => ({
        data:
          (await ownOf(parts, call)) ??
          toResponse(parts, await configs.find(parts.store.read, call.project_id, named(call))),
      }),
    }),
  ]
}

const toResponse = ({ secrets, link_base, providers: { table } }: ProviderParts, row: ConfigRow) =>
  configs.toResponse(row, { secrets, link_base: link_base(), table })

interface OfConfig {
  params: { kind: ProviderKind; config_id: string }
}

type OfProject = Pick<Call, "project_id"> & OfConfig

const isOwn = ({ params }: OfConfig) => params.config_id === INSTANCE_NAME

/** The instance's own, where that is what is asked for. */
const ownOf = (parts: ProviderParts, call: OfProject) =>
  isOwn(call) ? instanceTrouble(parts, call.params.kind, call.project_id) : undefined

/** The row of the instance's own provider. Throws 404 for a project that has providers of its own. */
async function requireInstance({ store }: ProviderParts, { params, project_id }: OfProject) {
  const [first] = await routing(store.read, params.kind, project_id)
  if (first?.project_id === INSTANCE) return first
  return fail("not_found", "There is no such provider configuration.")
}

/** The instance's own provider, while it has trouble and delivers for this project. */
async function instanceTrouble(
  { store, providers }: ProviderParts,
  kind: ProviderKind,
  project_id: string,
) {
  const [first] = await routing(store.read, kind, project_id)
  return configs.instanceResponse(first, providers.table)
}

type ListCall = Call<unknown, Static<typeof schemas.configQuery>>

/** The instance's own come first, while they have trouble and deliver for this project. */
async function list(parts: ProviderParts, call: ListCall) {
  const { project_id, query } = call
  const rows = configs.list(parts.store.read, project_id, query.kind)
  const withInstance = async (window: ListWindow) => {
    const found = await rows.list(window)
    const { offset, after, before, limit } = window
    const is_first = offset === 0 && after === undefined && before === undefined
    const has_room = is_first && found.rows.length < limit - 1
    const kinds = has_room
      ? PROVIDER_KINDS.filter((one) => [one, undefined].includes(query.kind))
      : []
    const asked = await Promise.all(kinds.map((one) => instanceTrouble(parts, one, project_id)))
    const own = asked.flatMap((one) => one ?? [])
    const total = async () => ((await rows.total()) ?? 0) + own.length
    return { ...found, rows: [...own, ...found.rows.map((row) => toResponse(parts, row))], total }
  }
  return listPage(call, parts.cursors, { find: rows.find, list: withInstance, total: rows.total })
}

function writingRoutes(parts: ProviderParts, table: readonly ProviderDescriptor[]): AnyRoute[] {
  return [
    route({
      ...consoleRow("POST", ALL, "role:project_admin"),
      choices,
      status: [201, 200],
      summary: "Configure a provider, or replace the one with the same provider and name",
      description:
        "201 means a new configuration. 200 means that one with the same provider and name was replaced. Credentials are stored encrypted.",
      body: schemas.newConfig(table),
      example: {
        provider: "smtp",
        name: "relay",
        credentials: {
          host: "smtp.example.com",
          port: 587,
          username: "belfry",
          password: "secret",
        },
        settings: { max_per_second: 14 },
      },
      response: schemas.providerConfig(table),
      errors: ["invalid_url"],
      idempotent: true,
      sealed: true, // the callback's address in the answer is a credential
      handle: (call) => set(parts, call),
    }),
    route({
      ...consoleRow("PATCH", ONE, "role:project_admin"),
      choices,
      summary: "Change a provider; credentials as a whole, settings one by one",
      description:
        "Absent fields do not change. New credentials replace all old ones; settings change one by one.",
      body: schemas.configPatch(table),
      example: { enabled: true, settings: { max_per_second: null } },
      response: schemas.providerConfig(table),
      errors: ["conflict", "invalid_url"],
      handle: (call) => patch(parts, call),
    }),
  ]
}

function endingRoutes(parts: ProviderParts): AnyRoute[] {
  const { store } = parts
  return [
    route({
      ...consoleRow("DELETE", ONE, "role:project_admin"),
      choices,
      summary: "Delete a provider and its credentials",
      description: "The next provider delivers waiting messages.",
      response: Deleted,
      handle: async (call) => {
        const config = named(call)
        await store.tx((tx) => configs.remove(tx, ownerOf(call), config, call.caller))
        return deleted(config.id)
      },
    }),
    route({
      ...consoleRow("POST", `${ONE}/test`, "role:project_admin"),
      choices,
      summary: "Test a provider: log in, and with `to` send a message through it",
      description:
        "502 has the reason of the provider's refusal. After a success, Belfry sends the messages that waited for this provider.",
      body: schemas.TestRequest,
      example: { to: "ann@example.com" },
      response: schemas.Tested,
      errors: [
        "invalid_email",
        "invalid_phone_number",
        "sender_not_configured",
        "domain_not_verified",
        "conflict",
        "device_not_found",
        "provider_error",
        "send_failed",
      ],
      handle: async (call) => {
        const { caller, project_id, body } = call
        const row = isOwn(call)
          ? await requireInstance(parts, call)
          : await configs.find(store.read, project_id, named(call))
        const trialOf = TRIALS[row.kind]
        const trial = await trialOf(parts, { caller, row, project_id }, body.to)
        return { data: await tryProvider(parts, row, trial) }
      },
    }),
  ]
}

/** How a provider of a kind is tried. */
const TRIALS = { email_provider: emailTrial, sms_provider: textTrial, push_provider: pushTrial }

async function set(
  parts: ProviderParts,
  call: Call<schemas.NewConfig, unknown, { kind: ProviderKind }>,
) {
  const { store, secrets } = parts
  const { body, claim, caller } = call
  const { kind } = call.params
  const { provider, name = provider, priority = 100 } = body
  const { table } = parts.providers
  const descriptor = requireProvider(parts.providers, kind, provider)
  const credentials = await usableCredentials(parts.providers, descriptor, body.credentials)
  const settings = schemas.readSettings(descriptor, body.settings ?? {}, table)
  const wanted = { kind, provider, name, priority, credentials, settings }
  const maker = { secrets, by: caller, table }
  return store.tx(async (tx) => {
    const { row, made } = await configs.set(tx, ownerOf(call), wanted, maker)
    const answer = { data: toResponse(parts, row), status: made ? 201 : 200 }
    await keepAnswer(tx, claim, answer)
    return answer
  })
}

async function patch(
  parts: ProviderParts,
  call: Call<schemas.ConfigPatch, unknown, OfConfig["params"]>,
) {
  const { store, secrets } = parts
  const { credentials: given, settings, ...plain } = call.body
  const row = await configs.find(store.read, call.project_id, named(call))
  const { table } = parts.providers
  const known = () => requireProvider(parts.providers, row.kind, row.provider)
  const change = {
    ...plain,
    ...(given && { credentials: await usableCredentials(parts.providers, known(), given) }),
    ...(settings && { settings: schemas.readSettings(known(), settings, table) }),
  }
  const maker = { secrets, by: call.caller, table }
  const after = await store.tx((tx) => configs.patch(tx, ownerOf(call), named(call), change, maker))
  return { data: toResponse(parts, after) }
}

/** Throws `validation_error`, with the providers of this kind that there are. */
function requireProvider(
  { table }: ProviderEnvironment,
  kind: ProviderKind,
  provider: string,
): ProviderDescriptor {
  const found = findDescriptor(table, kind, provider)
  if (found) return found
  const known = table.filter(({ channel }) => channel === channelOf(kind)).map(({ name }) => name)
  const text =
    known.length > 0
      ? `The value must be one of ${known.join(", ")}.`
      : `This version has no ${kind} yet.`
  throw invalid("provider", "invalid", text)
}

const named = ({ params }: OfConfig) => ({ kind: params.kind, id: params.config_id })

const ownerOf = ({ caller, project_id }: Pick<Call, "caller" | "project_id">) => ({
  account_id: caller.account_id,
  project_id,
})
