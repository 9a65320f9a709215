import type { Static } from "@sinclair/typebox"
import { and, eq } from "drizzle-orm"
import { rowForUpdate } from "../store/rows"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { byDevice, type EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { countRegistration } from "./guesses"
import { requireMethod } from "./methods"
import type { SignInAnswer } from "./schemas"
import { completeSignIn, createUser, type UserClient } from "./sign-in"
import { users } from "./tables"

interface AnonymousWish {
  device_id: string
  metadata: Record<string, unknown>
  client: UserClient
}

/**
 * Signs in the user of a device, and makes one where the environment has none: of two requests at once one makes them.
 * Throws as `completeSignIn`, 403 `forbidden`, and 429 for too many new users of a network.
 */
export async function signInByDevice(
  parts: AuthParts,
  environment: AuthEnvironment,
  { device_id, metadata, client }: AnonymousWish,
): Promise<Static<typeof SignInAnswer>> {
  requireMethod(environment, "anonymous")
  if (!(await byDevice(parts.store.read, environment, device_id))) {
    const attempt = { identifier: `device ${device_id}`, ip: client.ip ?? "" }
    await countRegistration(parts, environment, attempt)
  }
  const wanted = { is_anonymous: true, anonymous_device_id: device_id, metadata }
  const proof = { environment, provider: "anonymous", amr: ["anonymous"], client }
  return parts.store.tx(async (tx) => {
    const known = await ownerOf(tx, environment, device_id)
    const made = known ? undefined : await createUser(tx, environment, wanted)
    const user = known ?? made ?? (await ownerOf(tx, environment, device_id))
    if (!user) throw new Error("another request made and removed the user")
    return completeSignIn(tx, parts, { ...proof, user, is_new: made !== undefined })
  })
}

/** Locked. The end of a conversion leaves the device without a user. */
async function ownerOf(
  tx: Tx,
  environment: AuthEnvironment,
  device_id: string,
): Promise<EndUserRow | undefined> {
  const found = await byDevice(tx, environment, device_id)
  const { project_id, anonymous_device_id } = users
  const theirs = and(eq(project_id, environment.project_id), eq(anonymous_device_id, device_id))
  return found && rowForUpdate(tx, users, found.id, theirs)
}
