import { Type as t } from "@sinclair/typebox"
import { fail } from "../../core/errors"
import { log } from "../../core/log"
import { NetError } from "../../core/net"
import { type AnyRoute, route } from "../../http/route"
import { enqueue } from "../../jobs/jobs"
import type { Store } from "../../store/store"
import type { ProviderPlace } from "../place"
import { providerFeedback } from "../receipts"
import { readNotification } from "../ses/notification"
import { SNS_EXAMPLE, SnsEnvelope, snsUrl } from "../sns/envelope"
import { ask, isRecent, isSigned, type SnsPlace } from "../sns/signature"
import { isOurTopic, type Source, sourceOf } from "./source"

const Received = t.Object({ received: t.Literal(true) }, { title: "Received" })

export interface CallbackParts {
  store: Store
  providers: ProviderPlace
}

export const callbackRoutes = ({ store, providers }: CallbackParts): AnyRoute[] => [
  route({
    method: "POST",
    path: "/v1/callbacks/email/{provider}/{config_token}",
    credentials: ["config_token"],
    prove: async (params) => {
      if (!(await sourceOf(store.read, providers, params))) refuse()
    },
    callers: ["none"],
    scope: "-",
    status: [200],
    summary: "Receive the notifications of a provider; their signature is checked",
    description:
      "Amazon SNS sends notifications of deliveries, bounces and complaints here. `callback_url` of the provider is this address.",
    body: SnsEnvelope,
    example: SNS_EXAMPLE,
    response: Received,
    errors: ["unauthorized", "provider_error"],
    any_type: true, // SNS says text/plain
    handle: async ({ params, body }) => {
      const { sns } = providers
      const source = await sourceOf(store.read, providers, params)
      if (!source || !isRecent(body) || !(await isTrue(body, sns))) return refuse()
      if (!(await isOurTopic(store, source, body.TopicArn))) return refuseTopic(source, body)
      await hear(store, source, body, sns)
      return { data: { received: true as const } }
    },
  }),
]

/** The log is where the operator finds why a second account's topic is not heard. */
function refuseTopic({ config_id }: Source, { TopicArn: topic }: SnsEnvelope): never {
  log.warn("a notification from the topic of another AWS account is refused", { config_id, topic })
  return refuse()
}

const refuse = () =>
  fail("unauthorized", "The address or the signature of the notification is wrong.")

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
  log.warn("SNS could not be reached", { error })
  return fail(
    "provider_error",
    "SNS could not be reached to check its notification. Send it again later.",
  )
}

async function hear(store: Store, source: Source, envelope: SnsEnvelope, sns: SnsPlace) {
  if (envelope.Type === "SubscriptionConfirmation") return confirm(envelope, sns)
  if (envelope.Type !== "Notification") return
  const told = readNotification(envelope.Message)
  if (!told || told.notices.length === 0) return
  const { config_id, project_id } = source
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
  log.info("a subscription to an SNS topic was confirmed", { topic: TopicArn })
}
