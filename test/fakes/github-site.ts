import { newId } from "../../src/core/ids"
import { clientIn, type Grants, grantOf, type Person } from "./code-grants"
import { SETUPS } from "./identity-provider"

/** GitHub's OAuth and the two calls of its API. Everybody signs in as `person`, at once. */
export function gitHubSite(person: Person) {
  const setup = SETUPS.github
  const it = { person, asked: [] as string[], has_scope: true }
  const grants: Grants = new Map()
  const tokens = new Map<string, Person>()

  function authorize(asked: URLSearchParams): Response {
    const get = (name: string) => asked.get(name) ?? ""
    const is_right =
      get("client_id") === setup.client_id &&
      get("scope").includes("user:email") &&
      get("code_challenge_method") === "S256"
    if (!is_right) return new Response("This request is not right.", { status: 400 })
    const code = newId()
    const grant = { code_challenge: get("code_challenge"), redirect_uri: get("redirect_uri") }
    grants.set(code, { ...grant, nonce: "", person: it.person })
    const told = new URLSearchParams({ code, state: get("state") })
    return Response.redirect(`${grant.redirect_uri}?${told}`, 302)
  }

  /** Its errors have the status 200. */
  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    const { id, secret } = clientIn(request, form)
    if (request.headers.get("accept") !== "application/json") return new Response("a=b")
    if (id !== setup.client_id || secret !== setup.client_secret)
      return Response.json({ error: "incorrect_client_credentials" })
    const grant = grantOf(grants, form)
    if (!grant) return Response.json({ error: "bad_verification_code" })
    const access_token = `gho_${newId()}`
    tokens.set(access_token, grant.person)
    return Response.json({ access_token, scope: "read:user,user:email", token_type: "bearer" })
  }

  function api(pathname: string, request: Request): Response {
    const given = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? ""
    const who = tokens.get(given)
    if (!who || !request.headers.get("user-agent"))
      return Response.json({ message: "Bad credentials" }, { status: 401 })
    const { id, email, is_verified, name } = who
    if (pathname === "/user") return Response.json({ id: Number(id), login: "ann", name, email })
    if (!it.has_scope) return Response.json({ message: "Not Found" }, { status: 404 })
    const other = { email: "other@example.com", primary: false, verified: true }
    const list = email === null ? [] : [other, { email, primary: true, verified: is_verified }]
    return Response.json(list)
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      it.asked.push(pathname)
      if (pathname === "/login/oauth/authorize") return authorize(searchParams)
      if (pathname === "/login/oauth/access_token") return token(request)
      if (pathname === "/user" || pathname === "/user/emails") return api(pathname, request)
      return new Response(null, { status: 404 })
    },
  })
  return {
    ...{ url: `http://127.0.0.1:${server.port}`, setup, it },
    [Symbol.dispose]: () => void server.stop(true),
  }
}
