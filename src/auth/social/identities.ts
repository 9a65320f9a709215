import { and, eq } from "drizzle-orm"
import { newId } from "../../core/ids"
import { now } from "../../core/time"
import { rowForUpdate } from "../../store/rows"
import type { Tx } from "../../store/store"
import { type EndUserRow, holdIdentifiers, setUser } from "../end-users"
import type { AuthEnvironment } from "../environments"
import { type UserIdentity, users } from "../tables"
import { GAMING_PROVIDERS, userIdentities } from "./tables"

/** An account elsewhere, as its service names it. */
export interface ForeignAccount {
  provider: string
  provider_user_id: string
}

/** A locked user that comes in by an account. */
export interface EnteredUser {
  user: EndUserRow
  is_new: boolean
}

/** The user of an account, or the one that `make` makes: of two first sign-ins at once the second one finds what the first one made. */
export async function ownerOrNew(
  tx: Tx,
  environment: AuthEnvironment,
  account: ForeignAccount,
  make: () => Promise<EnteredUser>,
): Promise<EnteredUser> {
  const known = await ownerOf(tx, environment, account)
  if (known) return { user: known, is_new: false }
  await holdIdentifiers(tx, environment)
  const other = await ownerOf(tx, environment, account)
  return other ? { user: other, is_new: false } : make()
}

/** Locked. They may have lost the account while this waited for their row: their own word counts. */
async function ownerOf(
  tx: Tx,
  { id, project_id }: AuthEnvironment,
  { provider, provider_user_id }: ForeignAccount,
): Promise<EndUserRow | undefined> {
  const account = and(
    eq(userIdentities.project_id, project_id),
    eq(userIdentities.environment_id, id),
    eq(userIdentities.provider, provider),
    eq(userIdentities.provider_user_id, provider_user_id),
  )
  const { user_id } = userIdentities
  const [row] = await tx.select({ user_id }).from(userIdentities).where(account)
  const user = row && (await rowForUpdate(tx, users, row.user_id, eq(users.project_id, project_id)))
  const isIt = (own: UserIdentity) =>
    own.provider === provider && own.provider_user_id === provider_user_id
  return user?.identities.some(isIt) ? user : undefined
}

/**
 * Gives a user, whose row the caller holds, an account to sign in with. Undefined where another user has the account,
 * and where this one has an account of the same service: a user has one of each.
 */
export async function addIdentity(
  tx: Tx,
  environment: AuthEnvironment,
  user: EndUserRow,
  { provider, provider_user_id, email }: ForeignAccount & { email: string | null },
): Promise<EndUserRow | undefined> {
  if (user.identities.some((own) => own.provider === provider)) return undefined
  const { id: environment_id, project_id } = environment
  const account = { provider, provider_user_id }
  const row = { id: newId(), project_id, environment_id, user_id: user.id, ...account }
  const adding = tx.insert(userIdentities).values(row).onConflictDoNothing()
  if ((await adding.returning()).length === 0) return undefined
  const identity = { id: row.id, ...account, email, linked_at: now() }
  return setUser(tx, user, { identities: [...user.identities, identity] })
}

/**
 * Takes the accounts of providers from a user that a stranger may have made with an address of somebody else: its
 * owner is here now. Resolves with the accounts of games, which stay; the caller stores them.
 */
export async function dropUnproven(tx: Tx, user: EndUserRow): Promise<UserIdentity[]> {
  const [kept, gone] = [user.identities.filter(isOfGame), user.identities.filter(isOfProvider)]
  for (const { id } of gone) await deleteRow(tx, user, id)
  return kept
}

const isOfProvider = (one: UserIdentity) => !isOfGame(one)

/** Takes an account from a user, whose row the caller holds. Undefined where they have no such one. */
export async function removeIdentity(
  tx: Tx,
  user: EndUserRow,
  id: string,
): Promise<EndUserRow | undefined> {
  const identities = user.identities.filter((own) => own.id !== id)
  if (identities.length === user.identities.length) return undefined
  await deleteRow(tx, user, id)
  return setUser(tx, user, { identities })
}

const deleteRow = (tx: Tx, { project_id }: EndUserRow, id: string) =>
  tx
    .delete(userIdentities)
    .where(and(eq(userIdentities.project_id, project_id), eq(userIdentities.id, id)))

export const isOfGame = ({ provider }: Pick<UserIdentity, "provider">): boolean =>
  GAMING_PROVIDERS.some((name) => name === provider)
