import { Type as t } from "@sinclair/typebox"
import { VERSION } from "../core/version"
import { mailboxText, nameText } from "../http/field-schemas"
import { type AnyRoute, anonymousRow, route } from "../http/route"
import { ApiKeyWithSecret, LONG_EMAIL, Password, Session, Token } from "../identity/schemas"
import { clientOf } from "../identity/sessions"
import { flag, text } from "../lib/record-fields"
import * as passwords from "../sign-in/passwords"
import { Account, Project } from "./schemas"
import { establish, isSetUp, type SetupParts, setupResponse } from "./setup"

const NewOwner = t.Object({
  setup_token: Token,
  email: mailboxText(LONG_EMAIL),
  password: Password,
  name: t.Optional(nameText()),
  account_name: nameText(),
  project_name: t.Optional(nameText()),
})

const SetupResult = t.Object(
  {
    session: Session,
    account: Account,
    project: Project,
    api_key: ApiKeyWithSecret,
  },
  { title: "SetupResult" },
)

export const setupRoutes = ({ store, setup, ...parts }: SetupParts): AnyRoute[] => [
  route({
    ...anonymousRow("GET", "/v1/setup"),
    summary: "Show whether this instance still waits for its first owner",
    description:
      "A fresh server has no owner. Until it has one, `required` is true and `POST /v1/setup` works.",
    response: t.Object({ required: flag(false), version: text(VERSION) }, { title: "SetupState" }),
    handle: async () => ({ data: { required: !(await isSetUp(store.read)), version: VERSION } }),
  }),
  route({
    ...anonymousRow("POST", "/v1/setup", 201),
    summary: "Make the first owner with the setup token",
    description:
      "Makes the first person, an account, a project and an API key. The first start printed the setup token. It works once. Only this answer shows the API key.",
    body: NewOwner,
    example: {
      setup_token: "st_Zk3vX9",
      email: "ann@example.com",
      password: "Quiet-River-42",
      account_name: "Acme",
    },
    response: SetupResult,
    errors: ["unauthorized", "not_found", "weak_password", "invalid_email"],
    handle: async (call) => {
      const { setup_token, password, name = null, project_name = "Default", ...owner } = call.body
      await store.tx((tx) => setup.require(tx, setup_token)) // before any work is done for it
      const password_hash = await passwords.hashNew(password)
      const made = await store.tx(async (tx) => {
        await setup.require(tx, setup_token)
        const wanted = { ...owner, name, project_name, password_hash }
        return establish(tx, { setup, ...parts }, wanted, clientOf(call))
      })
      return { data: await setupResponse(store.read, made) }
    },
  }),
]
