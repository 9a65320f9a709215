import { describe, expect, test } from "bun:test"
import { and, eq } from "drizzle-orm"
import PostalMime from "postal-mime"
import { newDeviceSeen, type SeenDevice } from "../../src/auth/new-device"
import { mailNewDevice } from "../../src/auth/new-device-mail"
import { createUser } from "../../src/auth/sign-in"
import { userSessions, users } from "../../src/auth/tables"
import { familyOf } from "../../src/auth/user-devices"
import { ApiError } from "../../src/core/errors"
import { currentPeriod } from "../../src/core/time"
import { jobs } from "../../src/jobs/tables"
import { newApplication, type TestApplication } from "../harness/application"
import { movableClock } from "../harness/clock"
import { deliverAll } from "../harness/delivery"
import type { ProjectOptions, TestProject } from "../harness/service"
import { sharedService } from "../harness/shared-service"
import { signInAgain, signUp } from "./signed-up"
import { eventsOf } from "./told-of"

const clock = movableClock()
const service = await sharedService()
const { store, parts } = service

type Options = Parameters<typeof newApplication>[2]

async function shopOf(options: Options = {}, project_options: ProjectOptions = {}) {
  const project = await service.project(project_options)
  return { project, shop: await newApplication(service, project, options) }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "let in",
    (error) => (error instanceof ApiError ? error.code : error),
  )

const mauOf = async (project: TestProject) => (await project.get("/v1/usage")).body.data.mau

async function rowOf(id: string) {
  const [row] = await store.read.select().from(users).where(eq(users.id, id))
  if (!row) throw new Error("the user is gone")
  return row
}

describe("a sign-in", () => {
  test("answers with the user, tokens, session and organization, and says so once", async () => {
    const { project, shop } = await shopOf()
    const first = await signUp(service, shop)
    expect(first).toMatchObject({ is_new: true, organization: { name: "Default", role: "member" } })
    const { first_activity_at, last_login_at, updated_at } = first.user
    expect([typeof first_activity_at, typeof last_login_at]).toEqual(["string", "string"])
    clock.advance({ seconds: 60 })
    const client = { ip: "203.0.113.5", user_agent: null }
    const wanted = { provider: "email_otp", amr: ["otp"], client } as const
    const again = await signInAgain(service, shop, first.user.id, { ...wanted, amr: ["otp"] })
    expect(again.is_new).toBe(false)
    expect(again.user.first_activity_at).toBe(first_activity_at)
    expect(String(again.user.last_login_at) > String(last_login_at)).toBe(true)
    expect(again.user.updated_at).toBe(updated_at)
    const same = { environment: "live", organization_id: first.organization.id }
    expect(await eventsOf(service, project)).toEqual([
      {
        ...{ type: "user.created", application_id: shop.id },
        user: { id: first.user.id, email: first.user.email },
        metadata: {
          provider: "password",
          ip_address: "192.0.2.7",
          session_id: first.session.id,
          ...same,
        },
      },
      {
        ...{ type: "user.login", application_id: shop.id },
        user: { id: first.user.id, email: first.user.email },
        metadata: {
          provider: "email_otp",
          ip_address: client.ip,
          session_id: again.session.id,
          ...same,
        },
      },
    ])
  })

  test("is for active users alone, and leaves nothing of others behind", async () => {
    const { project, shop } = await shopOf()
    for (const status of ["invited", "suspended", "deleted"] as const) {
      const trying = signUp(service, shop, { status })
      expect([status, await codeOf(trying)]).toEqual([status, "user_inactive"])
    }
    expect(await eventsOf(service, project)).toEqual([])
    const mine = eq(users.project_id, project.project_id)
    expect(await store.read.select().from(users).where(mine)).toEqual([])
  })

  test("with a password waits for the address, where the environment wants it verified", async () => {
    const { project, shop } = await shopOf({ settings: { require_verified_email: true } })
    const unverified = { email_verified: false }
    const { user, tokens, session, is_new } = await signUp(service, shop, unverified)
    expect([tokens as unknown, session as unknown, is_new]).toEqual([null, null, true])
    const [{ type, metadata } = { type: "", metadata: {} }] = await eventsOf(service, project)
    expect([type, Object.keys(metadata)]).toEqual([
      "user.created",
      ["provider", "ip_address", "organization_id", "environment"],
    ])
    expect(await codeOf(signInAgain(service, shop, user.id))).toBe("forbidden")
    const by_code = { provider: "phone_otp" as const }
    expect((await signInAgain(service, shop, user.id, by_code)).session.id).toBeString()
    await store.tx((tx) =>
      tx.update(users).set({ email_verified: true }).where(eq(users.id, user.id)),
    )
    expect((await signInAgain(service, shop, user.id)).session.id).toBeString()
  })

  test("makes one user for one new address, however many ask at once", async () => {
    const { shop } = await shopOf()
    const environment = await shop.environment()
    const email = "ann@users.test"
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        store.tx((tx) => createUser(tx, environment, { email: at % 2 ? email : "Ann@Users.test" })),
      ),
    )
    expect(made.filter(Boolean)).toHaveLength(1)
  })
})

describe("monthly active users", () => {
  test("are counted once a month, also by a refresh, and those of `test` never", async () => {
    const { project, shop } = await shopOf({ refresh_token_duration_days: 365 })
    const ann = await signUp(service, shop)
    await signUp(service, shop, {}, { environment: "test" })
    await signInAgain(service, shop, ann.user.id)
    expect((await mauOf(project)).used).toBe(1)
    const bob = await signUp(service, shop)
    expect((await mauOf(project)).used).toBe(2)
    const before = currentPeriod()
    while (currentPeriod() === before) clock.advance({ seconds: 86_400 })
    expect((await mauOf(project)).used).toBe(0)
    const late = await signInAgain(service, shop, ann.user.id)
    expect((await mauOf(project)).used).toBe(1)
    const renew = (refresh_token: string) =>
      shop.app().post("/v1/auth/sessions/refresh", { refresh_token })
    expect((await renew(bob.tokens.refresh_token)).status).toBe(200)
    expect((await renew(late.tokens.refresh_token)).status).toBe(200)
    expect((await mauOf(project)).used).toBe(2)
    expect((await rowOf(ann.user.id)).active_month).toBe(currentPeriod())
  })

  test("are no more than the plan has, for new users alone", async () => {
    const { project, shop } = await shopOf({}, { limits: { mau: 2 } })
    const ann = await signUp(service, shop)
    const before = currentPeriod()
    while (currentPeriod() === before) clock.advance({ seconds: 86_400 })
    const newcomers = await Promise.all([1, 2, 3, 4].map(() => codeOf(signUp(service, shop))))
    expect(newcomers.sort()).toEqual([
      ...Array(2).fill("let in"),
      ...Array(2).fill("payment_required"),
    ])
    expect(await mauOf(project)).toEqual({ used: 2, limit: 2, remaining: 0 })
    await signInAgain(service, shop, ann.user.id)
    expect(await mauOf(project)).toEqual({ used: 3, limit: 2, remaining: 0 })
    expect(await codeOf(signUp(service, shop))).toBe("payment_required")
    expect(await codeOf(signUp(service, shop, {}, { environment: "test" }))).toBe("let in")
    const mine = and(eq(users.project_id, project.project_id), eq(users.environment, "live"))
    expect(await store.read.select().from(users).where(mine)).toHaveLength(3)
  })
})

describe("a new device", () => {
  const CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36"
  const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

  const newDevicesOf = async ({ project_id }: TestProject) => {
    const mine = and(eq(jobs.project_id, project_id), eq(jobs.name, newDeviceSeen.name))
    return await store.read.select().from(jobs).where(mine)
  }

  /** Whether the user is told of a sign-in from there. */
  async function told(project: TestProject, shop: TestApplication, id: string, client: Client) {
    const before = (await newDevicesOf(project)).length
    await signInAgain(service, shop, id, { client })
    return (await newDevicesOf(project)).length > before
  }

  interface Client {
    ip: string | null
    user_agent: string | null
  }

  test("is one whose family of program never came from this network", async () => {
    const { project, shop } = await shopOf()
    const { user } = await signUp(service, shop)
    expect(await newDevicesOf(project)).toHaveLength(0)
    const seen: [string, string, boolean][] = [
      ["192.0.2.7", FIREFOX, false],
      ["192.0.2.250", FIREFOX.replaceAll("140", "141"), false],
      ["192.0.3.7", FIREFOX, true],
      ["192.0.3.8", FIREFOX, false],
      ["192.0.2.7", CHROME, true],
      ["192.0.3.9", CHROME, true],
      ["2001:db8:1:2::1", CHROME, true],
      ["2001:db8:1:ffff::9", CHROME, false],
      ["2001:db8:2::1", CHROME, true],
      ["192.0.2.7", "okhttp/4.12", true],
      ["192.0.2.8", "okhttp/5.0", false],
    ]
    for (const [ip, user_agent, is_new] of seen)
      expect([ip, await told(project, shop, user.id, { ip, user_agent })]).toEqual([ip, is_new])
    expect(familyOf(CHROME)).toBe("Chrome")
    const acted = { act: { id: "support", reason: "x" } }
    const other = eq(userSessions.ip, "192.0.3.9")
    await store.tx((tx) => tx.update(userSessions).set(acted).where(other))
    expect(await told(project, shop, user.id, { ip: "192.0.3.9", user_agent: CHROME })).toBe(true)
  })

  test("is told by a mail that names it", async () => {
    const { project, shop } = await shopOf()
    const { user } = await signUp(service, shop, { email: "ann@mailbox.test", name: "Ann" })
    await told(project, shop, user.id, { ip: "203.0.113.77", user_agent: CHROME })
    const [job] = await newDevicesOf(project)
    if (!job) throw new Error("nobody is told")
    const handler = mailNewDevice(parts.auth)
    const { done } = await handler.run(job.payload as unknown as SeenDevice, job)
    await store.tx(async (tx) => done?.(tx))
    const handed = await deliverAll(service)
    const hers = handed.filter(({ to }) => to.includes("ann@mailbox.test"))
    const mails = await Promise.all(hers.map(({ raw }) => PostalMime.parse(raw)))
    const told_of = mails.find(({ text }) => text?.includes("203.0.113.77"))
    expect(told_of?.text).toContain("Chrome on Windows")
  })
})
