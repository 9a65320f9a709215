import { createHash, randomBytes } from "node:crypto"
import { exportJWK, generateKeyPair, SignJWT } from "jose"

/** An account of the issuer, as its tokens tell of it. */
export interface IssuedAccount {
  sub: string
  email?: string
  email_verified?: boolean
  name?: string
}

interface Consent {
  asked: URLSearchParams
  account: IssuedAccount
}

const CLIENT = { id: "shop", secret: "planted-secret-of-the-issuer" }

/** An OpenID Connect issuer that verifies all that a client must send, and takes each code once. */
export async function accountIssuer() {
  const keys = await generateKeyPair("ES256")
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: "first", alg: "ES256", use: "sig" }
  const consents = new Map<string, Consent>()
  let exchanges = 0

  async function exchange(form: URLSearchParams, authorization: string): Promise<Response> {
    exchanges += 1
    const consent = consents.get(form.get("code") ?? "")
    consents.delete(form.get("code") ?? "")
    const basic = `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}`
    const is_client = authorization === basic || form.get("client_secret") === CLIENT.secret
    const verifier = form.get("code_verifier") ?? ""
    const challenge = createHash("sha256").update(verifier).digest("base64url")
    const is_right =
      consent?.asked.get("code_challenge") === challenge &&
      consent.asked.get("redirect_uri") === form.get("redirect_uri")
    if (!consent || !is_client || !is_right)
      return Response.json({ error: "invalid_grant" }, { status: 400 })
    const { sub, ...claims } = consent.account
    const id_token = await sign(sub, { ...claims, nonce: consent.asked.get("nonce") })
    const access_token = `provider-token-of-${sub}`
    const told = { token_type: "Bearer", expires_in: 3600, scope: "openid email" }
    return Response.json({ access_token, id_token, ...told })
  }

  const sign = (sub: string, claims: object) =>
    new SignJWT({ ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "first" })
      .setIssuer(url)
      .setSubject(sub)
      .setAudience(CLIENT.id)
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(keys.privateKey)

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request): Promise<Response> {
      const { pathname } = new URL(request.url)
      if (pathname === "/keys") return Response.json({ keys: [jwk] })
      if (pathname === "/token") {
        const form = new URLSearchParams(await request.text())
        return exchange(form, request.headers.get("authorization") ?? "")
      }
      return Response.json({
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        jwks_uri: `${url}/keys`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["ES256"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
      })
    },
  })
  const url: string = `http://127.0.0.1:${server.port}`

  return {
    url,
    client: CLIENT,
    /** How often it was asked for tokens. */
    exchanges: () => exchanges,
    /** Somebody signs in with an account: resolves with what their browser brings back. */
    consent(authorization_url: string, account: IssuedAccount) {
      const { origin, searchParams: asked } = new URL(authorization_url)
      if (origin !== url || asked.get("client_id") !== CLIENT.id) throw new Error("another issuer")
      if (asked.get("code_challenge_method") !== "S256" || !asked.get("nonce"))
        throw new Error("every sign-in needs PKCE and a nonce")
      const code = randomBytes(16).toString("hex")
      consents.set(code, { asked, account })
      return { code, state: asked.get("state") ?? "", iss: url }
    },
    idToken: (account: IssuedAccount, nonce?: string) => {
      const { sub, ...claims } = account
      return sign(sub, { ...claims, ...(nonce && { nonce }) })
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}
