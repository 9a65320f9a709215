import { Type as t } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Secrets } from "../core/secrets"
import { type AnyRoute, route } from "../http/route"
import { enqueue } from "../jobs/jobs"
import { forUpdate } from "../store/columns"
import type { Store } from "../store/store"
import { type ArrivedCallback, callbackRequest } from "./callback-request"
import { callbackUrlOf, findByToken, providerFeedback, shownId } from "./callbacks"
import type { OpenProviders } from "./open-providers"
import {
  type CallbackRequest,
  channelOf,
  PROVIDER_KINDS,
  type ProviderCallbacks,
  type ProviderDescriptor,
  type ProviderKind,
} from "./provider"
import { type ConfigRow, INSTANCE, providerConfigs } from "./tables"

const Received = t.Object({ received: t.Literal(true) }, { title: "Received" })

/** SNS sends at most as much, and every other provider far less. */
const MOST_BYTES = 262_144

interface CallbackParts {
  store: Store
  secrets: Secrets
  open_providers: OpenProviders
  link_base: () => string
}

/** For each channel one route for each method that a provider of it calls by. */
export const callbackRoutes = (
  parts: CallbackParts,
  table: readonly ProviderDescriptor[],
): AnyRoute[] =>
  PROVIDER_KINDS.flatMap((kind) =>
    (["POST", "GET"] as const).flatMap((method) => {
      const all = table.flatMap(({ channel, callbacks }) =>
        channel === channelOf(kind) && callbacks?.methods.includes(method) ? [callbacks] : [],
      )
      const [first] = all
      return first ? [callbackRoute(parts, { kind, method }, [first, ...all.slice(1)])] : []
    }),
  )

type AnyCallbacks = ProviderCallbacks<object, unknown>

function callbackRoute(
  parts: CallbackParts,
  { kind, method }: { kind: ProviderKind; method: CallbackRequest["method"] },
  all: [AnyCallbacks, ...AnyCallbacks[]],
): AnyRoute {
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
    limit: MOST_BYTES,
    summary: `Receive the notifications of a provider of ${CARRIED[channelOf(kind)]}${HOW[method]}; their signature is checked`,
    description: `${all.map(({ about }) => about).join(" ")} \`callback_url\` of the provider is this address.`,
    ...(method === "POST" && { body: AsSent, example: all[0].example }),
    response: Received,
    also_produces: [...new Set(all.flatMap(({ answer }) => answer?.content_type ?? []))],
    errors: ["unauthorized", "provider_error"],
    takes_bytes: true,
    readRaw: (body) => (body instanceof Uint8Array ? body : new Uint8Array()),
    handle: async ({ params, request, body }) => {
      const config = (await findByToken(parts.store.read, kind, params)) ?? refuse()
      const answer = await receive(parts, config, { method, request, body })
      // What a provider wants to read in the place of our answer has no schema.
      return (answer ?? { data: { received: true } }) as { data: { received: true } }
    },
  })
}

const HOW = { POST: "", GET: ", by GET" }
const CARRIED = { email: "email", sms: "texts", push: "push messages" }

const AsSent = t.Record(t.String(), t.Unknown(), {
  description: "As the provider sends it: JSON, or a form.",
})

/** Writes nothing before the provider's word is proved. Resolves with the answer that it wants, where that is its own. */
async function receive(
  { store, secrets, open_providers, link_base }: CallbackParts,
  config: ConfigRow,
  arrived: ArrivedCallback,
): Promise<Response | undefined> {
  const { contexts, network } = open_providers.environment
  const { descriptor, credentials: access = {} } = open_providers.find(config) ?? {}
  const callbacks = descriptor?.callbacks
  if (!callbacks?.methods.includes(arrived.method)) return refuse()
  const context = contexts[channelOf(config.kind)]
  const url = callbackUrlOf(secrets, config, link_base()) ?? ""
  const call = { request: callbackRequest(url, arrived), access, context, network }
  const account = (await callbacks.verify(call)) ?? refuse()
  if (account !== true && (await standingAccount(store, config, account)) !== account) {
    // The log is where the operator finds why a second account is not heard.
    const config_id = shownId(config)
    log.warn("a callback from another account of the provider is refused", { config_id, account })
    return refuse()
  }
  // A HEAD only asks whether the address is there.
  const report = arrived.request.method === "HEAD" ? undefined : await callbacks.read(call)
  if (report && (report.notices.length > 0 || report.received)) {
    const { provider } = config
    const project_id = config.project_id === INSTANCE ? null : config.project_id
    const payload = { config_id: config.id, provider, project_id, ...report }
    await store.tx((tx) => enqueue(tx, providerFeedback, { payload, project_id }))
  }
  const answer = callbacks.challenge?.(call.request) ?? callbacks.answer
  return answer && new Response(answer.body, { headers: { "content-type": answer.content_type } })
}

const refuse = (): never =>
  fail("unauthorized", "The address or the signature of the notification is wrong.")

/**
 * The account whose callbacks count for a configuration: the first that spoke, since the credentials are
 * what they are. A provider may sign for all of its customers: another customer that learned the address could use it too.
 */
async function standingAccount(
  store: Store,
  { id, project_id, settings: known }: ConfigRow,
  account: string,
) {
  if (known.callback_account !== undefined) return known.callback_account
  return store.tx(async (tx) => {
    const ours = and(eq(providerConfigs.id, id), eq(providerConfigs.project_id, project_id))
    const [row] = await forUpdate(tx.select().from(providerConfigs).where(ours))
    if (!row || row.settings.callback_account !== undefined) return row?.settings.callback_account
    const settings = { ...row.settings, callback_account: account }
    await tx.update(providerConfigs).set({ settings }).where(ours)
    return account
  })
}
