import type { Components } from "../client/components"
import { type Observable, observable } from "./observable"
import { beginSession, chooseProject, project, session } from "./page-session"
import { notify } from "./parts/toast"
import { RequestError } from "./requests"
import { call } from "./transport"

type Project = Components["Project"]

/** Why there is no session yet: a link that is not valid, no server. */
export const start_error: Observable<unknown> = observable<unknown>(undefined)

/** The projects of a person, when they are known. A key has nothing to choose. */
export const projects: Observable<readonly Project[] | undefined> = observable<
  readonly Project[] | undefined
>(undefined)

/** Finds the session, and for each person that signs in the project to work in. */
export async function startSession(link_code: string | undefined): Promise<void> {
  let user_id: string | undefined
  session.subscribe(() => {
    const { value } = session
    const id = value.kind === "token" ? value.user?.id : undefined
    if (id !== undefined && id !== user_id) void loadProjects().catch(start_error.set)
    if (id === undefined) projects.set(undefined)
    user_id = id
  })
  await begin(link_code)
}

/** Signs in with another link, in place of the session that the page has. */
export async function signInWithLink(code: string): Promise<void> {
  start_error.set(undefined)
  await begin(code)
}

async function begin(link_code: string | undefined): Promise<void> {
  try {
    await beginSession(link_code)
  } catch (error) {
    const { kind } = session.value
    if (isSpentLink(error) && (kind === "key" || kind === "token")) notify(ALREADY_IN)
    else start_error.set(error)
  }
}

const ALREADY_IN = "you are signed in already. This link works once, and you do not need it"

/** The link was used, or is too old: another try is refused, too. */
export const isSpentLink = (error: unknown): boolean =>
  error instanceof RequestError && error.details.reason === "link_not_valid"

/** Of all accounts of the person, 100 of each at most. */
async function loadProjects(): Promise<void> {
  const { value } = session
  if (value.kind !== "token") return
  const lists = await Promise.all(
    value.accounts.map(async ({ id }) => {
      const headers = { "x-account-id": id }
      const query = { per_page: 100 }
      const { data } = await call("GET /v1/projects", { query, headers })
      return data
    }),
  )
  const all = lists.flat()
  projects.set(all)
  const [first] = all
  const is_known = all.some(({ id }) => id === project.value?.id)
  if (!is_known && first) chooseProject(first)
}
