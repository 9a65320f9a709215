import { type Static, Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { nameText } from "../http/field-schemas"
import { Problems } from "../http/problems"
import type { Call } from "../http/route"
import { type AnyRoute, route } from "../http/route"
import * as passwords from "../identity/passwords"
import { Session } from "../identity/schemas"
import type { SessionReply, Sessions } from "../identity/sessions"
import { asUser } from "../identity/user-log"
import * as users from "../identity/users"
import { flag, text, time, word } from "../lib/record-fields"
import type { Store, Tx } from "../store/store"
import { claim, type Open, open } from "./claim"
import { demandSignUp, type SignUp } from "./sign-up"

const MOST_PASSWORD_CHARACTERS = 1000

const Newcomer = t.Partial(
  t.Object({ name: nameText(), password: t.String({ maxLength: MOST_PASSWORD_CHARACTERS }) }),
)

type NewcomerBody = Static<typeof Newcomer>

const InvitationPreview = t.Object(
  {
    email: text("ben@example.com"),
    account_name: text("Acme"),
    role: word(["owner", "admin", "billing_admin", "member"]),
    expires_at: time(),
    user_exists: flag(false, "Whether a user with this address exists already."),
  },
  { title: "InvitationPreview" },
)

export interface AcceptParts {
  store: Store
  sessions: Pick<Sessions, "start">
  sign_up: SignUp
}

const PATH = "/v1/invitations/{token}"
const PER_MINUTE = 60

/** For whoever holds the token of an invitation: that is all the proof there is. */
export const acceptRoutes = (parts: AcceptParts): AnyRoute[] => [
  route({
    method: "GET",
    path: PATH,
    credentials: ["token"],
    callers: ["none"],
    scope: "-",
    status: [200],
    per_minute: PER_MINUTE,
    summary: "Show an invitation by its token",
    description: "The token of the link in the mail is the only credential.",
    response: InvitationPreview,
    handle: async ({ params }) => {
      const { invitation, account_name, user } = await open(parts.store.read, params.token)
      const { email, role, expires_at } = invitation
      return { data: { email, account_name, role, expires_at, user_exists: user !== undefined } }
    },
  }),
  route({
    method: "POST",
    path: `${PATH}/accept`,
    credentials: ["token"],
    callers: ["none", "console"],
    scope: "-",
    status: [200],
    per_minute: PER_MINUTE,
    summary: "Accept an invitation as a new or an existing user",
    description:
      "A new person sends a name and a password, and gets a session. A person with a user signs in first, and sends an empty body.",
    body: Newcomer,
    example: { name: "Ben", password: "Quiet-River-42" },
    response: Session,
    errors: ["forbidden", "conflict", "weak_password", "plan_limit_exceeded"],
    handle: async (call) => {
      const seen = await open(parts.store.read, call.params.token)
      if (!seen.user) return { data: await acceptAnew(parts, call, seen) }
      demandSelf(call, seen.user)
      return {
        data: await accept(parts, call, async (tx) => users.hold(tx, call.caller.user_id ?? "")),
      }
    },
  }),
]

/** The token proves that mail arrived, not that somebody who has a user here wants this. */
function demandSelf({ caller }: Call, user: users.UserRow) {
  if (caller.user_id === user.id) return
  const [reason, text] =
    caller.kind === "console"
      ? ["other_user", "The invitation is for another address. Sign in with the invited address."]
      : ["user_exists", SIGN_IN_FIRST]
  fail("conflict", text, { reason, id: null })
}

const SIGN_IN_FIRST =
  "A user with this address exists already. Sign in as that user with POST /v1/session. Then " +
  "accept with that access token and an empty body, or open the page /invitation/{token}."

/** The password is hashed before the transaction, which may wait for nothing but itself. */
type Accepting<Body = unknown> = Call<Body, unknown, { token: string }>

async function acceptAnew(parts: AcceptParts, call: Accepting<NewcomerBody>, { invitation }: Open) {
  demandSignUp(parts.sign_up, true) // an invitation opens no door that the operator shut
  if (call.caller.kind === "console") {
    const text =
      "The invitation is for another address. Send the request without your access token."
    fail("conflict", text, { reason: "other_user", id: null })
  }
  const { name, password } = call.body
  const problems = new Problems()
  if (name === undefined) problems.add("name", "required", "The field is required.")
  if (password === undefined) problems.add("password", "required", "The field is required.")
  problems.throwIfAny()
  passwords.demandStrength(password ?? "")
  const password_hash = await passwords.hash(password ?? "")
  const wanted = { email: invitation.email, name: name ?? null, password_hash, operator: false }
  return accept(parts, call, (tx) => users.create(tx, wanted))
}

function accept(
  { store, sessions }: AcceptParts,
  { params, ip, request }: Accepting,
  who: (tx: Tx) => Promise<users.UserRow>,
): Promise<SessionReply> {
  const user_agent = request.headers.get("user-agent")
  return store.tx(async (tx) => {
    const user = await who(tx)
    await claim(tx, params.token, user, asUser(user, ip))
    return sessions.start(tx, user, { ip, user_agent, client_name: null })
  })
}
