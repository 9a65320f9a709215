import { describe, expect, test } from "bun:test"
import { generateKeyPairSync } from "node:crypto"
import { eq } from "drizzle-orm"
import { auditLog } from "../../../src/audit-log/tables"
import { providerConfig } from "../../../src/auth/social/oauth-providers"
import { oauthProviders } from "../../../src/auth/social/tables"
import { newApplication } from "../../harness/application"
import { complaints, refusal } from "../../harness/client"
import { sharedService } from "../../harness/shared-service"

const service = await sharedService()

async function made() {
  const project = await service.project()
  const shop = await newApplication(service, project)
  const path = `/v1/auth/applications/${shop.id}/oauth-providers`
  const put = (provider: string, fields: object = {}) =>
    project.call("PUT", `${path}/${provider}`, {
      body: { environment: "live", client_id: "4711", enabled: true, ...fields },
    })
  const setup = async (provider: string) =>
    providerConfig(service.parts.auth, await shop.environment(), provider)
  return { project, shop, path, put, setup }
}

const SECRET = "planted-secret-of-google-Qx7z"
const ISSUER = "https://login.example.com"
const pem = (namedCurve: string) =>
  generateKeyPairSync("ec", { namedCurve }).privateKey.export({ type: "pkcs8", format: "pem" })

describe("a provider of sign-in", () => {
  test("is set up for one environment, shows the end of its secret alone, and is deleted once", async () => {
    const { project, path, put } = await made()
    const fields = { client_secret: SECRET, scopes: ["email", "email"] }
    const { status, body } = await put("google", fields)
    expect(status).toBe(200)
    expect(body.data).toEqual({
      ...{ provider: "google", environment: "live", client_id: "4711", client_secret: "****Qx7z" },
      ...{ scopes: ["email"], enabled: true, issuer: null, updated_at: expect.any(String) },
      callback_url: expect.stringMatching(/^https?:.+\/v1\/auth\/oauth\/google\/callback$/),
    })
    await put("github", { environment: "test" })
    const { data } = (await project.get(path)).body
    const shown = data.map((one: typeof body.data) => [one.environment, one.provider])
    expect(shown).toEqual([
      ["live", "google"],
      ["test", "github"],
    ])
    expect((await project.call("DELETE", `${path}/google?environment=live`)).status).toBe(200)
    const again = await project.call("DELETE", `${path}/google?environment=live`)
    expect(refusal(again)).toEqual([404, "not_found"])
  })

  test("keeps an absent secret, replaces all else, and null takes the secret away", async () => {
    const { put, setup } = await made()
    await put("google", { client_secret: SECRET, scopes: ["email"] })
    await put("google", { client_id: "4712" })
    const kept = await setup("google")
    expect(kept).toMatchObject({ client_id: "4712", client_secret: SECRET, scopes: [] })
    expect(refusal(await put("google", { client_secret: "****Qx7z" }))).toEqual([
      422,
      "validation_error",
    ])
    await put("google", { client_secret: null })
    expect((await setup("google")).client_secret).toBeNull()
    await put("google", { enabled: false })
    expect(setup("google")).rejects.toMatchObject({ code: "not_found" })
  })

  test("seals its secrets, and the audit log has none", async () => {
    const { project, put } = await made()
    const private_key = pem("P-256")
    const fields = { team_id: "TEAM", key_id: "KEY", private_key }
    await put("apple", { ...fields, client_secret: SECRET })
    const own = eq(oauthProviders.project_id, project.project_id)
    const [row] = await service.store.read.select().from(oauthProviders).where(own)
    expect(row?.client_secret).toStartWith("v1.")
    expect(row?.private_key).toStartWith("v1.")
    const of = eq(auditLog.project_id, project.project_id)
    const log = JSON.stringify(await service.store.read.select().from(auditLog).where(of))
    expect(log).toContain("oauth_provider.created")
    for (const one of [SECRET, "PRIVATE KEY", row?.client_secret]) expect(log).not.toContain(one)
  })

  test("with another issuer needs its secret again, because that issuer is told it", async () => {
    const { put, setup } = await made()
    await put("oidc-acme", { issuer: ISSUER, client_secret: SECRET })
    expect((await put("oidc-acme", { issuer: ISSUER })).status).toBe(200)
    const moved = await put("oidc-acme", { issuer: "https://evil.example" })
    expect(refusal(moved)).toEqual([422, "missing_required_field"])
    expect(await setup("oidc-acme")).toMatchObject({ issuer: ISSUER, client_secret: SECRET })
  })

  test.each([
    "http://login.example.com",
    "https://127.0.0.1",
    "https://localhost:8443",
    "https://169.254.169.254/latest",
    "https://[::1]/",
    "https://login.example.com?tenant=1",
    "https://ann@login.example.com",
    "ftp://login.example.com",
    "login",
  ])("has no issuer %s", async (issuer) => {
    const { put } = await made()
    expect(refusal(await put("oidc-acme", { issuer }))).toEqual([422, "invalid_url"])
  })

  test("takes the fields of its kind alone", async () => {
    const { put } = await made()
    expect(complaints(await put("google", { issuer: ISSUER, team_id: "T" }))).toEqual([
      "issuer",
      "team_id",
    ])
    expect(refusal(await put("oidc-acme"))).toEqual([422, "missing_required_field"])
    const wrong_key = await put("apple", { private_key: pem("P-384") })
    expect(refusal(wrong_key)).toEqual([422, "validation_error"])
    for (const name of ["facebook", "oidc-", "oidc", "oidc-UPPER", `oidc-${"a".repeat(41)}`])
      expect(refusal(await put(name))).toEqual([404, "not_found"])
  })

  test("of an application is out of reach of the secret of another one", async () => {
    const { project, path, put } = await made()
    await put("google")
    const other = (await newApplication(service, project)).server()
    const asked = { body: { client_id: "1", enabled: true } }
    expect(refusal(await other.call("GET", path))).toEqual([404, "not_found"])
    expect(refusal(await other.call("PUT", `${path}/google`, asked))).toEqual([404, "not_found"])
    expect(refusal(await other.call("DELETE", `${path}/google`))).toEqual([404, "not_found"])
  })

  test("is one of at most 20 of an environment", async () => {
    const { put } = await made()
    for (let at = 0; at < 20; at++) await put(`oidc-${at}`, { issuer: ISSUER })
    expect(refusal(await put("google"))).toEqual([409, "conflict"])
    expect((await put("oidc-7", { issuer: ISSUER })).status).toBe(200)
    expect((await put("google", { environment: "test" })).status).toBe(200)
  })
})
