import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { hashOfSecret, newApplicationSecret, newPublicKey } from "../../src/auth/credential-texts"
import { applicationKeys, applications } from "../../src/auth/tables"
import { secondsFromNow } from "../../src/core/time"
import { projects } from "../../src/identity/tables"
import { data, phone } from "../devices/registering"
import { newApplication } from "../harness/application"
import { client, refusal } from "../harness/client"
import { movableClock } from "../harness/clock"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"
import {
  callerRows,
  ELSEWHERE,
  FOR_ALL,
  FOR_APPS,
  FOR_LEGACY,
  FOR_SERVERS,
  FOR_USERS,
} from "./caller-rows"

const clock = movableClock()
const whole = await sharedService({ trusted_proxies: ["127.0.0.1"] })
const { store } = whole
/** The rows of these tests in place of those of the service. */
const rows = { store, app: callerRows(whole) }
const anybody = client(rows.app, undefined)

async function shop(options: Parameters<typeof newApplication>[2] = {}) {
  const project = await whole.project()
  return { project, shop: await newApplication(rows, project, options) }
}

describe("a public key", () => {
  test("registers devices in the scope that it names", async () => {
    const own = await newApplication(whole, await whole.project())
    for (const kind of ["live", "test", "legacy"] as const) {
      const made = await own.app(kind).post("/v1/devices", { ...phone(), device_id: "same" })
      expect([made.status, data(made).token]).toEqual([201, null])
      const environment = { type: "environment", application_id: own.id, environment: kind }
      const application = { type: "application", application_id: own.id }
      expect(data(made).scope).toEqual(kind === "legacy" ? application : environment)
    }
  })

  test("is refused where it is unknown, of another form, deleted, or its project or application is", async () => {
    const { shop: own, project } = await shop()
    const { project: second_project, shop: second } = await shop()
    const { project: third_project, shop: third } = await shop()
    for (const one of [own, second, third])
      expect((await one.app().post(FOR_APPS, {})).status).toBe(200)
    await store.tx((tx) => tx.delete(applicationKeys).where(eq(applicationKeys.key, own.keys.live)))
    const gone = { deleting_at: secondsFromNow(0) }
    await store.tx((tx) => tx.update(applications).set(gone).where(eq(applications.id, second.id)))
    const deleting = { status: "deleting" as const }
    const { project_id } = third_project
    await store.tx((tx) => tx.update(projects).set(deleting).where(eq(projects.id, project_id)))
    expect([project.project_id, second_project.project_id]).toEqual([
      own.project_id,
      second.project_id,
    ])
    const texts = [own.secret, project.key, "", "svca_live_pub_", newPublicKey("live")]
    const bad = [own.keys.live, second.keys.live, second.keys.legacy, third.keys.test, ...texts]
    for (const key of bad) {
      const answer = await anybody.post(FOR_APPS, {}, { "x-application-key": key })
      expect([key, ...refusal(answer)]).toEqual([key, 401, "unauthorized"])
    }
  })

  test("remembers its last use, at most once a minute", async () => {
    const { shop: own } = await shop()
    const used = async () => {
      const mine = eq(applicationKeys.key, own.keys.live)
      return (await store.read.select().from(applicationKeys).where(mine))[0]?.last_used_at ?? null
    }
    const changed = async (from: string | null) => {
      while ((await used()) === from) await Bun.sleep(5)
      return used()
    }
    clock.freeze()
    await own.app().post(FOR_APPS, {})
    const first = await changed(null)
    clock.advance({ seconds: 59 })
    await own.app().post(FOR_APPS, {})
    expect(await used()).toBe(first)
    clock.advance({ seconds: 2 })
    await own.app().post(FOR_APPS, {})
    expect(await changed(first)).not.toBe(first)
  })

  test("without an environment opens what needs none, and is told so elsewhere", async () => {
    const { shop: own } = await shop()
    expect((await own.app("legacy").post(FOR_LEGACY, {})).status).toBe(200)
    for (const path of [FOR_APPS, FOR_SERVERS]) {
      const answer = await own.app("legacy").post(path, "{")
      expect(refusal(answer)).toEqual([400, "environment_required"])
    }
  })
})

describe("the secret of an application", () => {
  test("is a key of its application, and of nothing else", async () => {
    const { project, shop: own } = await shop()
    const { id: other } = await newApplication(rows, project)
    const answer = await own.server().post(FOR_SERVERS, {})
    expect(data(answer)).toMatchObject({
      kind: "key",
      scopes: ["auth:read", "auth:write"],
      environment: { id: own.id, name: "live" },
    })
    expect(refusal(await own.server().post(FOR_SERVERS, { application_id: other }))).toEqual([
      404,
      "not_found",
    ])
    for (const path of [ELSEWHERE, FOR_APPS, FOR_USERS]) {
      expect(refusal(await own.server().post(path, {}))).toEqual([403, "forbidden"])
    }
  })

  test("works beside its successor until the overlap ends", async () => {
    const { shop: own } = await shop()
    const [secret, mine] = [newApplicationSecret(), eq(applications.id, own.id)]
    const rotated = {
      secret_hash: hashOfSecret(secret),
      previous_secret_hash: hashOfSecret(own.secret),
      previous_expires_at: secondsFromNow(3600),
    }
    await store.tx((tx) => tx.update(applications).set(rotated).where(mine))
    const withSecret = async (text: string) =>
      (await anybody.post(FOR_SERVERS, {}, { "x-application-secret": text })).status
    expect([await withSecret(secret), await withSecret(own.secret)]).toEqual([200, 200])
    clock.advance({ seconds: 3601 })
    expect([await withSecret(secret), await withSecret(own.secret)]).toEqual([200, 401])
    expect(await withSecret(newApplicationSecret())).toBe(401)
    expect(await withSecret(own.keys.live)).toBe(401)
  })
})

describe("two credentials", () => {
  test("are refused where they speak for different parties", async () => {
    const { project, shop: own } = await shop()
    const { project: foreign, shop: theirs } = await shop()
    const { owner } = await team(whole)
    const secret = { "x-application-secret": own.secret }
    const key = { "x-api-key": project.key }
    const bad = [
      { ...secret, ...key },
      { ...secret, authorization: `Bearer ${project.key}` },
      { ...secret, authorization: `Bearer ${owner.token}` },
      { ...secret, "x-application-key": theirs.keys.live },
      { "x-api-key": foreign.key, "x-application-key": own.keys.live },
      { ...key, "x-application-key": newPublicKey("live") },
      { authorization: `Bearer ${own.secret}` },
      { authorization: `Bearer ${own.keys.live}` },
      { "x-api-key": own.secret },
    ]
    for (const headers of bad) {
      const answer = await anybody.post(FOR_SERVERS, {}, headers)
      expect([headers, ...refusal(answer)]).toEqual([headers, 401, "unauthorized"])
    }
    const beside = { "x-application-key": own.keys.live }
    expect(refusal(await owner.post("/v1/topics", {}, beside))).toEqual([401, "unauthorized"])
  })

  test("name the environment that a key is for: the public key, then the request, then the header", async () => {
    const { project, shop: own } = await shop()
    const second = await newApplication(rows, project)
    const asked = async (body: object, headers: Record<string, string>) => {
      const answer = await anybody.post(FOR_SERVERS, body, { "x-api-key": project.key, ...headers })
      return answer.status === 200 ? data(answer).environment : refusal(answer)
    }
    const test = { "x-application-key": second.keys.test }
    const header = { "x-environment": "test" }
    expect(await asked({ environment: "live" }, test)).toEqual({ id: second.id, name: "test" })
    expect(await asked({}, {})).toEqual([422, "missing_required_field"])
    const application_id = own.id
    expect(await asked({ application_id }, {})).toEqual({ id: own.id, name: "live" })
    expect(await asked({ application_id }, header)).toEqual({ id: own.id, name: "test" })
    const both = await asked({ application_id, environment: "live" }, header)
    expect(both).toEqual({ id: own.id, name: "live" })
    const legacy = { "x-application-key": own.keys.legacy, ...header }
    expect(await asked({}, legacy)).toEqual({ id: own.id, name: "test" })
    const { shop: theirs } = await shop()
    expect(await asked({ application_id: theirs.id }, {})).toEqual([404, "not_found"])
  })
})

describe("an application", () => {
  const OURS = "https://app.example.test"

  test.each<[string, string[], string, number]>([
    ["live", [OURS], OURS, 200],
    ["live", [OURS], "https://evil.test", 403],
    ["live", [], OURS, 403],
    ["test", [], OURS, 200],
    ["test", [OURS], "https://evil.test", 403],
  ])(
    "of %s with %j answers a page of %s with %i",
    async (kind, allowed_origins, origin, status) => {
      const { shop: own } = await shop({ allowed_origins })
      const answer = await own.app(kind as "live").post(FOR_APPS, {}, { origin })
      expect(answer.status).toBe(status)
      const shown = answer.headers.get("access-control-allow-origin")
      expect(shown).toBe(status === 200 ? origin : null)
      const server = await own.server().post(FOR_SERVERS, {}, { origin })
      expect([server.status, server.headers.get("access-control-allow-origin")]).toEqual([
        200,
        null,
      ])
    },
  )

  test("has a window for each address, and its secret another one", async () => {
    const project = await whole.project({ plan: "free" })
    const own = await newApplication(rows, project)
    const left = async (who: "app" | "server", address: string) => {
      const from = { "x-forwarded-for": address }
      const answer = await own[who]().post(FOR_SERVERS, {}, from)
      return Number(answer.headers.get("x-ratelimit-remaining"))
    }
    clock.freeze()
    const first = [await left("app", "192.0.2.1"), await left("app", "192.0.2.1")]
    const others = [await left("app", "192.0.2.2"), await left("server", "192.0.2.1")]
    expect([...first, ...others, await left("server", "192.0.2.2")]).toEqual([59, 58, 59, 59, 58])
  })

  test.each<[string, unknown, number, string]>([
    [FOR_USERS, "{", 403, "forbidden"],
    [FOR_ALL, "{", 403, "forbidden"],
    [FOR_APPS, "{", 400, "invalid_json"],
    [FOR_APPS, { environment: "staging" }, 422, "validation_error"],
    [FOR_APPS, "x".repeat(65_537), 413, "payload_too_large"],
  ])("is refused in its turn at %s", async (path, body, status, code) => {
    const { shop: own } = await shop()
    expect(refusal(await own.app().post(path, body))).toEqual([status, code])
  })

  test("of a suspended account is refused, and other kinds of callers are told what a row is for", async () => {
    const project = await whole.project({ status: "suspended" })
    const own = await newApplication(rows, project)
    expect(refusal(await own.app().post(FOR_APPS, {}))).toEqual([403, "account_suspended"])
    const { key } = await whole.project()
    const answer = await anybody.post(FOR_APPS, {}, { "x-api-key": key })
    expect(refusal(answer)).toEqual([403, "forbidden"])
    expect(answer.body.error.details).toEqual({ required_role: "app" })
  })
})
