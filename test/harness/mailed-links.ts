import { type EndUserRow, insertUser, type NewEndUser } from "../../src/auth/end-users"
import { LINKS } from "../../src/auth/mailed-links"
import { userLinks } from "../../src/auth/tables"
import { issueLink } from "../../src/sign-in/links"
import type { TestApplication } from "./application"
import type { TestService } from "./service"

type Stored = Pick<TestService, "store">

interface LinkOptions {
  email?: string
  redirect_url?: string | null
  user_id?: string | null
  purpose?: string | null
}

/** The token of a link in a mail, past the mail itself. */
export async function mailedLink(
  { store }: Stored,
  { project_id, environment_ids }: TestApplication,
  kind: keyof typeof LINKS,
  options: LinkOptions = {},
): Promise<string> {
  const environment_id = environment_ids.live
  const about = { email: "ann@example.test", redirect_url: null, user_id: null, purpose: null }
  const columns = { project_id, environment_id, kind, message_id: null, ...about, ...options }
  const { token, seconds } = LINKS[kind]
  return store.tx((tx) => issueLink(tx, userLinks, { kind: token, seconds }, columns))
}

/** A user of environment `live`, past every rule of how users are made. */
export async function anEndUser(
  { store }: Stored,
  application: TestApplication,
  wanted: NewEndUser = { email: "ann@example.test" },
): Promise<EndUserRow> {
  const environment = await application.environment()
  const user = await store.tx((tx) => insertUser(tx, environment, wanted))
  if (!user) throw new Error("the address has a user already")
  return user
}
