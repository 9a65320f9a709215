import { Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { PUSH_PROVIDERS, type PushProvider } from "../devices/tables"
import { Deleted, deleted } from "../http/field-schemas"
import { type AnyRoute, type Call, projectRow, route } from "../http/route"
import { flag, rarely, text } from "../lib/record-fields"
import * as configs from "../providers/configs"
import type { OpenProviders } from "../providers/open-providers"
import {
  findDescriptor,
  type ProviderDescriptor,
  type ProviderEnvironment,
} from "../providers/provider"
import { providerConfig } from "../providers/schemas"
import type { ConfigRow } from "../providers/tables"
import { tryProvider } from "../providers/try-provider"
import { usableCredentials } from "../providers/usable-credentials"
import type { Store } from "../store/store"
import { pushTrial } from "./push-trial"
import { ensureWebPush, firstOf, publicKeyOf } from "./vapid"

export interface PushConfigParts {
  store: Store
  secrets: Secrets
  link_base: () => string
  providers: ProviderEnvironment
  open_providers: OpenProviders
}

const KIND = "push_provider"
const ALL = "/v1/push/config"
const ONE = `${ALL}/{provider}` as const

const choices = { provider: PUSH_PROVIDERS }

/** The providers of push under their names: the same store as `/v1/providers`, of which these show the first of each. */
export const pushConfigRoutes = (
  parts: PushConfigParts,
  table: readonly ProviderDescriptor[],
): AnyRoute[] => [...readRoutes(parts, table), ...changeRoutes(parts, table), trialRoute(parts)]

function readRoutes(parts: PushConfigParts, table: readonly ProviderDescriptor[]): AnyRoute[] {
  const one = rarely(providerConfig(table))
  return [
    route({
      ...projectRow("GET", ALL, "push:read"),
      summary: "Show the configured push providers, with masked secrets",
      description:
        "A project has at most one of each here. `GET /v1/providers?kind=push_provider` lists all, where there are more.",
      response: t.Object({ apns: one, fcm: one, webpush: one }, { title: "PushConfig" }),
      handle: async ({ project_id }) => {
        const shown = async (provider: PushProvider) => {
          const row = await firstOf(parts.store.read, project_id, provider)
          return row ? toResponse(parts, row) : null
        }
        const [apns, fcm, webpush] = await Promise.all([
          shown("apns"),
          shown("fcm"),
          shown("webpush"),
        ])
        return { data: { apns, fcm, webpush } }
      },
    }),
    route({
      ...projectRow("GET", "/v1/push/webpush/public-key", "-"),
      callers: ["app", "key", "console", "user", "subscriber"],
      any_origin: true,
      any_environment: true,
      summary: "Show the public key that pages subscribe to Web Push with",
      description: "At the first call, Belfry makes the key pair of the project.",
      response: t.Object({ public_key: text(EXAMPLE_KEY) }, { title: "WebPushKey" }),
      handle: async (call) => {
        const row = await ensureWebPush(parts.store, parts.secrets, ownerOf(call))
        return { data: { public_key: publicKeyOf(parts.secrets, row) } }
      },
    }),
  ]
}

const EXAMPLE_KEY =
  "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"

function changeRoutes(parts: PushConfigParts, table: readonly ProviderDescriptor[]): AnyRoute[] {
  const { store } = parts
  return [
    route({
      ...projectRow("PUT", ONE, "push:write"),
      console_scope: "role:project_admin",
      choices,
      summary: "Configure a push provider, or replace its credentials",
      description:
        "The body is the credentials. Web Push without keys keeps its key pair, or gets a new one. The admins of the project get a mail about the change.",
      body: credentialsOf(table),
      example: { subject: "mailto:ops@example.com" },
      response: providerConfig(table),
      errors: ["invalid_url"],
      handle: (call) => put(parts, call),
    }),
    route({
      ...projectRow("DELETE", ONE, "push:write"),
      console_scope: "role:project_admin",
      choices,
      summary: "Delete the configuration of a push provider",
      description:
        "Devices that subscribed with the key of Web Push get nothing any more. They must subscribe again, with a new key.",
      response: Deleted,
      handle: async (call) => {
        const { id } = await shownRow(parts, call)
        await store.tx((tx) => configs.remove(tx, ownerOf(call), { kind: KIND, id }, call.caller))
        return deleted(id)
      },
    }),
  ]
}

/** The fields of all of them, because the path says which ones count. Their values are read by that provider. */
const credentialsOf = (table: readonly ProviderDescriptor[]) =>
  t.Object(
    Object.fromEntries(
      table
        .filter(({ channel }) => channel === "push")
        .flatMap(({ name, credentials }) =>
          Object.entries(credentials).map(([field, { about }]) => {
            const description = `For ${name}: ${about}.`
            return [field, t.Optional(t.Unknown({ description }))] as const
          }),
        ),
    ),
  )

const trialRoute = (parts: PushConfigParts): AnyRoute =>
  route({
    ...projectRow("POST", `${ONE}/test`, "push:write"),
    choices,
    summary: "Test a push provider: log in, and with `device_id` send a message to that device",
    description: "502 has the reason of the provider's refusal.",
    body: t.Object({ device_id: t.Optional(t.String({ maxLength: 255 })) }),
    example: {},
    response: t.Object(
      { ok: flag(true), detail: text("The key pair signs.") },
      { title: "PushProviderTest" },
    ),
    errors: ["conflict", "device_not_found", "provider_error"],
    handle: async (call) => {
      const { caller, project_id, body } = call
      if (call.params.provider === "webpush")
        await ensureWebPush(parts.store, parts.secrets, ownerOf(call))
      const row = await shownRow(parts, call)
      const trial = await pushTrial(parts, { caller, row, project_id }, body.device_id)
      const { ok, detail } = await tryProvider(parts, row, trial)
      return { data: { ok, detail } }
    },
  })

type OfProvider<Body = unknown> = Call<Body, unknown, { provider: PushProvider }>

/** The one that is shown takes the credentials, whichever name it has. */
async function put(parts: PushConfigParts, call: OfProvider<Record<string, unknown>>) {
  const { store, secrets, providers } = parts
  const { project_id, body, caller } = call
  const { provider } = call.params
  const descriptor = findDescriptor(providers.table, KIND, provider)
  if (!descriptor) return fail("not_found", `This instance has no provider ${provider}.`)
  const credentials = await usableCredentials(providers, descriptor, body, "")
  const before = await firstOf(store.read, project_id, provider)
  const maker = { secrets, table: providers.table, by: caller }
  const row = await store.tx(async (tx) => {
    const owner = ownerOf(call)
    if (before) {
      const change = { credentials, enabled: true }
      return configs.patch(tx, owner, { kind: KIND, id: before.id }, change, maker)
    }
    const plain = { kind: KIND, provider, name: provider, priority: 100, settings: {} } as const
    return (await configs.set(tx, owner, { ...plain, credentials }, maker)).row
  })
  return { data: toResponse(parts, row) }
}

/** Throws 404 where the provider is not configured. */
async function shownRow({ store }: PushConfigParts, { project_id, params }: OfProvider) {
  const row = await firstOf(store.read, project_id, params.provider)
  return row ?? fail("not_found", `The project has no configuration of ${params.provider}.`)
}

const toResponse = (
  { secrets, link_base, providers: { table } }: PushConfigParts,
  row: ConfigRow,
) => configs.toResponse(row, { secrets, link_base: link_base(), table })

const ownerOf = ({ caller, project_id }: Pick<Call, "caller" | "project_id">) => ({
  account_id: caller.account_id,
  project_id,
})
