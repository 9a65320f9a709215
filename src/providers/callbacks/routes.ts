import { fail } from "../../core/errors"
import { log } from "../../core/log"
import { NetError } from "../../core/net"
import { type AnyRoute, route } from "../../http/route"
import { enqueue } from "../../store/queue"
import type { Store } from "../../store/store"
import { findByToken } from "../callback-token"
import type { ConfigRow } from "../configs"
import type { ProviderPlace } from "../place"
import { providerFeedback } from "../receipts"
import { readNotification } from "../ses/notification"
import { SnsEnvelope, snsUrl } from "../sns/envelope"
import { ask, isSigned, type SnsPlace } from "../sns/signature"

const TOKEN = /^[A-Za-z0-9_-]{43}$/

export interface CallbackParts {
  store: Store
  providers: ProviderPlace
}

export const callbackRoutes = ({ store, providers }: CallbackParts): AnyRoute[] => [
  route<SnsEnvelope, unknown>({
    method: "POST",
    path: "/v1/callbacks/email/{provider}/{config_token}",
    callers: ["none"],
    scope: "-",
    status: [200],
    summary: "What a provider tells of messages; its signature is checked",
    body: SnsEnvelope,
    any_type: true, // SNS says text/plain
    handle: async ({ params, body }) => {
      const { sns } = providers
      const { provider = "", config_token = "" } = params
      const config = TOKEN.test(config_token)
        ? await findByToken(store.read, provider, config_token)
        : undefined
      if (!config || !(await isTrue(body, sns))) return refuse()
      await hear(store, config, body, sns)
      return { data: { received: true } }
    },
  }),
]

const refuse = () => fail("unauthorized", "The address or the signature is not right.")

async function isTrue(envelope: SnsEnvelope, sns: SnsPlace): Promise<boolean> {
  try {
    return await isSigned(envelope, sns)
  } catch (error) {
    if (error instanceof NetError) return unreachable(error)
    throw error
  }
}

/** SNS tries again after an error, and it should: nothing was decided. */
function unreachable(error: NetError): never {
  log.warn("SNS could not be asked", { error })
  return fail("provider_error", "SNS could not be asked about its own message.")
}

async function hear(store: Store, config: ConfigRow, envelope: SnsEnvelope, sns: SnsPlace) {
  if (envelope.Type === "SubscriptionConfirmation") return confirm(envelope, sns)
  if (envelope.Type !== "Notification") return
  const told = readNotification(envelope.Message)
  if (!told || told.notices.length === 0) return
  const { id: config_id, project_id } = config
  const payload = { config_id, project_id, ...told }
  await store.tx((tx) => enqueue(tx, providerFeedback, { payload, project_id }))
}

async function confirm({ SubscribeURL, TopicArn }: SnsEnvelope, sns: SnsPlace) {
  const url = snsUrl(SubscribeURL)
  if (!url) return refuse()
  const answer = await ask(url, sns).catch(unreachable)
  if (answer.status !== 200) {
    fail("provider_error", `SNS did not confirm the subscription (${answer.status}).`)
  }
  log.info("a subscription was confirmed", { topic: TopicArn })
}
