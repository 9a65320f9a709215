import { and, eq } from "drizzle-orm"
import { closeLinks } from "../sign-in/links"
import * as passwords from "../sign-in/passwords"
import type { Reader, Tx } from "../store/store"
import { type EndUserRow, setUser } from "./end-users"
import type { AuthEnvironment } from "./environments"
import { userChallenges } from "./factors/tables"
import { linksAmong } from "./mailed-links"
import { userLinks, userPasswordHistory } from "./tables"

/** What a password of this environment needs. */
export const rulesOf = ({ settings }: AuthEnvironment): passwords.PasswordRules => ({
  ...settings.password_policy,
  refuses_common: true,
})

/** The hash of a next password. Throws 422 `weak_password`, `password_recently_used`. */
export const hashNext = (
  db: Reader,
  environment: AuthEnvironment,
  { id: user_id }: Pick<EndUserRow, "id">,
  password: string,
): Promise<string> =>
  passwords.hashNext(db, { table: userPasswordHistory, user_id }, password, rulesOf(environment))

/** Sets the password of a locked row. It will be refused as a next one, and links that set one work no more. */
export async function setPassword(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  password_hash: string,
): Promise<EndUserRow> {
  await rememberPassword(tx, environment, user, password_hash)
  const resets = linksAmong(environment, "password_reset", "password_reset_code")
  await closeLinks(tx, userLinks, and(eq(userLinks.user_id, user.id), resets))
  // An intruder may be about to answer with a second factor.
  await tx.delete(userChallenges).where(eq(userChallenges.user_id, user.id))
  return setUser(tx, user, { password_hash })
}

/** Notes a first password, so that it is refused as a later one. */
export const rememberPassword = (
  tx: Tx,
  environment: AuthEnvironment,
  { id: user_id, project_id }: EndUserRow,
  password_hash: string,
): Promise<void> => {
  const row = { user_id, project_id, password_hash }
  return passwords.remember(tx, userPasswordHistory, row, rulesOf(environment))
}
