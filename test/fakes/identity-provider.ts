import { createHash, generateKeyPairSync, type KeyObject } from "node:crypto"
import { exportJWK, importJWK, jwtVerify, SignJWT } from "jose"
import { newId } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { clientIn, type FakeSetup, type Grants, grantOf, type Person, REFUSED } from "./code-grants"

export type OpenIdKind = "google" | "apple" | "microsoft" | "oidc"

const apple_key = generateKeyPairSync("ec", { namedCurve: "P-256" })

/** What an environment sets up at a fake. */
export const SETUPS: Record<OpenIdKind | "github", FakeSetup> = {
  google: { client_id: "shop.google", client_secret: "s3cret of: Google/+%" },
  microsoft: { client_id: "shop.microsoft", client_secret: "s3cret of: Microsoft" },
  github: { client_id: "shop.github", client_secret: "s3cret of GitHub" },
  oidc: { client_id: "shop oidc", client_secret: "s3cret: of an issuer" },
  apple: {
    ...{ client_id: "com.example.shop", team_id: "TEAM123456", key_id: "KEY1234567" },
    private_key: apple_key.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  },
}

export const TENANT = "11111111-2222-4333-8444-555555555555"

type Claims = Record<string, unknown>

/** What each of them says of a person in a token. */
const CLAIMS: Record<OpenIdKind, (person: Person, client_id: string) => Claims> = {
  google: ({ id, email, is_verified, name }, azp) => ({
    ...{ sub: id, email, email_verified: is_verified, name, azp },
    picture: "https://pictures.example.com/ann.png",
  }),
  apple: ({ id, email, is_verified }) => ({ sub: id, email, email_verified: `${is_verified}` }),
  microsoft: ({ id, email, is_verified, name }) => ({
    ...{ sub: id, email, name, tid: TENANT, ver: "2.0" },
    ...(is_verified && { xms_edov: "1" }),
  }),
  oidc: ({ id, email, is_verified, name }) => ({
    ...{ sub: id, email, email_verified: is_verified, name },
  }),
}

/** How a fake lies; each replaces what it would say. */
interface Lies {
  document?: Record<string, unknown>
  claims?: Claims
  header?: Record<string, unknown>
  /** The whole token, made of the claims. */
  token?: (claims: Claims) => string | Promise<string>
  /** By path: any answer. */
  answers?: Record<string, () => Response | Promise<Response>>
}

const newKey = () => ({ kid: newId(), ...generateKeyPairSync("rsa", { modulusLength: 2048 }) })

/**
 * A provider of OpenID Connect that holds its clients to the rules: how they prove themselves, PKCE, the redirect, and
 * that a code works once. Everybody signs in at `/authorize` as `person`, at once.
 */
export function identityProvider(kind: OpenIdKind, person: Person) {
  const setup = SETUPS[kind]
  const it = { person, lies: {} as Lies, key: newKey(), asked: [] as string[] }
  const grants: Grants = new Map()
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => answer(request) })
  const url = `http://127.0.0.1:${server.port}`
  const issuer = kind === "microsoft" ? `${url}/{tenantid}/v2.0` : url

  const document = () => ({
    ...{ issuer, jwks_uri: `${url}/keys`, authorization_endpoint: `${url}/authorize` },
    token_endpoint: `${url}/token`,
    token_endpoint_auth_methods_supported:
      kind === "google" || kind === "oidc" ? ["client_secret_basic"] : ["client_secret_post"],
    ...(kind === "oidc" && { authorization_response_iss_parameter_supported: true }),
    ...it.lies.document,
  })

  const publicKey = async ({ kid, publicKey }: ReturnType<typeof newKey>) => ({
    ...{ ...(await exportJWK(publicKey)), kid, alg: "RS256", use: "sig" },
  })

  /** As the token endpoint makes it; a native application gets it from the platform. */
  async function idToken(own: Claims = {}, of = it.person): Promise<string> {
    const issued = Math.floor(millis() / 1000)
    const claims: Claims = {
      ...{ iss: issuer.replace("{tenantid}", TENANT), aud: setup.client_id },
      ...{ iat: issued, exp: issued + 600 },
      ...CLAIMS[kind](of, setup.client_id),
      ...own,
      ...it.lies.claims,
    }
    if (it.lies.token) return it.lies.token(claims)
    const header = { alg: "RS256", kid: it.key.kid, typ: "JWT", ...it.lies.header }
    return new SignJWT(claims).setProtectedHeader(header).sign(it.key.privateKey)
  }

  async function token(request: Request): Promise<Response> {
    const form = new URLSearchParams(await request.text())
    const client = clientIn(request, form)
    const is_basic = kind === "google" || kind === "oidc"
    const is_ours =
      kind === "apple"
        ? await isSigned(form.get("client_secret") ?? "", issuer)
        : client.secret === setup.client_secret && client.is_basic === is_basic
    if (client.id !== setup.client_id || !is_ours)
      return Response.json({ error: "invalid_client" }, { status: 401 })
    const grant = grantOf(grants, form)
    if (!grant || form.get("grant_type") !== "authorization_code") return REFUSED()
    const access_token = newId()
    const at_hash = createHash("sha256").update(access_token).digest().subarray(0, 16)
    const own = { nonce: grant.nonce, at_hash: at_hash.toString("base64url") }
    const id_token = await idToken(own, grant.person)
    const scope = "openid email"
    return Response.json({ access_token, id_token, token_type: "Bearer", expires_in: 3599, scope })
  }

  async function answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url)
    it.asked.push(pathname)
    const lie = it.lies.answers?.[pathname]
    if (lie) return lie()
    if (pathname === "/.well-known/openid-configuration") return Response.json(document())
    if (pathname === "/keys") return Response.json({ keys: [await publicKey(it.key)] })
    if (pathname === "/token") return token(request)
    if (pathname !== "/authorize") return new Response(null, { status: 404 })
    return authorized(searchParams)
  }

  function authorized(asked: URLSearchParams): Response {
    const get = (name: string) => asked.get(name) ?? ""
    const is_form = get("response_mode") === "form_post"
    const is_right =
      get("client_id") === setup.client_id &&
      get("response_type") === "code" &&
      get("scope").split(" ").includes("openid") &&
      /^[\w-]{43}$/.test(get("code_challenge")) &&
      get("code_challenge_method") === "S256" &&
      get("nonce") !== "" &&
      is_form === (kind === "apple")
    if (!is_right) return new Response("This request is not right.", { status: 400 })
    const code = newId()
    const grant = { code_challenge: get("code_challenge"), redirect_uri: get("redirect_uri") }
    grants.set(code, { ...grant, nonce: get("nonce"), person: it.person })
    const iss = kind === "oidc" ? { iss: url } : {}
    const told = { code, state: get("state"), ...iss }
    return is_form ? formPost(grant.redirect_uri, told) : redirect(grant.redirect_uri, told)
  }

  return {
    ...{ url, issuer, setup, it, idToken },
    /** New tokens have another key, and the one before is not published any more. */
    rotate: () => void Object.assign(it, { key: newKey() }),
    publicPem: () => it.key.publicKey.export({ type: "spki", format: "pem" }).toString(),
    [Symbol.dispose]: () => void server.stop(true),
  }
}

export type IdentityProvider = ReturnType<typeof identityProvider>

const redirect = (to: string, told: Record<string, string>) =>
  Response.redirect(`${to}?${new URLSearchParams(told)}`, 302)

function formPost(action: string, told: Record<string, string>): Response {
  const inputs = Object.entries(told).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
  )
  const page = `<form method="post" action="${action}">${inputs.join("")}</form><script>document.forms[0].submit()</script>`
  return new Response(page, { headers: { "content-type": "text/html" } })
}

/** Apple's way: the secret is a token that the developer's key signed. */
async function isSigned(secret: string, audience: string): Promise<boolean> {
  const { client_id, team_id = "", key_id } = SETUPS.apple
  const key: KeyObject = apple_key.publicKey
  const checks = { algorithms: ["ES256"], issuer: team_id, subject: client_id, audience }
  const currentDate = new Date(millis())
  const jwk = await importJWK(await exportJWK(key), "ES256")
  const found = await jwtVerify(secret, jwk, { ...checks, currentDate }).catch(() => undefined)
  const { exp = 0, iat = 0 } = found?.payload ?? {}
  return found?.protectedHeader.kid === key_id && exp > iat && exp - iat <= 15_777_000
}
