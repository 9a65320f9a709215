import { Type as t } from "@sinclair/typebox"
import { VERSION } from "../core/version"
import { nameText } from "../http/field-schemas"
import { type AnyRoute, route } from "../http/route"
import { withEmail } from "../http/validate"
import { WithSecret } from "../identity/key-schemas"
import * as passwords from "../identity/passwords"
import { Email, LIMIT_BYTES, Password, PER_MINUTE, Session, Token } from "../identity/schemas"
import type { Sessions } from "../identity/sessions"
import { flag, text } from "../lib/record-fields"
import type { Store } from "../store/store"
import { establish, setupRecord } from "./establish"
import { isSetUp } from "./first"
import { Project } from "./project-schemas"
import { Account } from "./schemas"
import type { Setup } from "./setup-token"

const Owner = t.Object({
  setup_token: Token,
  email: Email,
  password: Password,
  name: t.Optional(nameText()),
  account_name: nameText(),
  project_name: t.Optional(nameText()),
})

const Established = t.Object(
  {
    session: Session,
    account: Account,
    project: Project,
    api_key: WithSecret,
  },
  { title: "SetupResult" },
)

export interface SetupParts {
  store: Store
  setup: Setup
  sessions: Sessions
}

const open: Pick<AnyRoute, "path" | "callers" | "scope" | "per_minute" | "limit"> = {
  path: "/v1/setup",
  callers: ["none"],
  scope: "-",
  per_minute: PER_MINUTE,
  limit: LIMIT_BYTES,
}

export const setupRoutes = ({ store, setup, sessions }: SetupParts): AnyRoute[] => [
  route({
    ...open,
    method: "GET",
    status: [200],
    summary: "Show whether this instance still waits for its first owner",
    description:
      "A fresh server has no owner. Until it has one, `required` is true and `POST /v1/setup` works.",
    response: t.Object({ required: flag(false), version: text(VERSION) }, { title: "SetupState" }),
    handle: async () => ({ data: { required: !(await isSetUp(store.read)), version: VERSION } }),
  }),
  route({
    ...open,
    method: "POST",
    status: [201],
    summary: "Make the first owner with the setup token",
    description:
      "Makes the first person, an account, a project and an API key. The first start printed the setup token. It works once. Only this answer shows the API key.",
    body: Owner,
    example: {
      setup_token: "st_Zk3vX9",
      email: "ann@example.com",
      password: "Quiet-River-42",
      account_name: "Acme",
    },
    read: withEmail(Owner),
    response: Established,
    errors: ["unauthorized", "not_found", "weak_password", "invalid_email"],
    handle: async ({ body, ip, request }) => {
      const { setup_token, password, email, name, account_name, project_name } = body
      await store.tx((tx) => setup.demand(tx, setup_token)) // before any work is done for it
      passwords.demandStrength(password)
      const password_hash = await passwords.hash(password)
      const names = { name: name ?? null, account_name, project_name: project_name ?? "Default" }
      const client = { ip, user_agent: request.headers.get("user-agent"), client_name: null }
      const made = await store.tx(async (tx) => {
        await setup.demand(tx, setup_token)
        await setup.end(tx)
        return establish(tx, sessions, { email, password_hash, ...names }, client)
      })
      return { data: await setupRecord(store.read, made) }
    },
  }),
]
