import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { generate } from "otplib"
import { newApplication } from "../harness/application"
import { hashingFully } from "../harness/quick-passwords"
import type { TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { freshHome } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()
const PASSWORD = "correct-Horse-7"

async function shop() {
  const project = await service.project()
  await newApplication(service, project, { redirect_urls: ["https://app.example.test/"] })
  return project
}

async function run(project: TestProject, words: string[], stdin = "") {
  const env = { BELFRY_URL: url, BELFRY_API_KEY: project.key }
  const { exit, out, err } = await belfry(["users", ...words, "--yes"], { env, stdin })
  return { exit, err, out, data: out.startsWith("{") ? JSON.parse(out) : undefined }
}

function file(name: string, content: string): string {
  const path = join(freshHome(), name)
  writeFileSync(path, content)
  return path
}

test("a user is added, shown, changed, suspended, let in and deleted", async () => {
  const project = await shop()
  const create = [
    "create",
    "--email",
    "ann@people.test",
    "--email-verified",
    "on",
    "--password-stdin",
  ]
  const { id } = (await run(project, create, `${PASSWORD}\n`)).data
  expect((await run(project, create, `${PASSWORD}\n`)).exit).toBe(5)
  const update = ["update", id, "--name", "Ann", "--app-metadata", "role=editor"]
  expect((await run(project, update)).data).toMatchObject({
    ...{ name: "Ann", app_metadata: { role: "editor" }, email_verified: true },
  })
  expect((await run(project, ["suspend", id, "--reason", "abuse"])).data.status).toBe("suspended")
  expect((await run(project, ["activate", id])).data.status).toBe("active")
  const short = await run(project, ["password", id, "--password-stdin"], "short\n")
  expect([short.exit, short.err]).toEqual([7, expect.stringContaining("weak")])
  expect((await run(project, ["password", id, "--password-stdin"], "another-Horse-8\n")).exit).toBe(
    0,
  )
  const acting = await run(project, ["impersonate", id, "--reason", "ticket", "--quiet"])
  expect(acting.out.split(".")).toHaveLength(3)
  expect((await run(project, ["sessions", id])).out).not.toBe("")
  expect((await run(project, ["revoke-sessions", id])).data).toEqual({ revoked: 1 })
  const found = await run(project, ["list", "--q", "ann", "--environment", "live", "--json=email"])
  expect(found.out).toContain("ann@people.test")
  expect((await run(project, ["rm", id])).data).toEqual({ id, deleted: true })
  expect((await run(project, ["get", id])).exit).toBe(3)
})

test("an invitation is mailed", async () => {
  const project = await shop()
  const words = ["invite", "ann@mailbox.test", "--redirect-url", "https://app.example.test/"]
  expect((await run(project, words)).data).toMatchObject({ status: "invited" })
  expect((await run(project, words)).exit).toBe(5)
})

test("users come from a CSV file, and what is refused is in a file of its own", async () => {
  const project = await shop()
  using _ = hashingFully()
  const hash = await Bun.password.hash(PASSWORD, { algorithm: "bcrypt", cost: 4 })
  const path = file(
    "people.csv",
    `E-Mail;Full Name;Verified;Encrypted;metadata.plan;Phone\nann@people.test;Ann;yes;${hash};pro;+49 151 12345678\nbroken;Bob;no;;;\n`,
  )
  const flags = ["--map", "Encrypted=password_hash", "--hash", "bcrypt", "--environment", "test"]
  const { exit, data } = await run(project, ["import", path, ...flags])
  expect([exit, data]).toMatchObject([8, { imported: 1, failed: 1 }])
  expect(await Bun.file(data.errors).text()).toContain("3,broken,invalid_email")
  const [ann] = (await project.get("/v1/auth/users?environment=test")).body.data
  expect(ann).toMatchObject({
    ...{ email: "ann@people.test", name: "Ann", email_verified: true, metadata: { plan: "pro" } },
    ...{ phone_number: "+4915112345678", environment: "test" },
  })
  const again = await run(project, ["import", path, ...flags])
  expect([again.exit, again.data]).toMatchObject([8, { imported: 0, failed: 2 }])
})

test("plain passwords of a file are hashed 200 in a request", async () => {
  const project = await shop()
  const lines = Array.from({ length: 230 }, (_, at) =>
    JSON.stringify({ email: `p${at}@people.test`, password: PASSWORD, app_metadata: { at } }),
  )
  const path = file("people.ndjson", lines.join("\n"))
  const { data } = await run(project, ["import", path])
  expect(data).toMatchObject({ imported: 230, failed: 0 })
}, 60_000)

test("second factors of a user are added, shown and reset", async () => {
  const project = await shop()
  const { id } = (await run(project, ["create", "--email", "ann@people.test"])).data
  expect((await run(project, ["mfa", "reset", id])).exit).toBe(7)
  const { secret, backup_codes } = (await run(project, ["mfa", "enroll", id])).data
  expect(backup_codes).toHaveLength(10)
  expect((await run(project, ["mfa", "verify", id, "12345"])).exit).toBe(7)
  const code = await generate({ secret })
  expect((await run(project, ["mfa", "verify", id, code])).data).toMatchObject({
    ...{ enabled: true, method: "totp" },
  })
  const shown = await run(project, ["mfa", "get", id, "--json=mfa_enabled,mfa_methods"])
  expect(shown.data).toEqual({ mfa_enabled: true, mfa_methods: ["totp"] })
  expect((await run(project, ["mfa", "reset", id])).data.mfa_methods).toEqual([])
})

test("accounts elsewhere and passkeys of a user are listed, these with a token of theirs", async () => {
  const project = await shop()
  const { id } = (await run(project, ["create", "--email", "ann@people.test"])).data
  expect((await run(project, ["identities", id])).out.trim()).toBe("[]")
  const acting = await run(project, ["impersonate", id, "--reason", "ticket", "--quiet"])
  const listed = await run(project, ["passkeys", "--token-stdin"], acting.out)
  expect([listed.out.trim(), listed.exit]).toEqual(["[]", 0])
  expect((await run(project, ["passkeys", "--token-stdin"], "no")).exit).toBe(4)
})
