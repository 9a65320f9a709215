import type { Context } from "./context"
import { exits, Failure } from "./errors"
import { quoted } from "./flags"

const PATIENCE_MILLISECONDS = 2000

/**
 * On a server without an owner nobody can sign in, and no role helps: whatever was refused, the next
 * step is to set it up. Any other failure stays as it is.
 */
export async function withSetup(failure: Failure, context: Context): Promise<Failure> {
  if (failure.exit !== exits.unauthorized) return failure
  const { url } = context.connection()
  try {
    const client = context.anonymous(url, PATIENCE_MILLISECONDS)
    const { data } = await client.call("GET /v1/setup")
    if (!data.required) return failure
  } catch {
    return failure // what cannot be asked changes nothing
  }
  const { exit, code, message, request_id, status } = failure
  const next = `belfry setup ${quoted(url)}`
  return new Failure(exit, code, message, {
    details: { ...failure.details, next },
    hint: `this server has no owner yet. Become its owner with \`${next}\``,
    ...(request_id && { request_id }),
    ...(status && { status }),
  })
}
