import { expect, test } from "bun:test"
import { initialise, lastingHome, lean, startServe } from "../scenarios/serve"

type Node = Awaited<ReturnType<typeof startServe>>

interface Renewed {
  data: { tokens: { access_token: string; refresh_token: string } }
}

const post = async (node: Node, path: string, body: object) => {
  const answer = await node.request(path, { method: "POST", body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Renewed }
}

const refresh = (node: Node, refresh_token: string) =>
  post(node, "/v1/auth/sessions/refresh", { refresh_token })

test("a kill right after a rotation: the same request gets the same new token, and the session lives on", async () => {
  using lasting = lastingHome()
  const { home } = lasting
  const api_key = await initialise(home, lean)
  const options = { home, api_key }
  let first = ""
  let second = ""
  {
    await using server = await startServe(options)
    await post(server, "/v1/auth/applications", { name: "Shop" })
    const person = { email: "ann@people.test", password: "Quiet-River-42" }
    const made = await post(server, "/v1/auth/users/register", person)
    expect(made.status).toBe(201)
    first = made.body.data.tokens.refresh_token
    second = (await refresh(server, first)).body.data.tokens.refresh_token
    server.kill("SIGKILL")
    await server.exited
  }
  await using server = await startServe(options)
  const again = await refresh(server, first)
  expect([again.status, again.body.data.tokens.refresh_token]).toEqual([200, second])
  const next = await refresh(server, second)
  expect(next.status).toBe(200)
  const authorization = `Bearer ${next.body.data.tokens.access_token}`
  const me = await fetch(`${server.url}/v1/auth/users/me`, { headers: { authorization } })
  expect(me.status).toBe(200)
})
