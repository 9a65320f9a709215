import type { Components } from "../../src/client/components"
import { counted, number } from "../lib/cells"
import type { Client } from "../lib/client"
import { emailColumns } from "../lib/email-text"
import { usage } from "../lib/errors"
import { type Columns, fields, table } from "../lib/table"
import type { Paint } from "../lib/terminal"
import {
  identifierOf,
  identityColumns,
  ownOrganizationColumns,
  userColumns,
  userSessionColumns,
} from "../lib/user-text"
import { action, back, copy, key, moving, neighbours, scrolling } from "./keys"
import { chosen, loadOf, rowsOf } from "./lists"
import { PAGE, readable } from "./reading"
import {
  ask,
  change,
  type Key,
  type ListForm,
  type Load,
  type Screen,
  type State,
  type StateStep,
  said,
  step,
  UNREAD,
  type UserFacts,
} from "./state"

type User = Components["User"]

const NAMED = ["application", "environment", "status", "email", "phone"] as const

type NamedWord = (typeof NAMED)[number]

/** What a filter such as `application:shop status:suspended ann` asks for. */
interface UserFilter {
  named: Partial<Record<NamedWord, string>>
  /** The words that are searched for. */
  text: string
}

/** Undefined where a word has a name that is none. */
function filterOf(text: string): UserFilter | undefined {
  const named: UserFilter["named"] = {}
  const words: string[] = []
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const [, name, value = ""] = /^(\w+):(.*)$/.exec(word) ?? []
    const known = NAMED.find((one) => one === name)
    if (known) named[known] = value
    else if (name !== undefined) return undefined
    else words.push(word)
  }
  return { named, text: words.join(" ") }
}

const users: ListForm<User> = { route: listUsers, columns: () => userColumns }

async function listUsers(client: Client, text: string) {
  const { named, text: q } = filterOf(text) ?? { named: {}, text: "" }
  const { application, environment, status, email, phone } = named
  const query = {
    ...PAGE,
    ...(application && { application_id: await idOf(client, application) }),
    ...(environment && { environment: environment as User["environment"] }),
    ...(status && { status: status as User["status"] }),
    ...(email && { email }),
    ...(phone && { phone_number: phone }),
    ...(q && { q }),
  }
  return await client.call("GET /v1/auth/users", { query })
}

/** Of an application by its slug or its id. */
async function idOf(client: Client, name: string): Promise<string> {
  const { data } = await client.call("GET /v1/auth/applications", { query: PAGE })
  const found = data.find(({ id, slug }) => id === name || slug === name)
  if (found) return found.id
  throw usage(`there is no application ${name}`, "press / and name another one")
}

function info(state: State): string {
  const { search, more } = state.users
  const all = rowsOf(state, "users")
  const suspended = all.filter(({ status }) => status === "suspended").length
  return [
    ...(search === "" ? [] : [`filter: ${search}`]),
    more ? `${all.length}+ users (/ finds others)` : counted(all.length, "user"),
    ...(suspended > 0 ? [`${number(suspended)} suspended`] : []),
  ].join("   ")
}

const loadUsers = ({ users: { search } }: State): Load => ({
  ...{ do: "load_list", list: "users" },
  ...(search !== "" && { of: search }),
})

/** Shows the users that this filter finds, or all of them for "". */
export function searchUsers(
  state: State,
  text: string,
  refused: (problem: string) => StateStep,
): StateStep {
  if (!filterOf(text)) return refused(`the words are ${NAMED.join(", ")}, as status:suspended`)
  const next: State = {
    ...state,
    screen: "users",
    users: { search: text, more: false },
    lists: { ...state.lists, users: UNREAD },
    details: { ...state.details, users: undefined },
    problems: { ...state.problems, users: undefined },
  }
  return step(next, loadUsers(next))
}

const NEWEST = { per_page: 5 }

async function userFacts(client: Client, { id: user_id }: { id: string }): Promise<UserFacts> {
  const one = "GET /v1/auth/users/{user_id}"
  const { data: user } = await client.call(one, { params: { user_id } })
  const { email, application_id, environment } = user
  const own = { user_id, application_id, environment }
  const [sessions, organizations, mails] = await Promise.all([
    client.call(`${one}/sessions`, { params: { user_id } }),
    client.call("GET /v1/auth/organizations", { query: own }),
    email === null
      ? undefined
      : readable(
          client.call("GET /v1/emails", { query: { ...NEWEST, to: email, stream: "auth" } }),
        ),
  ])
  const own_lists = { sessions: sessions.data, organizations: organizations.data }
  return { user, ...own_lists, mails: mails?.data }
}

/** The newest mail comes first: its status says whether the last code arrived. */
function userText(
  { user, sessions, organizations, mails }: UserFacts,
  paint: Paint,
  width: number,
): string {
  const section = (title: string, text: string) => `${paint.bold(title)}\n${text}`
  const list = <Row>(rows: readonly Row[], shown: Columns<Row>) =>
    rows.length === 0 ? paint.dim("none") : table(rows, shown, width, paint)
  const mailed = mails
    ? list(mails, emailColumns)
    : paint.dim(user.email === null ? "the user has no address" : "this key may not read it")
  const { identities, ...rest } = user
  return [
    fields(Object.entries(rest), paint),
    section("ACCOUNTS ELSEWHERE", list(identities, identityColumns)),
    section("ORGANIZATIONS", list(organizations, ownOrganizationColumns)),
    section("SESSIONS", list(sessions, userSessionColumns)),
    section("LAST MAILS OF SIGN-INS", mailed),
  ].join("\n\n")
}

/** The opened user, or the chosen one. */
const pointed = (state: State): User | undefined =>
  state.details.users ? (state.details.users.found?.user ?? undefined) : chosen(state, "users")

const acting = (
  name: string,
  word: string,
  long: string,
  press: (state: State, user: User) => StateStep,
) =>
  action(name, word, long, (state) => {
    const user = pointed(state)
    return user ? press(state, user) : said(state, "choose a user first")
  })

const ONE = "/v1/auth/users/{user_id}"

const revoke = acting(
  "R",
  "revoke",
  "end all sessions of this user (asks first)",
  (state, user) => {
    const done = ({ data: { revoked } }: { data: { revoked: number } }) =>
      `${counted(revoked, "session")} ended`
    const ending = change(`DELETE ${ONE}/sessions`, { params: { user_id: user.id } }, done)
    return ask(state, `End all sessions of ${identifierOf(user)}?`, ending)
  },
)

const suspend = acting("s", "suspend", "suspend this user (asks first)", (state, user) => {
  if (user.status === "suspended") return said(state, "the user is suspended: a activates them")
  const input = { params: { user_id: user.id }, body: {} }
  const done = () => "suspended; all sessions ended"
  const asking = `Suspend ${identifierOf(user)}? All sessions end.`
  return ask(state, asking, change(`POST ${ONE}/suspend`, input, done))
})

const activate = acting("a", "activate", "activate this user (asks first)", (state, user) => {
  const input = { params: { user_id: user.id } }
  const asking = `Activate ${identifierOf(user)}? A lockout ends, too.`
  return ask(
    state,
    asking,
    change(`POST ${ONE}/activate`, input, () => "activated"),
  )
})

const filter: Key = {
  ...key(
    "/",
    "filter",
    "show only some users: application:shop environment:test status:suspended ann",
  ),
  press: (state) =>
    step({ ...state, prompt: { asks: "users", text: state.users.search, problem: null } }),
}

/** In the list it takes the filter away. */
const shownAll: Key = {
  ...key("Esc", "", ""),
  press: (state) =>
    state.users.search === "" ? step(state) : searchUsers(state, "", () => step(state)),
}

const own = [revoke, suspend, activate, copy()]

const inList: Key[] = [
  moving,
  key("⏎", "detail", "open the user: sessions, and whether the last mails arrived"),
  ...[filter, ...own, shownAll],
]

const inUser: Key[] = [back("the list"), scrolling, ...own, ...neighbours("user")]

export const usersScreen: Screen = {
  loads: (state) => [
    loadUsers(state),
    ...(state.details.users ? [loadOf("users", state.details.users)] : []),
  ],
  info,
  lists: { users },
  none: ({ users: { search } }) =>
    search === ""
      ? "there is no user yet: belfry applications create --name 'My app' makes what they sign up to"
      : `no user fits "${search}": Esc shows all users`,
  detail: {
    opens: "users",
    title: ({ id }) => `user ${id}`,
    under: ({ user }: UserFacts) => user.status,
    text: userText,
    read: userFacts,
  },
  keys: ({ details }) => (details.users ? inUser : inList),
  actions: [...own],
}
