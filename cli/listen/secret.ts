import type { Client } from "../client"
import { exits, Failure } from "../failure"
import { openStream } from "../stream"

const PATIENCE_MILLISECONDS = 15_000

/** What deliveries to `belfry listen` are signed with: the same each time for the same caller. */
export async function forwardingSecret(client: Client): Promise<string> {
  let secret: string | undefined
  const stream = openStream(client, {
    forward: true,
    onFrame: (frame) => {
      if (frame.type !== "ready") return
      secret = frame.secret
      stream.close()
    },
  })
  const timer = setTimeout(() => stream.close(), PATIENCE_MILLISECONDS)
  await stream.ended
  clearTimeout(timer)
  if (secret !== undefined) return secret
  throw new Failure(exits.try_later, "timeout", `${client.url} told no secret in time.`)
}
