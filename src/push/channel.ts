import type { Secrets } from "../core/secrets"
import { isoFrom, millis, millisFrom } from "../core/time"
import type { DeviceFates } from "../devices/device-fates"
import { deviceNow } from "../devices/find-device"
import type { DeviceRow } from "../devices/tables"
import { unreadIn } from "../inbox/ledger"
import { DeferredError } from "../jobs/work-item"
import { Semaphore } from "../lib/semaphore"
import type { Channel } from "../messages/channel"
import { asksAudience } from "../messages/send-fields"
import { type Message, wantedSince } from "../messages/status-changes"
import { audienceObstacle } from "../messages/suppressed"
import type { PushEnvelope } from "../messages/tables"
import { NO_REPLY, type Outcome, type RecipientOutcome } from "../providers/provider"
import { gathered } from "../store/batcher"
import type { Reader, Store } from "../store/store"
import { heirsIncluded } from "../subscribers/audience"
import { ackToken } from "./ack-token"
import { type PushSender, pushOutcome, pushSchedule } from "./providers/provider"
import { LONGEST_TTL_SECONDS, type PushContent } from "./push-content"

export interface PushChannelParts {
  store: Store
  secrets: Pick<Secrets, "mac">
  /** Those that projects configured. */
  provider: PushSender
  fates: DeviceFates
  /** Messages that are sent at the same time. */
  concurrency: number
}

/** What is wanted at once may wait so long for its turn. */
const LEAST_SECONDS = 60

/** Hands a push message to the provider of its device, once for each attempt. */
export function pushChannel({ concurrency, ...parts }: PushChannelParts): Channel {
  const { provider } = parts
  const permits = new Semaphore(concurrency)
  return {
    async prepare(message, content) {
      const { id, project_id, stream, address, sandbox } = message
      const only = { service: envelopeOf(message).provider }
      // Nobody is asked for what is too late, so a provider that is paused or gone keeps none of it.
      if (!sandbox && secondsLeft(message) >= 0) {
        const admitted = provider.admit?.(id, [address], stream === "auth", project_id, only)
        await admitted?.catch(atMostUntilOver(message))
      }
      return { content }
    },
    permit: () => permits.acquire(),
    release: (message_id) => provider.dismiss?.(message_id),
    async deliver(message, content) {
      const excluded = asksAudience(message)
        ? await audienceObstacle(parts.store.read, message)
        : undefined
      const [stopped] = excluded ?? []
      if (stopped) return alone(stopped)
      return attempt(parts, message, content as PushContent)
    },
  }
}

async function attempt(
  { store, secrets, provider, fates }: Omit<PushChannelParts, "concurrency">,
  message: Message,
  content: PushContent,
): Promise<Outcome> {
  const { id, project_id, address, sandbox } = message
  const { device: device_id, provider: service } = envelopeOf(message)
  const ttl_seconds = secondsLeft(message)
  if (ttl_seconds < 0)
    return alone({ ...nothing(address), status: "expired", code: "expired", text: OVER })
  const device = await deviceNow(store.read, device_id)
  if (!device) return alone({ ...nothing(address), ...UNREGISTERED, text: GONE })
  const is_moved = await belongsToAnother(store.read, message, device)
  const obstacle = is_moved ? MOVED : obstacleOf(device, service)
  if (obstacle) return alone({ ...nothing(address), ...UNREGISTERED, text: obstacle })
  const to = [address]
  const answer = sandbox
    ? pushOutcome(service, { to }, { meaning: "sent", said: SANDBOX })
    : await provider
        .send({
          ...{ message_id: id, project_id, to, service, device, content, ttl_seconds },
          push_id: id,
          ack_token: ackToken(secrets, id),
          badge: await badgeFor(store.read, message, content),
        })
        .catch(atMostUntilOver(message))
  if (answer.gone) await fates.gone(device, answer.code ?? "", answer.gone.since)
  if (answer.status === "failed") fates.failed(device)
  else if (answer.status === "sent" && !sandbox) fates.succeeded(device)
  return { ...answer, ...timesOf(message, answer) }
}

const OVER = "The time to live was over before a provider took the message."
const GONE = "The device was removed."
const DISABLED = "The device is disabled."
const EXPIRED = "The device is expired: its provider does not know it any more."
const MOVED = "The device belongs to another person by now, or to nobody."
const CHANGED = "The device has another provider by now."
const SANDBOX = "The project is in the sandbox, so nothing was sent."
const UNREGISTERED = { code: "unregistered", reason: "unregistered" } as const

function obstacleOf(device: DeviceRow, service: string): string | undefined {
  if (device.status !== "active") return device.status === "disabled" ? DISABLED : EXPIRED
  return device.provider === service ? undefined : CHANGED
}

/** Nobody reads what was meant for the person before. After a merge the device belongs to the heir. */
async function belongsToAnother(db: Reader, message: Message, { user_id }: DeviceRow) {
  const { project_id, subscriber_id } = message
  if (message.user_id === null || message.user_id === user_id) return false
  if (subscriber_id === null) return true
  const heirs = await heirsIncluded(db, project_id, [subscriber_id])
  return heirs.get(subscriber_id)?.external_id !== user_id
}

const envelopeOf = ({ id, envelope }: Message): PushEnvelope => {
  if (envelope?.push) return envelope.push
  throw new Error(`the push message ${id} names no device`)
}

/** Of its time to live; below zero where it is over. */
function secondsLeft(message: Message): number {
  const { ttl_seconds = LONGEST_TTL_SECONDS } = envelopeOf(message)
  const age = (millis() - millisFrom(wantedSince(message))) / 1000
  if (message.attempt <= 1 && age <= LEAST_SECONDS) return Math.max(0, Math.ceil(ttl_seconds - age))
  return ttl_seconds > age ? Math.ceil(ttl_seconds - age) : -1
}

/** A message that waits for its provider waits no longer than its time to live. */
const atMostUntilOver =
  (message: Message) =>
  (error: unknown): never => {
    if (!(error instanceof DeferredError) || error.by === undefined) throw error
    throw new DeferredError(error.message, (overAt(message) - millis()) / 1000, error.by)
  }

/** In milliseconds. At first it has a while, however short its time to live is (`secondsLeft`). */
function overAt(message: Message): number {
  const { ttl_seconds = LONGEST_TTL_SECONDS } = envelopeOf(message)
  return millisFrom(wantedSince(message)) + (Math.max(ttl_seconds, LEAST_SECONDS) + 1) * 1000
}

/** When it is tried again, and when it expires unheard. */
function timesOf(message: Message, { schedule, status, login_refused }: Outcome): Partial<Outcome> {
  const { ttl_seconds } = envelopeOf(message)
  if (login_refused) return { login_refused: { ...login_refused, until: isoFrom(overAt(message)) } }
  if (status === "sent" && ttl_seconds !== undefined) {
    const end = millisFrom(wantedSince(message)) + ttl_seconds * 1000
    return { unheard_at: isoFrom(Math.max(end, millis() + LEAST_SECONDS * 1000)) }
  }
  const most = ttl_seconds ?? LONGEST_TTL_SECONDS
  return {
    // No later than the end of its life, when it expires.
    schedule(attempt, age) {
      const seconds = schedule(attempt, age)
      return seconds === undefined ? undefined : Math.min(seconds, Math.max(0, most - age) + 1)
    },
  }
}

async function badgeFor(db: Reader, message: Message, { badge }: PushContent) {
  if (badge !== "unread") return badge ?? null
  return message.subscriber_id === null ? null : unreadOf(db, message.subscriber_id)
}

const unreadOf = gathered<string, number>(async (db, ids) => {
  const counts = await unreadIn(db, ids)
  return ids.map((id) => counts.get(id) ?? 0)
})

const nothing = (address: string) =>
  ({ address, status: "failed", reason: null, bounce_subtype: null, reply: NO_REPLY }) as const

/** The outcome of a message that no provider was asked for. */
const alone = (one: RecipientOutcome): Outcome => ({
  ...one,
  ...{ provider: null, schedule: pushSchedule, others: [], transcript: [] },
})
