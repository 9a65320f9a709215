import { expect, test } from "bun:test"
import { pbkdf2Sync, randomBytes } from "node:crypto"
import { eq } from "drizzle-orm"
import { login } from "../../src/auth/login"
import { users } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { needsRehash } from "../../src/sign-in/foreign-hashes"
import { newApplication } from "../harness/application"
import { refusal } from "../harness/client"
import { hashingFully } from "../harness/quick-passwords"
import { sharedService } from "../harness/shared-service"
import { sizes } from "../harness/sizes"

const service = await sharedService()
const PATH = "/v1/auth/users/import"

async function shop() {
  const project = await service.project()
  return { project, app: await newApplication(service, project) }
}

const hashes = [
  (password: string) => Bun.password.hash(password, { algorithm: "bcrypt", cost: 4 }),
  (password: string) =>
    Bun.password.hash(password, { algorithm: "argon2i", memoryCost: 64, timeCost: 2 }),
  async (password: string) => {
    const salt = randomBytes(9).toString("hex")
    const key = pbkdf2Sync(password, salt, 1000, 32, "sha256").toString("base64")
    return `pbkdf2_sha256$1000$${salt}$${key}`
  },
]

test("imported people sign in with their old passwords, whose hashes are ours from then on", async () => {
  using _ = hashingFully()
  const { project, app } = await shop()
  const people = await Promise.all(
    Array.from({ length: sizes.imported_users }, async (_, at) => {
      const password = `Old-Password-${at}-${newId()}`
      const password_hash = await hashes[at % hashes.length]?.(password)
      return { email: `person${at}@people.test`, password, password_hash }
    }),
  )
  const listed = people.map(({ password: _, ...item }) => item)
  const answer = await project.post(PATH, { users: listed })
  expect(answer.body.data).toEqual({ imported: people.length, failed: [] })
  expect((await project.get("/v1/auth/users")).body.meta.total).toBe(people.length)
  const environment = await app.environment()
  const from = { ip: null, user_agent: null }
  const signIn = (email: string, password: string) =>
    login(service.parts.auth, environment, { email, password }, from)
  await expect(signIn("person0@people.test", "another-Password-1")).rejects.toThrow()
  for (const { email, password } of people) {
    const signed = await signIn(email, password)
    expect("user" in signed && signed.user.email).toBe(email)
  }
  const kept = await service.store.read
    .select({ hash: users.password_hash })
    .from(users)
    .where(eq(users.environment_id, environment.id))
  expect(kept.filter(({ hash }) => needsRehash(hash ?? ""))).toEqual([])
}, 600_000)

test("a broken item stops no other one, and each says what is wrong", async () => {
  const { project } = await shop()
  await project.post("/v1/auth/users", { email: "there@people.test" })
  const { body } = await project.post(PATH, {
    hash: "bcrypt",
    users: [
      { email: "ann@people.test", email_verified: true, app_metadata: { role: "x" } },
      { email: "THERE@people.test" },
      { email: "ann@people.test" },
      { email: "ann" },
      { name: "Nobody" },
      "text",
      { email: "weak@people.test", password: "short" },
      { email: "dear@people.test", password_hash: `$2b$15$${"a".repeat(53)}` },
      { email: "other@people.test", password_hash: `pbkdf2_sha256$1$x$${"A".repeat(43)}=` },
      { email: "good@people.test", password: "correct-Horse-7" },
    ],
  })
  expect(body.data.imported).toBe(2)
  const failed = body.data.failed.map((one: { index: number; error: { code: string } }) => [
    one.index,
    one.error.code,
  ])
  expect(failed).toEqual([
    [1, "conflict"],
    [2, "conflict"],
    [3, "invalid_email"],
    [4, "missing_required_field"],
    [5, "validation_error"],
    [6, "weak_password"],
    [7, "validation_error"],
    [8, "validation_error"],
  ])
  expect((await project.get("/v1/events?types=user.created")).body.data).toHaveLength(1)
})

test("an import has 1,000 users at most, of which 200 have plain passwords", async () => {
  const { project } = await shop()
  const many = (length: number, fields: object) =>
    Array.from({ length }, (_, at) => ({ email: `a${at}@people.test`, ...fields }))
  const too_many = await project.post(PATH, { users: many(1001, {}) })
  expect(refusal(too_many)).toEqual([422, "validation_error"])
  const plain = await project.post(PATH, { users: many(201, { password: "correct-Horse-7" }) })
  expect(refusal(plain)).toEqual([422, "validation_error"])
  expect((await project.post(PATH, { users: many(1000, {}) })).body.data.imported).toBe(1000)
  const key = { "idempotency-key": newId() }
  const one = { users: [{ email: "once@people.test" }] }
  const answers = [await project.post(PATH, one, key), await project.post(PATH, one, key)]
  expect(answers.map(({ body }) => body.data.imported)).toEqual([1, 1])
})
