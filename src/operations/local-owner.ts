import { Type as t } from "@sinclair/typebox"
import { nameText } from "../http/field-schemas"
import { Problems } from "../http/problems"
import { withEmail } from "../http/validate"
import { Email, Password } from "../identity/schemas"

/** As `POST /v1/setup` takes it, but for the token. */
const readOwner = withEmail(
  t.Object({
    email: Email,
    password: Password,
    name: t.Optional(nameText()),
    account_name: nameText(),
    project_name: t.Optional(nameText()),
  }),
)

/** Setup at the machine itself is as strict as the route, and throws 422 as it does. */
export function demandOwner(owner: Record<string, unknown>): void {
  const said = Object.entries(owner).filter(([, value]) => value !== null)
  const problems = new Problems()
  readOwner(Object.fromEntries(said), problems)
  problems.throwIfAny()
}
