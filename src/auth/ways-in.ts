import { and, eq } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Reader } from "../store/store"
import type { EndUserRow } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { userPasskeys } from "./factors/tables"
import { isOfGame } from "./social/identities"

/** How a user can get into their account now. */
export interface WayIn {
  kind: "password" | "email" | "phone" | "device" | "passkey" | "identity"
  /** Of the passkey or the identity. */
  id: string | null
}

/** Those that the environment allows, of what the user has. */
export async function waysIn(
  db: Reader,
  { settings: { methods } }: AuthEnvironment,
  user: EndUserRow,
): Promise<WayIn[]> {
  const by_mail = methods.magic_link || methods.email_otp
  const own: [WayIn["kind"], boolean][] = [
    ["password", methods.password && user.password_hash !== null],
    ["email", by_mail && user.email_verified],
    ["phone", methods.phone_otp && user.phone_verified],
    ["device", methods.anonymous && user.anonymous_device_id !== null],
  ]
  const passkeys = methods.passkey ? await passkeysOf(db, user) : []
  // No switch of the environment turns the platforms of games off, but for their own configuration.
  const identities = user.identities.filter((one) => methods.oauth || isOfGame(one))
  return [
    ...own.flatMap(([kind, is_open]) => (is_open ? [{ kind, id: null }] : [])),
    ...passkeys.map(({ id }) => ({ kind: "passkey" as const, id })),
    ...identities.map(({ id }) => ({ kind: "identity" as const, id })),
  ]
}

/**
 * Throws 409 `conflict` where the user could no more sign in without this passkey or identity. The caller holds the
 * user's row, so that two removals at once do not count on each other.
 */
export async function requireAnotherWayIn(
  db: Reader,
  environment: AuthEnvironment,
  user: EndUserRow,
  without: Pick<WayIn, "id">,
): Promise<void> {
  const others = (await waysIn(db, environment, user)).filter(({ id }) => id !== without.id)
  if (others.length > 0) return
  const hint = "Add a password, a verified address or another account first."
  fail("conflict", `This is the only way into the account. ${hint}`, { reason: "last_way_in" })
}

const passkeysOf = (db: Reader, { project_id, id }: EndUserRow) => {
  const own = and(eq(userPasskeys.project_id, project_id), eq(userPasskeys.user_id, id))
  return db.select({ id: userPasskeys.id }).from(userPasskeys).where(own)
}
