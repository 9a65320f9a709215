import { Type as t } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { type AnyRoute, route } from "../http/route"
import { enqueue } from "../jobs/jobs"
import { forUpdate } from "../store/columns"
import type { Store } from "../store/store"
import { callbackUrlOf, findByToken, providerFeedback, shownId } from "./callbacks"
import { openCredentials } from "./credentials"
import {
  type CallbackRequest,
  channelOf,
  findDescriptor,
  type OwnProvider,
  PROVIDER_KINDS,
  type ProviderCallbacks,
  type ProviderDescriptor,
  type ProviderEnvironment,
  type ProviderKind,
} from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

const Received = t.Object({ received: t.Literal(true) }, { title: "Received" })

const MOST_BYTES = 262_144

interface CallbackParts {
  store: Store
  secrets: Secrets
  link_base: () => string
  providers: ProviderEnvironment
}

type AnyCallbacks = ProviderCallbacks<object, unknown>

/** One route for each channel that has a provider with callbacks, and each method that one of them uses. */
export const callbackRoutes = (
  parts: CallbackParts,
  table: readonly ProviderDescriptor[],
): AnyRoute[] =>
  PROVIDER_KINDS.flatMap((kind) =>
    (["POST", "GET"] as const).flatMap((method) => {
      const all = table.flatMap(({ channel, callbacks }) =>
        callbacks?.methods.includes(method) && channel === channelOf(kind) ? [callbacks] : [],
      )
      const [first] = all
      return first ? [callbackRoute(parts, kind, method, [first, ...all.slice(1)])] : []
    }),
  )

function callbackRoute(
  parts: CallbackParts,
  kind: ProviderKind,
  method: CallbackRequest["method"],
  all: [AnyCallbacks, ...AnyCallbacks[]],
): AnyRoute {
  const how = method === "GET" ? ", by GET" : ""
  return route({
    method,
    path: `/v1/callbacks/${channelOf(kind)}/{provider}/{config_token}` as const,
    credentials: ["config_token"],
    prove: async (params) => {
      if (!(await findByToken(parts.store.read, kind, params))) refuse()
    },
    callers: ["none"],
    scope: "-",
    status: [200],
    summary: `Receive the notifications of a provider of ${channelOf(kind)}${how}; their signature is checked`,
    description: `${all.map(({ about }) => about).join(" ")} \`callback_url\` of the provider is this address.`,
    ...(method === "POST" && {
      body: t.Record(t.String(), t.Unknown()),
      example: all[0].example,
      readRaw: (body: unknown) => body as Buffer,
    }),
    takes_bytes: true,
    limit: MOST_BYTES,
    response: Received,
    also_produces: [...new Set(all.flatMap(({ answer }) => answer?.content_type ?? []))],
    errors: ["unauthorized", "provider_error"],
    handle: async ({ params, request, body }) => {
      const config = (await findByToken(parts.store.read, kind, params)) ?? refuse()
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0)
      const { content_type, body: wanted } =
        (await receive(parts, config, { method, request, bytes })) ?? {}
      const ours = { data: { received: true as const } }
      if (content_type === undefined) return ours
      // The provider's own form is no answer of ours, so no schema describes it.
      return new Response(wanted, {
        headers: { "content-type": content_type },
      }) as unknown as typeof ours
    },
  })
}

interface Arrived {
  method: CallbackRequest["method"]
  request: Request
  bytes: Buffer
}

async function receive(parts: CallbackParts, config: ConfigRow, arrived: Arrived) {
  const { store, secrets, providers } = parts
  const { table, contexts, network, own } = providers
  const { kind, project_id: owner } = config
  const is_own = owner === INSTANCE
  const ours = is_own ? own[channelOf(kind)] : undefined
  const descriptor = is_own ? ours?.descriptor : findDescriptor(table, kind, config.provider)
  const callbacks = descriptor?.callbacks
  if (!callbacks?.methods.includes(arrived.method)) return refuse()
  const access = accessOf(secrets, config, ours)
  const base = callbackUrlOf(secrets, config, parts.link_base()) ?? ""
  const call = {
    request: asCalled(base, arrived),
    access,
    context: contexts[channelOf(kind)],
    network,
  }
  const proof = (await callbacks.verify(call)) ?? refuse()
  if (proof !== true) await requireStandingAccount(store, config, proof)
  const report = await callbacks.read(call)
  if (report && (report.notices.length > 0 || report.received)) {
    const project_id = is_own ? null : owner
    const payload = { config_id: config.id, provider: config.provider, project_id, ...report }
    await store.tx((tx) => enqueue(tx, providerFeedback, { payload, project_id }))
  }
  return callbacks.challenge?.(call.request) ?? callbacks.answer
}

const accessOf = (secrets: Secrets, config: ConfigRow, own: OwnProvider | undefined): object =>
  own ? own.credentials : openCredentials(secrets, config)

/** The request under the address that the provider was given, wherever a proxy took it. */
function asCalled(base: string, { method, request, bytes }: Arrived): CallbackRequest {
  const { search, searchParams } = new URL(request.url)
  const { headers } = request
  const fields = { ...Object.fromEntries(searchParams), ...fieldsOf(headers, bytes) }
  return { method, url: `${base}${search}`, headers, body: bytes, fields }
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\b/i

/** What does not say that it is a form is JSON: some services name no type, or text/plain. */
function fieldsOf(headers: Headers, bytes: Buffer): Record<string, unknown> {
  const text = bytes.toString("utf8")
  if (FORM_TYPE.test(headers.get("content-type") ?? "")) {
    return Object.fromEntries(new URLSearchParams(text))
  }
  if (text === "") return {}
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return fail("invalid_json", "The notification cannot be read as JSON.")
  }
}

const refuse = (): never =>
  fail("unauthorized", "The address or the signature of the notification is wrong.")

/**
 * The account whose callbacks count for a configuration is the first that spoke, since the credentials are
 * what they are. A provider may sign for all of its customers: another customer that learned the address could use it too.
 */
async function requireStandingAccount(store: Store, config: ConfigRow, account: string) {
  if (config.settings.callback_account === account) return
  const standing = await standingAccount(store, config, account)
  if (standing === account) return
  // The log is where the operator finds why a second account is not heard.
  const config_id = shownId(config)
  log.warn("a callback from another account of the provider is refused", { config_id, account })
  refuse()
}

function standingAccount(store: Store, { id, project_id }: ConfigRow, account: string) {
  return store.tx(async (tx) => {
    const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
    const [row] = await forUpdate(tx.select().from(providerConfigs).where(ours))
    if (!row || row.settings.callback_account !== undefined) return row?.settings.callback_account
    const settings = { ...row.settings, callback_account: account }
    await tx.update(providerConfigs).set({ settings }).where(ours)
    return account
  })
}
