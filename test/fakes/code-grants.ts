import { createHash } from "node:crypto"

/** Who signs in at a fake. */
export interface Person {
  id: string
  email: string | null
  is_verified: boolean
  name: string | null
}

export interface FakeSetup {
  client_id: string
  client_secret?: string
  team_id?: string
  key_id?: string
  private_key?: string
}

interface Grant {
  code_challenge: string
  redirect_uri: string
  nonce: string
  person: Person
}

/** By code. Each is taken once. */
export type Grants = Map<string, Grant>

export const REFUSED = () => Response.json({ error: "invalid_grant" }, { status: 400 })

/** What a code was given for, if the request has its verifier and its redirect. The code is used up in any case. */
export function grantOf(grants: Grants, form: URLSearchParams): Grant | undefined {
  const code = form.get("code") ?? ""
  const grant = grants.get(code)
  grants.delete(code)
  const verifier = form.get("code_verifier") ?? ""
  const challenge = createHash("sha256").update(verifier).digest("base64url")
  const is_right =
    grant?.code_challenge === challenge && grant.redirect_uri === form.get("redirect_uri")
  return is_right ? grant : undefined
}

const decoded = (text: string) => new URLSearchParams(`_=${text}`).get("_")

/** Who asks at a token endpoint (RFC 6749, section 2.3.1). */
export function clientIn(request: Request, form: URLSearchParams) {
  const basic = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1]
  if (basic === undefined)
    return { id: form.get("client_id"), secret: form.get("client_secret"), is_basic: false }
  const [id = "", secret = ""] = atob(basic).split(":")
  return { id: decoded(id), secret: decoded(secret), is_basic: true }
}

/** What a browser brings back from a provider that signs its person in at once: by a redirect, or in a form. */
export async function signInAt(authorization_url: string): Promise<Record<string, string>> {
  const answer = await fetch(authorization_url, { redirect: "manual" })
  const location = answer.headers.get("location")
  if (location) return Object.fromEntries(new URL(location).searchParams)
  const page = await answer.text()
  const inputs = [...page.matchAll(/name="(\w+)" value="([^"]*)"/g)]
  if (inputs.length === 0) throw new Error(page)
  return Object.fromEntries(inputs.map(([, name = "", value]) => [name, value ?? ""]))
}
