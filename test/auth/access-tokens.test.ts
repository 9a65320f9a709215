import { describe, expect, test } from "bun:test"
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import { eq } from "drizzle-orm"
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose"
import { setUser } from "../../src/auth/end-users"
import { memberships, organizations } from "../../src/auth/organizations/tables"
import { userSessions, users } from "../../src/auth/tables"
import { ApiError } from "../../src/core/errors"
import { newId } from "../../src/core/ids"
import { now } from "../../src/core/time"
import { openSession } from "../../src/sign-in/person-sessions"
import { publishedKeys, signerIn } from "../../src/signing-keys/signing-keys"
import { newApplication, type TestApplication } from "../harness/application"
import { movableClock } from "../harness/clock"
import { person } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { signInAgain, signUp } from "./signed-up"

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service
const { tokens } = parts.auth

const shopOf = async (options: Parameters<typeof newApplication>[2] = {}) =>
  newApplication(service, await service.project(), options)

const encode = (part: object | string) =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url")

function signedBy(key: KeyObject, head: object, claims: object): string {
  const text = `${encode(head)}.${encode(claims)}`
  const mode = { key, dsaEncoding: "ieee-p1363" as const }
  return `${text}.${sign("sha256", Buffer.from(text), mode).toString("base64url")}`
}

const keysOf = ({ id }: TestApplication) => publishedKeys(store.read, { application_id: id })

/** 401 and no word of the reason, or what it proves. */
const proven = (token: string) =>
  tokens.prove(token).then(
    ({ live }) => (live ? "live" : "over"),
    (error) => (error instanceof ApiError ? error.code : error),
  )

describe("the access token of a user", () => {
  test("says who, where, until when and what they are in the active organization", async () => {
    const shop = await shopOf({ session_duration_minutes: 5 })
    const { user, session, organization, tokens: pair } = await signUp(service, shop)
    const token = pair.access_token
    expect(pair).toMatchObject({ token_type: "Bearer", expires_in: 300 })
    const header = { alg: "ES256", typ: "at+jwt", kid: expect.any(String) }
    expect(decodeProtectedHeader(token)).toEqual(header)
    const { iat = 0, ...claims } = decodeJwt(token)
    expect(claims).toEqual({
      iss: `http://belfry.test/v1/auth/applications/${shop.id}`,
      ...{ sub: user.id, aud: shop.id, env: "live", sid: session.id, jti: expect.any(String) },
      ...{ exp: iat + 300, amr: ["pwd"], auth_time: expect.any(Number) },
      ...{ org_id: organization.id, org_role: "member", org_permissions: [] },
      orgs: [{ id: organization.id, role: "member" }],
      orgs_truncated: false,
      app_metadata: {},
    })
    const keys = createLocalJWKSet({ keys: await keysOf(shop) })
    const rules = { issuer: String(claims.iss), audience: shop.id, typ: "at+jwt" }
    const { payload } = await jwtVerify(token, keys, { ...rules, currentDate: new Date() })
    expect(payload.sub).toBe(user.id)
  })

  test("shows the named metadata in order, as far as 1 KiB reaches", async () => {
    const settings = { token_claims: ["role", "none", "large", "seats"] }
    const shop = await shopOf({ settings })
    const shown = async (app_metadata: Record<string, unknown>) => {
      const { tokens: pair } = await signUp(service, shop, { app_metadata })
      return decodeJwt(pair.access_token).app_metadata
    }
    const large = "x".repeat(900)
    expect(await shown({ seats: 3, role: "editor", hidden: 1 })).toEqual({
      role: "editor",
      seats: 3,
    })
    expect(await shown({ large, seats: 3, role: "editor" })).toEqual({
      role: "editor",
      large,
      seats: 3,
    })
    expect(await shown({ large: `${large}${large}`, seats: 3, role: "editor" })).toEqual({
      role: "editor",
    })
  })

  test("names 50 organizations, the active one first and then by name", async () => {
    const shop = await shopOf()
    const { user, organization } = await signUp(service, shop)
    const environment = await shop.environment()
    const at = { created_at: now(), updated_at: now() }
    const own = { project_id: shop.project_id, environment_id: environment.id }
    const ids: string[] = []
    for (let n = 50; n > 0; n--) {
      const id = newId()
      ids.unshift(id)
      const name = `Team ${String(n).padStart(2, "0")}`
      await store.tx(async (tx) => {
        const names = { application_id: shop.id, name, slug: id }
        await tx.insert(organizations).values({ id, ...own, ...names, ...at })
        const role = { role: `r${n}`, permissions: [`p${n}`] }
        const seat = { id: newId(), organization_id: id, user_id: user.id }
        await tx.insert(memberships).values({ ...seat, ...own, ...role, ...at })
      })
    }
    const third = ids[2] ?? ""
    const again = await signInAgain(service, shop, user.id, { organization_id: third })
    const claims = decodeJwt(again.tokens.access_token) as Record<string, unknown>
    expect(claims).toMatchObject({ org_id: third, org_role: "r3", org_permissions: ["p3"] })
    expect(claims.orgs_truncated).toBe(true)
    const named = (claims.orgs as { id: string }[]).map(({ id }) => id)
    const others = [organization.id, ...ids].filter((id) => id !== third)
    expect(named).toEqual([third, ...others].slice(0, 50))
    const elsewhere = await signInAgain(service, shop, user.id, { organization_id: newId() })
    expect(elsewhere.organization.id).toBe(third) // the last one
  })

  test("of somebody who acts as the user says so, and ends with their session", async () => {
    const shop = await shopOf()
    const { user, organization } = await signUp(service, shop)
    const environment = await shop.environment()
    const token = await store.tx(async (tx) => {
      const columns = {
        ...{ user_id: user.id, project_id: shop.project_id, application_id: shop.id },
        ...{ environment_id: environment.id, organization_id: organization.id },
        ...{ ip: null, user_agent: null, amr: [], auth_time: now() },
        act: { id: "support", reason: "a question" },
      }
      const session = await openSession(tx, userSessions, columns, 900)
      const [row] = await tx.select().from(users).where(eq(users.id, user.id))
      if (!row) throw new Error("the user is gone")
      const active = [{ ...organization, permissions: [], mfa_required: false }]
      return tokens.sign(tx, { environment, user: row, session, organizations: active })
    })
    const { act, iat = 0, exp } = decodeJwt(token)
    expect([act, exp]).toEqual([{ sub: "support" }, iat + 900])
    expect((await tokens.prove(token)).live?.session.act).toMatchObject({ id: "support" })
  })

  test("is over with its time, its session, its user's activity and its application", async () => {
    const shop = await shopOf({ session_duration_minutes: 1 })
    const [first, second] = [await signUp(service, shop), await signUp(service, shop)]
    const token = first.tokens.access_token
    expect(await proven(token)).toBe("live")
    clock.advance({ seconds: 61 })
    expect(await proven(token)).toBe("over")
    const again = await signInAgain(service, shop, first.user.id)
    const suspended = { status: "suspended" as const }
    const [row] = await store.read.select().from(users).where(eq(users.id, first.user.id))
    if (row) await store.tx((tx) => setUser(tx, row, suspended))
    expect(await proven(again.tokens.access_token)).toBe("over")
    const other = await signInAgain(service, shop, second.user.id)
    const ended = { revoked_at: now() }
    const mine = eq(userSessions.id, other.session.id)
    await store.tx((tx) => tx.update(userSessions).set(ended).where(mine))
    expect(await proven(other.tokens.access_token)).toBe("over")
  })

  test("is refused where another hand made it", async () => {
    const shop = await shopOf()
    const [peer, foreign] = [await newApplication(service, shop), await shopOf()]
    const { tokens: pair } = await signUp(service, shop)
    const token = pair.access_token
    const head = decodeProtectedHeader(token)
    const claims = decodeJwt(token)
    const signerOf = (application_id: string, project_id: string) =>
      store.tx((tx) => signerIn(tx, parts.secrets, { application_id, project_id }))
    const ours = await signerOf(shop.id, shop.project_id)
    const theirs = await signerOf(peer.id, peer.project_id)
    const good = (changes: object, header: object = {}) =>
      signedBy(ours.private_key, { ...head, ...header }, { ...claims, ...changes })
    expect(await proven(good({}))).toBe("live")

    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const own = { jwk: publicKey.export({ format: "jwk" }) }
    const [a = "", b = "", c = ""] = token.split(".")
    const text = `${encode({ ...head, alg: "HS256" })}.${b}`
    const public_pem = createPublicKey(ours.private_key).export({ type: "spki", format: "pem" })
    const hmac = createHmac("sha256", public_pem).update(text).digest("base64url")
    const issuer = String(claims.iss)
    const { token: console_token } = await person(service)
    const bad: Record<string, string> = {
      "alg none": `${encode({ ...head, alg: "none" })}.${b}.`,
      "alg none with the signature": `${encode({ ...head, alg: "none" })}.${b}.${c}`,
      "HS256 with the public key": `${text}.${hmac}`,
      "another algorithm": good({}, { alg: "EdDSA" }),
      jku: good({}, { jku: `${issuer}/jwks.json` }),
      jwk: signedBy(privateKey, { ...head, ...own }, claims),
      "jwk and our signature": good({}, own),
      x5u: good({}, { x5u: "https://evil.test" }),
      crit: good({}, { crit: ["exp"] }),
      "an unknown kid": good({}, { kid: newId() }),
      "no kid": good({}, { kid: undefined }),
      "the key of another application": signedBy(
        theirs.private_key,
        { ...head, kid: theirs.kid },
        claims,
      ),
      "our kid and another key": signedBy(theirs.private_key, head, claims),
      "another application": good({ iss: tokens.issuerOf(peer.id), aud: peer.id }),
      "another project": good({ iss: tokens.issuerOf(foreign.id), aud: foreign.id }),
      "an unknown application": good({ iss: tokens.issuerOf(newId()) }),
      "another audience": good({ aud: peer.id }),
      "another issuer": good({ iss: issuer.replace("belfry.test", "evil.test") }),
      "the issuer of an inbox": good({ iss: `http://belfry.test/v1/projects/${shop.project_id}` }),
      "another type": good({}, { typ: "inbox+jwt" }),
      "no session": good({ sid: undefined }),
      "no end": good({ exp: undefined }),
      "an unknown environment": good({ env: "staging" }),
      "a changed body": `${a}.${encode({ ...claims, sub: newId() })}.${c}`,
      "a cut signature": token.slice(0, -2),
      "the token of a person of the console": console_token,
      nothing: "",
    }
    for (const [what, forged] of Object.entries(bad))
      expect([what, await proven(forged)]).toEqual([what, "unauthorized"])
    const over = {
      "another user": good({ sub: newId() }),
      "another environment": good({ env: "test" }),
      "an end in the past": good({ iat: 1, exp: 2 }),
    }
    for (const [what, old] of Object.entries(over))
      expect([what, await proven(old)]).toEqual([what, "over"])
    const bearers = [...Object.values(bad).filter((one) => one !== ""), ...Object.values(over)]
    for (const bearer of bearers) {
      const headers = { authorization: `Bearer ${bearer}` }
      const answer = await service.anybody.get("/v1/auth/users/me", headers)
      expect(answer.status).toBe(bearer === console_token ? 403 : 401)
    }
  })
})
