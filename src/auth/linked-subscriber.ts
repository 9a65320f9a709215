import { and, eq } from "drizzle-orm"
import { withDefaults } from "../identity/caller"
import { projects } from "../identity/tables"
import { rowById, rowForUpdate } from "../store/rows"
import type { Tx } from "../store/store"
import { ofProject, type SubscriberRow } from "../subscribers/find-subscriber"
import { change, put } from "../subscribers/subscribers"
import { subscribers } from "../subscribers/tables"
import { type EndUserRow, setUser } from "./end-users"
import { users } from "./tables"

/**
 * With the project's setting `auto_link_users` a verified user is a subscriber, whose external id is the id of the
 * user: it is made here, or changed as the user changed. Only what the user proved or says goes there. Returns the
 * user with the link.
 */
export async function linkSubscriber(tx: Tx, user: EndUserRow): Promise<EndUserRow> {
  if (!user.email_verified && !user.phone_verified) return user
  const project = await rowById(tx, projects, user.project_id)
  if (!project || !withDefaults(project.settings).auto_link_users) return user
  const before = await linkedForUpdate(tx, user)
  const fields = fieldsOf(user)
  const row = before
    ? await change(tx, before, fields)
    : (await put(tx, user.project_id, { external_id: user.id, fields })).row
  if (row.auth_user_id === null) await change(tx, row, { auth_user_id: user.id })
  return user.subscriber_id === row.id ? user : setUser(tx, user, { subscriber_id: row.id })
}

/** The subscriber of a user may have another external id by now: it was merged into another one. */
const linkedForUpdate = async (tx: Tx, { subscriber_id, project_id }: EndUserRow) =>
  subscriber_id === null
    ? undefined
    : rowForUpdate(tx, subscribers, subscriber_id, ofProject(project_id))

/** What a user does not have, the subscriber keeps. */
function fieldsOf({ email_verified, phone_verified, ...user }: EndUserRow) {
  const { email, phone_number: phone, name, avatar_url, locale } = user
  const verified = { ...(email_verified && { email }), ...(phone_verified && { phone }) }
  const known = Object.entries({ ...verified, name, avatar_url, locale })
  return Object.fromEntries(known.filter(([, value]) => value !== null)) as Partial<SubscriberRow>
}

/** The subscriber of a deleted user stays, and is nobody's. */
export async function leaveSubscriber(tx: Tx, user: EndUserRow): Promise<void> {
  const row = await linkedForUpdate(tx, user)
  if (row?.auth_user_id === user.id) await change(tx, row, { auth_user_id: null })
}

type NamedSubscriber = Pick<SubscriberRow, "id" | "project_id">

/** The users of a subscriber that is removed have none, or those of one that was merged have the other one. */
export async function moveUsers(
  tx: Tx,
  { id, project_id }: NamedSubscriber,
  into: NamedSubscriber | null,
): Promise<void> {
  const theirs = and(eq(users.project_id, project_id), eq(users.subscriber_id, id))
  await tx
    .update(users)
    .set({ subscriber_id: into?.id ?? null })
    .where(theirs)
}
