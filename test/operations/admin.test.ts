import { expect, test } from "bun:test"
import { generate } from "otplib"
import {
  listUsers,
  lockUser,
  resetOwner,
  setOperator,
  unlockUser,
} from "../../src/tenancy/operator"
import { testService } from "../harness/service"
import { BEHIND_PROXY, PASSWORD, signIn, stranger, visitor } from "../identity/entrance"
import { order } from "../identity/post"

const NEW = "Reset-Horse-9"

test("a lost password is set anew, and every session of its user ends", async () => {
  await using service = await testService(BEHIND_PROXY)
  const me = await visitor(service)
  const { body } = await me.post("/v1/users/me/mfa/enroll")
  await me.post("/v1/users/me/mfa/verify", { code: await generate({ secret: body.data.secret }) })
  const wanted = { email: me.user.email.toUpperCase(), password: NEW }

  await resetOwner(service.store, { ...wanted, keep_mfa: true })
  expect((await me.get("/v1/session")).status).toBe(401)
  const door = stranger(service)
  const half = await door.post("/v1/session", { email: me.user.email, password: NEW })
  expect(half.body.data.mfa_required).toBe(true)

  const record = await resetOwner(service.store, { ...wanted, keep_mfa: false })
  expect(record.mfa_enabled).toBe(false)
  const { session } = await signIn(service, me.user.email, NEW)
  expect(session.user.id).toBe(me.user.id)
})

test("a set-up at the machine itself is as strict as any", async () => {
  await using service = await testService(BEHIND_PROXY)
  const good = { email: "ann@people.test", password: NEW, name: null, account_name: "Acme" }
  const attempt = (wrong: object) =>
    order(service, { operation: "bootstrap", ...good, project_name: "Shop", ...wrong })
  for (const [wrong, code] of [
    [{ email: "notanemail" }, "invalid_email"],
    [{ account_name: "" }, "validation_error"],
    [{ project_name: "two\nlines" }, "validation_error"],
    [{ name: "x".repeat(500) }, "validation_error"],
    [{ password: "short" }, "weak_password"],
  ] as const) {
    const refused = attempt(wrong)
    expect(refused).rejects.toMatchObject({ code, status: 422 })
    await refused.catch(() => {})
  }
  expect(await attempt({})).toMatchObject({ user: { operator: true }, account: { name: "Acme" } })
  const again = attempt({})
  expect(again).rejects.toMatchObject({ code: "not_found", status: 404 })
  await again.catch(() => {})
})

test("who is locked is signed out and stays out until he is unlocked", async () => {
  await using service = await testService(BEHIND_PROXY)
  const me = await visitor(service)
  await lockUser(service.store, me.user.email)
  expect((await me.get("/v1/session")).status).toBe(401)
  const { refresh_token } = me.session
  expect((await me.door.post("/v1/session/refresh", { refresh_token })).status).toBe(401)
  const credentials = { email: me.user.email, password: PASSWORD }
  expect((await stranger(service).post("/v1/session", credentials)).status).toBe(401)
  await unlockUser(service.store, me.user.email)
  expect((await stranger(service).post("/v1/session", credentials)).status).toBe(200)
})

test("somebody always runs the instance", async () => {
  await using service = await testService(BEHIND_PROXY)
  const [first, second] = [await visitor(service, { operator: true }), await visitor(service)]
  const conflict = { code: "conflict", details: { reason: "last_operator" } }
  const attempts = [
    () => setOperator(service.store, first.user.email, false),
    () => lockUser(service.store, first.user.email),
  ]
  for (const attempt of attempts) {
    const refused = attempt()
    expect(refused).rejects.toMatchObject(conflict)
    await refused.catch(() => {})
  }
  const leaving = await first.remove("/v1/users/me", { password: PASSWORD })
  expect([leaving.status, leaving.body.error.details.reason]).toEqual([409, "last_operator"])

  await setOperator(service.store, second.user.email, true)
  expect((await second.get("/v1/users/me")).body.data.operator).toBe(true)
  await setOperator(service.store, first.user.email, false)
  const operators = (await listUsers(service.store)).filter(({ operator }) => operator)
  expect(operators.map(({ id }) => id)).toEqual([second.user.id])
})

test("nobody is found under an unknown address", async () => {
  await using service = await testService()
  const attempts = [
    () => lockUser(service.store, "x@y.test"),
    () => resetOwner(service.store, { email: "x@y.test", password: NEW, keep_mfa: true }),
    () => resetOwner(service.store, { email: "x@y.test", password: "weak", keep_mfa: true }),
  ]
  const codes: string[] = []
  for (const attempt of attempts) await attempt().catch((error) => codes.push(error.code))
  expect(codes).toEqual(["user_not_found", "user_not_found", "weak_password"])
})
