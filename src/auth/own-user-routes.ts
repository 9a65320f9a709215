import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, type CallerKind, route } from "../http/route"
import type { Tx } from "../store/store"
import type { AuthParts } from "./auth-parts"
import { authRow } from "./auth-rows"
import { type EndUserRow, findForUpdate, setUser, toResponse } from "./end-users"
import { linkSubscriber } from "./linked-subscriber"
import { MOST_NAMED, organizationsOf, toActive } from "./own-organizations"
import { ownUser } from "./own-user"
import { profileFields, readProfile } from "./profile-fields"
import { ActiveOrganization, SUCCESS, Success, UserRecord } from "./schemas"
import { findSession, signOut } from "./user-sessions"

const Profile = t.Object(profileFields)

const SignOut = t.Object({
  all: t.Optional(
    t.Boolean({
      default: false,
      description: "Ends every session of the user, not only this one.",
    }),
  ),
})

const OwnUser = t.Object(
  { ...UserRecord.properties, organizations: t.Array(ActiveOrganization) },
  { title: "OwnUser" },
)

const USER: CallerKind[] = ["user"]
const ME = "/v1/auth/users/me"

/** What users see and change of themselves. */
export const ownUserRoutes = (parts: AuthParts): AnyRoute[] => [
  route({
    ...authRow("POST", "/v1/auth/users/logout", USER, "-"),
    before_factor: true,
    summary: "Sign out of an application",
    description: "Ends the session of the request. Its tokens are refused from then on.",
    body: SignOut,
    example: { all: false },
    response: Success,
    handle: async (call) => {
      const { environment, user, session_id } = await ownUser(parts.store.read, call)
      const wanted = { session_id, all: call.body.all === true, ip: call.ip }
      await parts.store.tx((tx) => signOut(tx, environment, user, wanted))
      return SUCCESS
    },
  }),
  route({
    ...authRow("GET", ME, USER, "-"),
    before_factor: true,
    summary: "Show yourself and your organizations",
    description: "The active organization of the session is the first one.",
    response: OwnUser,
    handle: async (call) => {
      const { read } = parts.store
      const { user, session_id } = await ownUser(read, call)
      const { organization_id } = await findSession(read, user, session_id)
      const organizations = await organizationsOf(read, user, organization_id)
      const named = organizations.slice(0, MOST_NAMED)
      return { data: { ...toResponse(user), organizations: named.map(toActive) } }
    },
  }),
  route({
    ...authRow("PATCH", ME, USER, "-"),
    before_factor: true,
    summary: "Change what you say of yourself",
    description: "Fields that are absent stay as they are. `metadata` is replaced as a whole.",
    body: Profile,
    read: readProfile,
    example: { name: "Ann", locale: "de" },
    response: UserRecord,
    handle: async (call) => {
      const { user } = await ownUser(parts.store.read, call)
      const changed = await parts.store.tx((tx) => changeProfile(tx, user, call.body))
      return { data: toResponse(changed) }
    },
  }),
]

async function changeProfile(
  tx: Tx,
  { project_id, id }: EndUserRow,
  changes: ReturnType<typeof readProfile>,
): Promise<EndUserRow> {
  return linkSubscriber(tx, await setUser(tx, await findForUpdate(tx, project_id, id), changes))
}
