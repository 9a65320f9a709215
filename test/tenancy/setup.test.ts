import { expect, test } from "bun:test"
import { existsSync, readFileSync, statSync } from "node:fs"
import { instanceValues } from "../../src/store/tables"
import { bootstrap } from "../../src/tenancy/operator"
import { ensureFirst } from "../../src/tenancy/setup"
import { client, complaints, refusal } from "../harness/client"
import { signedIn } from "../harness/people"
import { type TestService, testService } from "../harness/service"
import { BEHIND_PROXY, PASSWORD, stranger } from "../identity/entrance"

const owner = (setup_token: string, more: object = {}) => ({
  setup_token,
  email: "Ann@Example.test",
  password: PASSWORD,
  name: "Ann",
  account_name: "Acme",
  ...more,
})

const setUp = (service: TestService, body: object) => stranger(service).post("/v1/setup", body)

const required = async (service: TestService) =>
  (await stranger(service).get("/v1/setup")).body.data.required

test("the token of the first start makes the first owner, once", async () => {
  await using service = await testService(BEHIND_PROXY)
  const begun = await service.parts.setup.begin()
  const token = begun?.token ?? ""
  expect(token).toMatch(/^belfry_setup_[\w-]{43}$/)
  expect(await required(service)).toBe(true)

  const made = await setUp(service, owner(token))
  expect(made.status).toBe(201)
  const { session, account, project, api_key } = made.body.data
  expect(session.user).toMatchObject({ email: "Ann@Example.test", name: "Ann", operator: true })
  expect(session.accounts).toEqual([{ id: account.id, name: "Acme", role: "owner" }])
  expect(account).toMatchObject({ name: "Acme", slug: "acme", plan: "enterprise" })
  expect(account.usage.email).toEqual({ used: 0, limit: null, remaining: null })
  expect(project).toMatchObject({ account_id: account.id, name: "Default", status: "active" })
  expect(api_key).toMatchObject({ project_id: project.id, scopes: ["*"], status: "active" })
  expect(api_key.created_by).toEqual({ type: "user", id: session.user.id })

  const key = client(service.app, api_key.key)
  expect((await key.get("/v1/emails")).status).toBe(200)
  const me = signedIn(service.app, session.access_token)
  expect((await me.get("/v1/accounts/me")).body.data.id).toBe(account.id)

  const { data: log } = (await me.get("/v1/audit-log?action=api_key.created")).body
  expect(log[0].actor).toEqual({ type: "user", id: session.user.id, name: "Ann" })

  expect(await required(service)).toBe(false)
  const again = owner(token, { email: "eve@example.test" })
  expect(refusal(await setUp(service, again))).toEqual([404, "not_found"])
  expect(existsSync(begun?.path ?? "")).toBe(false)
  expect(await service.parts.setup.begin()).toBeUndefined()
})

test("the token is the same at every start, in a file for its owner only, and sealed", async () => {
  await using service = await testService()
  const [first, second] = [await service.parts.setup.begin(), await service.parts.setup.begin()]
  expect(second).toEqual(first)
  const { path = "", token = "" } = first ?? {}
  expect(readFileSync(path, "utf8")).toBe(`${token}\n`)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const rows = JSON.stringify(await service.store.read.select().from(instanceValues))
  expect(rows).not.toContain(token)
})

test("two who come at once: one becomes the owner", async () => {
  await using service = await testService(BEHIND_PROXY)
  const { token = "" } = (await service.parts.setup.begin()) ?? {}
  const emails = ["a@example.test", "b@example.test", "c@example.test"]
  const answers = await Promise.all(emails.map((email) => setUp(service, owner(token, { email }))))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404])
})

test("a wrong token, a weak password and a wrong body are refused, and set nothing up", async () => {
  await using service = await testService(BEHIND_PROXY)
  const early = await setUp(service, owner("belfry_setup_"))
  const { token = "" } = (await service.parts.setup.begin()) ?? {}
  const wrong = await setUp(service, owner(`${token}x`))
  expect([refusal(early), refusal(wrong)]).toEqual([
    [401, "unauthorized"],
    [401, "unauthorized"],
  ])
  const weak = await setUp(service, owner(token, { password: "password" }))
  expect(refusal(weak)).toEqual([422, "weak_password"])
  expect(weak.body.error.details).toEqual({ missing: ["upper", "digit", "symbol"] })
  const guessing = await setUp(service, owner("x", { password: "password" }))
  expect(refusal(guessing)).toEqual([401, "unauthorized"]) // the token comes first
  const odd = await setUp(service, owner(token, { email: "Ann <ann@example.test>" }))
  expect(refusal(odd)).toEqual([422, "invalid_email"])
  expect(complaints(await setUp(service, { setup_token: token }))).toEqual([
    "email",
    "password",
    "account_name",
  ])
  expect(await required(service)).toBe(true)
})

test("what `up` began is adopted with its project and its key", async () => {
  await using service = await testService(BEHIND_PROXY)
  const { store, parts } = service
  const options = { keep_key: true, new_key: false }
  const first = await ensureFirst(store, parts.secrets, options)
  const { token = "" } = (await parts.setup.begin()) ?? {}
  expect(await required(service)).toBe(true)
  const { body } = await setUp(service, owner(token, { project_name: "Shop" }))
  expect(body.data.account).toMatchObject({ id: first.account_id, name: "Acme" })
  expect(body.data.project).toMatchObject({ id: first.project_id, name: "Shop" })
  const old = client(service.app, first.api_key ?? "")
  expect((await old.get("/v1/emails")).status).toBe(200)
  expect(await ensureFirst(store, parts.secrets, options)).toEqual({ ...first, created: false })
})

test("the local command does it without the token, with the same result, and only once", async () => {
  await using service = await testService(BEHIND_PROXY)
  const { parts } = service
  const { token = "", path = "" } = (await parts.setup.begin()) ?? {}
  const wanted = { ...owner(""), project_name: "Default" }
  const made = await bootstrap(parts, wanted)
  expect(made.session.user).toMatchObject({ operator: true, email: "Ann@Example.test" })
  expect((await client(service.app, made.api_key.key).get("/v1/emails")).status).toBe(200)
  expect(refusal(await setUp(service, owner(token)))).toEqual([404, "not_found"])
  expect(existsSync(path)).toBe(false)
  expect(bootstrap(parts, wanted)).rejects.toMatchObject({ code: "not_found" })
})
