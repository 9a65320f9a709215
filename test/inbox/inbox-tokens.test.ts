import { describe, expect, test } from "bun:test"
import { createHmac, createPublicKey, generateKeyPairSync } from "node:crypto"
import { join } from "node:path"
import { eq } from "drizzle-orm"
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, exportJWK, jwtVerify } from "jose"
import { newId } from "../../src/core/ids"
import { accounts, projects } from "../../src/identity/tables"
import { signerOf } from "../../src/signing-keys/signing-keys"
import { signingKeys } from "../../src/signing-keys/tables"
import { atRest } from "../harness/at-rest"
import { client, complaints, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { NOBODY } from "../harness/mail"
import { locate, missing } from "../harness/peers"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import {
  addSubscriber,
  bearer,
  encode,
  INBOX,
  signedWith,
  subscriberApp,
  tokenOf,
} from "./subscriber-app"

const clock = movableClock()
const service = await sharedService()
const { store, anybody, parts } = service
const app = client(subscriberApp(service), undefined)

const TOKEN = "/v1/subscriber-inbox/token"
const DAY = 86_400

async function genuine() {
  const project = await service.project()
  const subscriber_id = await addSubscriber(service, project)
  const token = await tokenOf(project, subscriber_id)
  const { private_key } = await signerOf(store, parts.secrets, {
    project_id: project.project_id,
  })
  return {
    ...{ project, subscriber_id, token, private_key },
    header: decodeProtectedHeader(token),
    claims: decodeJwt(token),
  }
}

const reads = (token: string) => app.get(INBOX, bearer(token))
const status = async (token: string) => (await reads(token)).status
const keySet = (project_id: string) => anybody.get(`/v1/projects/${project_id}/jwks.json`)

describe("the token of a subscriber", () => {
  test("names the subscriber, the project and its end", async () => {
    const project = await service.project()
    const { project_id } = project
    const subscriber_id = await addSubscriber(service, project, "user_42")
    for (const named of [{ subscriber_id }, { external_id: "user_42" }]) {
      const { body } = await project.post(TOKEN, { ...named, ttl_seconds: 3600 })
      const { token } = body.data
      expect(body.data).toEqual({ token, subscriber_id, expires_in: 3600 })
      const header = { alg: "EdDSA", typ: "inbox+jwt", kid: expect.any(String) }
      expect(decodeProtectedHeader(token)).toEqual(header)
      const claims = decodeJwt(token)
      expect(claims).toMatchObject({
        iss: `http://belfry.test/v1/projects/${project_id}`,
        ...{ sub: subscriber_id, aud: "inbox" },
      })
      expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(3600)
      const seen = (await reads(token)).body.data
      expect(seen).toMatchObject({ kind: "subscriber", subscriber_id, project_id })
    }
  })

  test("lives for as long as was asked, at most a week", async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project)
    const ask = (ttl_seconds?: unknown) => project.post(TOKEN, { subscriber_id, ttl_seconds })
    expect((await ask()).body.data.expires_in).toBe(604_800)
    expect((await ask(60)).body.data.expires_in).toBe(60)
    expect((await ask(604_800)).body.data.expires_in).toBe(604_800)
    for (const wrong of [59, 604_801, 0, -1, 60.5, "3600", null]) {
      const refused = await ask(wrong)
      expect([wrong, ...refusal(refused)]).toEqual([wrong, 422, "validation_error"])
      expect(complaints(refused)).toEqual(["ttl_seconds"])
    }
    const { token } = (await ask(60)).body.data
    clock.advance({ seconds: 58 })
    expect(await status(token)).toBe(200)
    clock.advance({ seconds: 3 })
    expect(refusal(await reads(token))).toEqual([401, "unauthorized"])
  })

  test("is made for subscribers of the project only, named in one way", async () => {
    const [ours, theirs] = [await service.project(), await service.project()]
    const foreign = await addSubscriber(service, theirs, "theirs")
    const errors = new Set<string>()
    for (const named of [
      { subscriber_id: foreign },
      { subscriber_id: NOBODY },
      { subscriber_id: "x" },
      { external_id: "theirs" },
      { external_id: "a/b" },
    ]) {
      const refused = await ours.post(TOKEN, named)
      expect([named, ...refusal(refused)]).toEqual([named, 404, "subscriber_not_found"])
      errors.add(JSON.stringify(refused.body.error))
    }
    expect(errors.size).toBe(1)
    for (const odd of ["", "a\u0000b", "x".repeat(256), 7, null]) {
      for (const field of ["external_id", "subscriber_id"]) {
        const refused = await ours.post(TOKEN, { [field]: odd })
        expect([odd, refused.status, ...complaints(refused)]).toEqual([odd, 422, field])
      }
    }
    const none = await ours.post(TOKEN, {})
    expect([none.status, ...complaints(none)]).toEqual([422, "external_id"])
    const both = await ours.post(TOKEN, { subscriber_id: NOBODY, external_id: "x" })
    expect([both.status, ...complaints(both)]).toEqual([422, "subscriber_id"])
  })

  test("is made for an external id that looks like an id of ours", async () => {
    const project = await service.project()
    const external_id = newId()
    const subscriber_id = await addSubscriber(service, project, external_id)
    expect((await project.post(TOKEN, { external_id })).body.data.subscriber_id).toBe(subscriber_id)
    const as_id = await project.post(TOKEN, { subscriber_id: external_id })
    expect(refusal(as_id)).toEqual([404, "subscriber_not_found"])
  })

  test("is refused once its subscriber is blocked or erased, and not for an unsubscribed one", async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project, "user_42")
    const token = await tokenOf(project, subscriber_id)
    const become = (state: string) =>
      project.call("PATCH", `/v1/subscribers/${subscriber_id}`, { body: { status: state } })
    await become("unsubscribed")
    expect(await status(token)).toBe(200)
    await become("blocked")
    expect(refusal(await reads(token))).toEqual([401, "unauthorized"])
    await become("active")
    expect(await status(token)).toBe(200)
    const erasing = { confirm: "user_42" }
    const erased = await project.post(`/v1/subscribers/${subscriber_id}/erase`, erasing)
    expect(erased.status).toBe(200)
    expect(refusal(await reads(token))).toEqual([401, "unauthorized"])
  })

  test("is refused once its subscriber is deleted, or merged into another one", async () => {
    const project = await service.project()
    const [gone, from, into] = await Promise.all(
      ["gone", "from", "into"].map((name) => addSubscriber(service, project, name)),
    )
    const tokens = await Promise.all([gone, from, into].map((one = "") => tokenOf(project, one)))
    await project.call("DELETE", `/v1/subscribers/${gone}`)
    const merged = await project.post(`/v1/subscribers/${into}/merge`, { from_id: from })
    expect(merged.status).toBe(200)
    expect(await Promise.all(tokens.map(status))).toEqual([401, 401, 200])
  })

  test("ends with its project, and waits while its account is locked", async () => {
    const { token, project } = await genuine()
    const account = eq(accounts.id, project.account_id)
    await store.tx((tx) => tx.update(accounts).set({ status: "locked" }).where(account))
    expect(refusal(await reads(token))).toEqual([403, "account_locked"])
    await store.tx((tx) => tx.update(accounts).set({ status: "active" }).where(account))
    const deleting = { status: "deleting" as const }
    const own = eq(projects.id, project.project_id)
    await store.tx((tx) => tx.update(projects).set(deleting).where(own))
    expect(refusal(await reads(token))).toEqual([401, "unauthorized"])
  })

  test("is refused when anything of it was made by somebody else", async () => {
    const { token, header, claims, private_key } = await genuine()
    const other = await genuine()
    const stranger = generateKeyPairSync("ed25519")
    const [head = "", body = "", signature = ""] = token.split(".")
    const public_key = createPublicKey(private_key)
    const jwk = await exportJWK(public_key)
    const hmac = (secret: string | Buffer) => {
      const text = `${encode({ ...header, alg: "HS256" })}.${body}`
      return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`
    }
    const foreign_jwk = await exportJWK(stranger.publicKey)
    const forged: Record<string, string> = {
      "alg none": `${encode({ ...header, alg: "none" })}.${body}.`,
      "alg none with our signature": `${encode({ ...header, alg: "none" })}.${body}.${signature}`,
      "HS256 with the public key as PEM": hmac(public_key.export({ type: "spki", format: "pem" })),
      "HS256 with the public key as DER": hmac(public_key.export({ type: "spki", format: "der" })),
      "HS256 with the published x": hmac(Buffer.from(jwk.x ?? "", "base64url")),
      "HS256 with the published x as text": hmac(jwk.x ?? ""),
      "another key": signedWith(stranger.privateKey, header, claims),
      "a key it brings along": signedWith(
        stranger.privateKey,
        { ...header, jwk: foreign_jwk },
        claims,
      ),
      "the key of another project": signedWith(other.private_key, header, claims),
      "the key of another project, named": signedWith(other.private_key, other.header, claims),
      "no signature": `${head}.${body}.`,
      "a changed claim": `${head}.${encode({ ...claims, sub: other.subscriber_id })}.${signature}`,
      "two parts": `${head}.${body}`,
    }
    for (const [name, one] of Object.entries(forged)) {
      expect([name, ...refusal(await reads(one))]).toEqual([name, 401, "unauthorized"])
    }
    expect(await status(token)).toBe(200)
  })

  test("is refused with our own signature when it was made for something else", async () => {
    const { header, claims, private_key } = await genuine()
    const other = await genuine()
    const { sub: _, ...nobody } = claims
    const { exp: __, ...endless } = claims
    const wrong: Record<string, [object, object]> = {
      "another audience": [header, { ...claims, aud: "http://belfry.test/v1" }],
      "no audience": [header, { ...claims, aud: undefined }],
      "a subscriber of another project": [header, { ...claims, sub: other.subscriber_id }],
      "the issuer of another project": [header, { ...claims, iss: other.claims.iss }],
      "an issuer alike": [header, { ...claims, iss: `${claims.iss}/` }],
      "an issuer that is no project": [
        header,
        { ...claims, iss: "http://belfry.test/v1/projects/x" },
      ],
      "an issuer elsewhere": [header, { ...claims, iss: `http://evil.test/${claims.iss}` }],
      "the issuer of the console": [header, { ...claims, iss: "http://belfry.test/console" }],
      "another type": [{ ...header, typ: "at+jwt" }, claims],
      "no type": [{ ...header, typ: undefined }, claims],
      "another key id": [{ ...header, kid: newId() }, claims],
      "no key id": [{ ...header, kid: undefined }, claims],
      "a key id that is no text": [{ ...header, kid: 7 }, claims],
      "a list of issuers": [header, { ...claims, iss: [claims.iss] }],
      "a key elsewhere": [{ ...header, jku: "https://evil.test/" }, claims],
      "a key of its own": [{ ...header, jwk: { kty: "OKP" } }, claims],
      "something critical": [{ ...header, crit: ["exp"] }, claims],
      nobody: [header, nobody],
      "no end": [header, endless],
      "a subscriber that is no id": [header, { ...claims, sub: "x' or 1=1" }],
      "not yet": [header, { ...claims, nbf: (claims.iat ?? 0) + 600 }],
    }
    for (const [name, [head, body]] of Object.entries(wrong)) {
      const answer = await reads(signedWith(private_key, head, body))
      expect([name, ...refusal(answer)]).toEqual([name, 401, "unauthorized"])
    }
    expect(await status(signedWith(private_key, header, claims))).toBe(200)
  })

  test("is no token of a person, and that of a person is none of a subscriber", async () => {
    const { token } = await genuine()
    expect(refusal(await anybody.get("/v1/session", bearer(token)))).toEqual([403, "forbidden"])
    const { owner } = await team(service)
    const asked = await owner.get("/v1/session")
    expect(asked.status).toBe(200)
  })

  test("counts in the header for keys as no key at all", async () => {
    const { token, project } = await genuine()
    const as_key = await app.get(INBOX, { "x-api-key": token })
    expect(refusal(as_key)).toEqual([401, "unauthorized"])
    const both = await app.get(INBOX, { ...bearer(token), "x-api-key": project.key })
    expect(refusal(both)).toEqual([401, "unauthorized"])
  })
})

describe("the keys of these tokens", () => {
  test("are published without their private half, as a plain key set", async () => {
    const { project, token, header } = await genuine()
    const answer = await keySet(project.project_id)
    expect(answer.status).toBe(200)
    expect(answer.headers.get("content-type")).toStartWith("application/json")
    expect(answer.body).toEqual({
      keys: [
        {
          kty: "OKP",
          crv: "Ed25519",
          x: expect.any(String),
          kid: header.kid,
          alg: "EdDSA",
          use: "sig",
        },
      ],
    })
    const { iss = "" } = decodeJwt(token)
    const proven = await jwtVerify(token, createLocalJWKSet(answer.body), {
      issuer: iss,
      audience: "inbox",
    })
    expect(proven.payload.iss).toBe(iss)
  })

  describe.skipIf(missing("node"))("prove to a program on Node, which has nothing else,", () => {
    const prove = async (key_set: string, issuer: string, token: string) => {
      const cmd = [locate("node") ?? "", join(import.meta.dir, "verify-token.mjs"), key_set, issuer]
      const child = Bun.spawn({ cmd: [...cmd, token], stdio: ["ignore", "pipe", "pipe"] })
      const [text, trouble] = await Promise.all([child.stdout.text(), child.stderr.text()])
      await child.exited
      if (trouble !== "") throw new Error(trouble)
      return JSON.parse(text)
    }

    test("what is ours, and no other token", async () => {
      const { project, subscriber_id, token, private_key, header, claims } = await genuine()
      const other = await genuine()
      const { url } = service.listen()
      const key_set = `${url}/v1/projects/${project.project_id}/jwks.json`
      const ask = (one: string) => prove(key_set, claims.iss ?? "", one)
      expect(await ask(token)).toMatchObject({ sub: subscriber_id, aud: "inbox" })
      const [, body = ""] = token.split(".")
      const past = { ...claims, exp: (claims.iat ?? 0) - 60 }
      const refused: Record<string, string> = {
        ERR_JWT_EXPIRED: signedWith(private_key, header, past),
        ERR_JWKS_NO_MATCHING_KEY: other.token,
        ERR_JWS_SIGNATURE_VERIFICATION_FAILED: signedWith(other.private_key, header, claims),
        ERR_JWT_CLAIM_VALIDATION_FAILED: signedWith(private_key, header, { ...claims, aud: "x" }),
        ERR_JOSE_ALG_NOT_ALLOWED: `${encode({ ...header, alg: "none" })}.${body}.`,
      }
      for (const [code, one] of Object.entries(refused)) expect(await ask(one)).toEqual({ code })
    })
  })

  test("tell a project without any as little as one that is not there", async () => {
    const { project_id } = await service.project()
    const answers = [await keySet(project_id), await keySet(NOBODY), await keySet("x")]
    for (const answer of answers) expect(refusal(answer)).toEqual([404, "not_found"])
    expect(new Set(answers.map(({ body }) => JSON.stringify(body.error))).size).toBe(1)
  })

  test("are sealed at rest", async () => {
    const { project, private_key } = await genuine()
    const [row] = await store.read
      .select()
      .from(signingKeys)
      .where(eq(signingKeys.project_id, project.project_id))
    expect(row?.private_key).toStartWith("v1.")
    const { d = "" } = private_key.export({ format: "jwk" })
    const kept = await atRest(service)
    expect(d).toHaveLength(43)
    const forms = [d, Buffer.from(d, "base64url").toString("latin1"), "PRIVATE KEY"]
    for (const form of forms) expect(kept.includes(form)).toBe(false)
  })

  test("are one for everybody that asks at once for the first one", async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project)
    const tokens = await Promise.all(
      Array.from({ length: 8 }, () => tokenOf(project, subscriber_id)),
    )
    expect(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size).toBe(1)
    expect((await keySet(project.project_id)).body.keys).toHaveLength(1)
  })

  test("give way to a new one after 90 days, and prove their tokens to the end", async () => {
    const { project, subscriber_id, header } = await genuine()
    const kids = async () =>
      (await keySet(project.project_id)).body.keys.map(({ kid }: { kid: string }) => kid)
    clock.advance({ seconds: 90 * DAY - 60 })
    const last = await tokenOf(project, subscriber_id)
    expect(decodeProtectedHeader(last).kid).toBe(String(header.kid))
    clock.advance({ seconds: 120 })
    const renewed = await tokenOf(project, subscriber_id)
    const kid = String(decodeProtectedHeader(renewed).kid)
    expect(kid).not.toBe(String(header.kid))
    expect(await kids()).toEqual([String(header.kid), kid])
    expect([await status(last), await status(renewed)]).toEqual([200, 200])

    clock.advance({ seconds: 7 * DAY })
    expect(await kids()).toEqual([kid])
    expect(await status(last)).toBe(401)
    clock.advance({ seconds: 90 * DAY })
    await tokenOf(project, subscriber_id)
    const own = eq(signingKeys.project_id, project.project_id)
    const rows = await store.read.select().from(signingKeys).where(own)
    expect(rows.map(({ id }) => id)).not.toContain(String(header.kid))
  })
})
