import { newId } from "../../src/core/ids"
import * as users from "../../src/identity/users"
import * as passwords from "../../src/sign-in/passwords"
import { type Ask, client } from "../harness/client"
import { signedIn } from "../harness/people"
import type { ServiceOptions, TestService } from "../harness/service"

export const PASSWORD = "Correct-Horse-7"

/** Tests come from addresses of their own, so that none uses up another's attempts. */
export const BEHIND_PROXY: ServiceOptions = { trusted_proxies: ["127.0.0.1"] }

let last_address = 0

/** Somebody at the door, with an address that nobody else has. */
export function stranger({ app }: TestService) {
  last_address += 1
  const ip = `198.51.${Math.floor(last_address / 250)}.${(last_address % 250) + 1}`
  const plain = client(app, undefined)
  const call = (method: string, path: string, { headers, ...ask }: Ask = {}) =>
    plain.call(method, path, { ...ask, headers: { "x-forwarded-for": ip, ...headers } })
  return {
    ip,
    call,
    get: (path: string) => call("GET", path),
    post: (path: string, body: unknown = {}) => call("POST", path, { body }),
  }
}

const hashed = passwords.hash(PASSWORD)

export interface Registered {
  id: string
  email: string
}

/** A user with PASSWORD, who is not signed in. */
export async function registered(
  { store }: TestService,
  wanted: { email?: string; operator?: boolean } = {},
): Promise<users.UserRow> {
  const password_hash = await hashed
  const { email = `${newId()}@people.test`, operator = false } = wanted
  return store.tx((tx) => users.create(tx, { email, name: "Pat", operator, password_hash }))
}

/** Signs in with the password and returns the Session, with a client that calls as the user. */
export async function signIn(service: TestService, email: string, password = PASSWORD) {
  const door = stranger(service)
  const { status, body } = await door.post("/v1/session", { email, password })
  if (status !== 200) throw new Error(`sign-in was answered ${status}: ${JSON.stringify(body)}`)
  return { door, session: body.data, ...signedIn(service.app, body.data.access_token) }
}

/** A new user who is signed in. */
export async function visitor(service: TestService, wanted: { operator?: boolean } = {}) {
  const user = await registered(service, wanted)
  return { user, ...(await signIn(service, user.email)) }
}
