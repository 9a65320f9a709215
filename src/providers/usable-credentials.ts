import { allowedAddress, NetError } from "../core/destination"
import { invalid, Problems } from "../core/errors"
import { readCredentials } from "./credentials"
import type { Credentials, ProviderDescriptor, ProviderEnvironment } from "./provider"

/**
 * Complete credentials of a provider that is built here, and that leads nowhere it should not. Throws
 * `validation_error`; `path` is where the fields are in the body.
 */
export async function usableCredentials(
  providers: ProviderEnvironment,
  descriptor: ProviderDescriptor,
  given: unknown,
  path = "credentials.",
): Promise<Credentials> {
  const problems = new Problems()
  const obstacle = descriptor.obstacle?.(providers.contexts[descriptor.channel])
  if (obstacle !== undefined) problems.add("provider", "invalid", obstacle)
  const found = new Problems()
  const credentials = readCredentials(descriptor, given, found)
  for (const one of found.list)
    problems.add(one.path.replace("credentials.", path), one.code, one.message)
  problems.throwIfAny()
  const destination = descriptor.destination?.(credentials)
  if (destination) await refuseInward(destination, providers.allow_private)
  return credentials
}

/** A name that cannot be resolved now is checked when it is connected to, as all are. */
async function refuseInward(
  { field, host, port }: { field: string; host: string; port: number },
  allow_private: readonly string[],
) {
  try {
    await allowedAddress(host, port, { allow_private })
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    if (error.kind !== "blocked_address") return
    throw invalid(
      `credentials.${field}`,
      "invalid_url",
      "The host has a private address, which is not allowed. An operator can allow it in providers.allow_private.",
    )
  }
}
