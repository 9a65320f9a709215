import type { Server } from "./mails"
import { OWNER } from "./page-visits"

interface Position {
  url: string
}

interface Named {
  id: string
  name: string
}

interface Made {
  session: { access_token: string }
  account: Named
  project: Named
  api_key: { key: string }
}

/** What the first owner is called, and what belongs to this person. */
export interface OwnerNames {
  email?: string
  name?: string
  account_name?: string
  project_name?: string
}

/** The server as it answers to a key. */
export const keyed = ({ url }: Position, key: string): Server => ({
  request: (path, init = {}) =>
    fetch(`${url}${path}`, { ...init, headers: { ...JSON_BODY, "x-api-key": key } }),
})

const JSON_BODY = { "content-type": "application/json" }

/** Becomes the first owner by the setup token, over HTTP. The password is that of `OWNER`. */
export async function becomeOwner({ url }: Position, setup_token: string, names: OwnerNames = {}) {
  const send = async <Value>(method: string, path: string, body: object, more = {}) => {
    const headers = { ...JSON_BODY, ...more }
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}: ${text}`)
    return (JSON.parse(text) as { data: Value }).data
  }
  const person = { ...OWNER, account_name: "Acme", ...names }
  const made = await send<Made>("POST", "/v1/setup", { setup_token, ...person })
  const authorization = `Bearer ${made.session.access_token}`
  const inProject = (id?: string) => ({ authorization, ...(id && { "x-project-id": id }) })
  const post = <Value>(path: string, body: object, project_id?: string) =>
    send<Value>("POST", path, body, inProject(project_id))
  return {
    made,
    /** As the owner; in a project where one is named. */
    post,
    patch: <Value>(path: string, body: object, project_id?: string) =>
      send<Value>("PATCH", path, body, inProject(project_id)),
    /** Another project, with a key that may do everything in it. */
    async makeProject(name: string) {
      const project = await post<Named>("/v1/projects", { name })
      const wanted = { name: "all", scopes: ["*"] }
      const { key } = await post<{ key: string }>("/v1/api-keys", wanted, project.id)
      return { project, key }
    },
  }
}
