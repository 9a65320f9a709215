import { expect, test } from "bun:test"
import { newApplication } from "../harness/application"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import { onTerminal } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

test("an application is made, set up, and its secret and keys are replaced", async () => {
  const project = await service.project()
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const shown = await onTerminal(["apps", "create", "--name", "Shop", "--no-color"], { env })
  expect(shown.exit).toBe(0)
  for (const part of ["svca_live_pub_", "svca_test_pub_", "svca_sec_", "cannot be shown again"])
    expect(shown.out).toContain(part)
  const [{ id }] = (await project.get("/v1/auth/applications")).body.data
  const json = async (...words: string[]) => {
    const { exit, out, err } = await belfry(["applications", ...words, "--json"], { env })
    expect([words, exit, err]).toEqual([words, 0, ""])
    return JSON.parse(out)
  }
  const origin = "https://shop.example.com"
  const changed = await json("update", id, "--session-minutes", "30", "--origin", origin)
  expect(changed).toMatchObject({ session_duration_minutes: 30, allowed_origins: [origin] })
  const wanted = ["methods.phone_otp=true", "mfa.policy=off", 'token_claims=["plan"]']
  const live = await json("environments", "set", id, "live", ...wanted)
  expect(live).toMatchObject({ mfa: { policy: "off" }, token_claims: ["plan"] })
  expect(live.methods).toMatchObject({ phone_otp: true, password: true })
  const refused = await belfry(["apps", "environments", "set", id, "live", "mfa.policy=no"], {
    env,
  })
  expect([refused.exit, refused.err]).toEqual([7, expect.stringContaining("mfa.policy")])

  const { secret_key } = await json("rotate-secret", id, "--overlap", "1")
  expect(secret_key).toMatch(/^svca_sec_/)
  const key = await json("keys", "create", id, "--environment", "live", "--name", "Website")
  const legacy = await json("keys", "create", id, "--legacy", "on", "--name", "Old")
  expect(await json("keys", "rm", id, key.id, "--yes")).toEqual({ id: key.id, deleted: true })
  const names = await belfry(["apps", "keys", "list", id, "--quiet"], { env })
  expect(names.out).toContain(legacy.id)
  expect(names.out).not.toContain(key.id)
})

test("a person deletes one by its slug", async () => {
  const { owner, project_id } = await team(service)
  const home = { "x-project-id": project_id }
  const { data } = (await owner.post("/v1/auth/applications", { name: "Shop" }, home)).body
  const { key } = await service.project()
  const byKey = await belfry(["apps", "rm", data.id, "--yes"], {
    env: { BELFRY_URL: url, BELFRY_API_KEY: key },
  })
  expect(byKey.exit).toBe(3)
  const answer = { body: { confirm: "shop" }, headers: home }
  expect((await owner.call("DELETE", `/v1/auth/applications/${data.id}`, answer)).status).toBe(200)
})

test("a sign-in provider is set up with secrets from files, and shown without them", async () => {
  const project = await service.project()
  const { id } = await newApplication(service, project)
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const run = async (words: string[], stdin = "") => {
    const all = ["apps", "oauth", ...words, "--yes", "--json"]
    const { exit, out, err } = await belfry(all, { env, stdin })
    return { exit, err, data: exit === 0 ? JSON.parse(out) : undefined }
  }
  const google = ["set", id, "google", "--client-id", "4711.example"]
  const made = await run([...google, "--client-secret", "@-"], "quiet-river-secret\n")
  expect(made.data).toMatchObject({ provider: "google", environment: "live", enabled: true })
  expect(JSON.stringify(made.data)).not.toContain("quiet-river")
  const off = await run([...google, "--scope", "openid", "--disabled"])
  expect(off.data).toMatchObject({ enabled: false, scopes: ["openid"] })
  expect(off.data.client_secret).toBe(made.data.client_secret)
  expect((await run(["list", id])).data).toMatchObject([{ provider: "google", enabled: false }])
  expect((await run(["rm", id, "google"])).exit).toBe(0)
  expect((await run(["rm", id, "google"])).exit).toBe(3)
})
