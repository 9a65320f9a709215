import { type TSchema, Type as t } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail, Problems } from "../core/errors"
import { log } from "../core/log"
import { type AnyRoute, route } from "../http/route"
import { check } from "../http/validate"
import { enqueue } from "../jobs/jobs"
import { forUpdate } from "../store/columns"
import type { Store } from "../store/store"
import { findByToken, providerFeedback, shownId } from "./callbacks"
import {
  channelOf,
  findDescriptor,
  PROVIDER_KINDS,
  type ProviderCallbacks,
  type ProviderDescriptor,
  type ProviderEnvironment,
  type ProviderKind,
} from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

const Received = t.Object({ received: t.Literal(true) }, { title: "Received" })

interface CallbackParts {
  store: Store
  providers: ProviderEnvironment
}

/** One route for each channel that has a provider with callbacks. */
export const callbackRoutes = (
  parts: CallbackParts,
  table: readonly ProviderDescriptor[],
): AnyRoute[] =>
  PROVIDER_KINDS.flatMap((kind) => {
    const all = table.flatMap(({ channel, callbacks }) =>
      callbacks && channel === channelOf(kind) ? [callbacks] : [],
    )
    const [first] = all
    return first ? [callbackRoute(parts, kind, [first, ...all.slice(1)])] : []
  })

type AnyCallbacks = ProviderCallbacks<unknown, unknown>

function callbackRoute(
  parts: CallbackParts,
  kind: ProviderKind,
  all: [AnyCallbacks, ...AnyCallbacks[]],
): AnyRoute {
  const schemas: TSchema[] = all.map(({ body }) => body)
  return route({
    method: "POST",
    path: `/v1/callbacks/${channelOf(kind)}/{provider}/{config_token}` as const,
    credentials: ["config_token"],
    prove: async (params) => {
      if (!(await findByToken(parts.store.read, kind, params))) refuse()
    },
    callers: ["none"],
    scope: "-",
    status: [200],
    summary: "Receive the notifications of a provider; their signature is checked",
    description: `${all.map(({ about }) => about).join(" ")} \`callback_url\` of the provider is this address.`,
    body: all.length === 1 ? all[0].body : t.Union(schemas),
    example: all[0].example,
    response: Received,
    errors: ["unauthorized", "provider_error"],
    any_type: true, // SNS says text/plain
    handle: async ({ params, body }) => {
      const config = (await findByToken(parts.store.read, kind, params)) ?? refuse()
      await receive(parts, config, body)
      return { data: { received: true as const } }
    },
  })
}

async function receive(parts: CallbackParts, config: ConfigRow, body: unknown): Promise<void> {
  const { store, providers } = parts
  const { table, contexts, network } = providers
  const callbacks = findDescriptor(table, config.kind, config.provider)?.callbacks
  if (!callbacks) return refuse()
  const problems = new Problems()
  check(callbacks.body, body, problems)
  problems.throwIfAny()
  const context = contexts[channelOf(config.kind)]
  const account = (await callbacks.verify(body, network, context)) ?? refuse()
  if ((await standingAccount(store, config, account)) !== account) {
    // The log is where the operator finds why a second account is not heard.
    const config_id = shownId(config)
    log.warn("a callback from another account of the provider is refused", { config_id, account })
    return refuse()
  }
  const report = await callbacks.read(body, network, context)
  if (!report || report.notices.length === 0) return
  const project_id = config.project_id === INSTANCE ? null : config.project_id
  const payload = { config_id: config.id, project_id, ...report }
  await store.tx((tx) => enqueue(tx, providerFeedback, { payload, project_id }))
}

const refuse = (): never =>
  fail("unauthorized", "The address or the signature of the notification is wrong.")

/**
 * The account whose callbacks count for a configuration: the first that spoke, since the credentials are
 * what they are. A provider may sign for all of its customers: another customer that learned the address could use it too.
 */
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
