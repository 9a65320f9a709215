import { invalid } from "../core/errors"
import { newId } from "../core/ids"
import type { PushProvider } from "../devices/tables"
import { apnsPayload } from "./providers/apns"
import { fcmPayload } from "./providers/fcm"
import { webPushPayload } from "./providers/webpush"
import { type BuiltFrom, MOST_PAYLOAD_BYTES, type PushContent } from "./push-content"

/** What is built for a provider, as it is counted. */
const BUILDERS: Record<PushProvider, (built: BuiltFrom) => string> = {
  apns: apnsPayload,
  fcm: fcmPayload,
  webpush: webPushPayload,
}

/** As long as that of each message. */
const ANY_TOKEN = "x".repeat(22)

/** The size of a payload counts the longest badge: an inbox has fewer unread messages. */
const MOST_UNREAD = 99_999

interface PayloadSize {
  size: number
  most: number
  provider: PushProvider
}

/** The first provider that would refuse the content as too large; undefined where each takes it. */
export function tooLargeFor(
  content: PushContent,
  providers: Iterable<PushProvider>,
): PayloadSize | undefined {
  const badge = content.badge === "unread" ? MOST_UNREAD : (content.badge ?? null)
  const built = { push_id: newId(), ack_token: ANY_TOKEN, content, badge }
  for (const provider of new Set(providers)) {
    const size = Buffer.byteLength(BUILDERS[provider](built))
    if (size > MOST_PAYLOAD_BYTES) return { size, most: MOST_PAYLOAD_BYTES, provider }
  }
  return undefined
}

export const tooLargeText = ({ size, most, provider }: PayloadSize): string =>
  `The message takes ${size} bytes as it is built for ${provider}, at most ${most} are allowed.`

/** Throws 422, reason `payload_too_large`, with the size of what is built. */
export function requireSmall(content: PushContent, providers: Iterable<PushProvider>): void {
  const found = tooLargeFor(content, providers)
  if (!found) return
  throw invalid("data", "payload_too_large", tooLargeText(found), { ...found })
}
