import { invalid } from "../core/errors"
import { newId } from "../core/ids"
import type { Secrets } from "../core/secrets"
import { findDevice } from "../devices/find-device"
import { checked, sent, type Trial, type TrialSubject } from "../providers/try-provider"
import type { Store } from "../store/store"
import { ackToken } from "./ack-token"
import type { OutgoingPush } from "./providers/provider"

interface PushTrialParts {
  store: Store
  secrets: Secrets
}

const SECONDS = 300

/** Logs in at a provider of push or, with `to`, sends a push message to that device through it. Throws `device_not_found`. */
export async function pushTrial(
  { store, secrets }: PushTrialParts,
  { row, project_id }: TrialSubject,
  to: string | undefined,
): Promise<Trial> {
  if (to === undefined) return checked
  const device = await findDevice(store.read, project_id, to)
  const { provider } = device
  if (provider !== row.provider) {
    throw invalid("device_id", "invalid", `The device gets its messages from ${provider}.`)
  }
  const id = newId()
  const body = `This message is a test of ${row.provider} (${row.name}). It arrived, so the provider works.`
  const message: OutgoingPush = {
    ...{ message_id: id, push_id: id, ack_token: ackToken(secrets, id), project_id },
    ...{ to: [device.device_id], device, ttl_seconds: SECONDS, badge: null },
    content: { title: "Belfry", body, priority: "high" },
  }
  return async (open) => (await sent(open, message, "a push message")).words
}
