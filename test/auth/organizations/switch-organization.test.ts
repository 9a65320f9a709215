import { describe, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { decodeJwt } from "jose"
import { userRefreshTokens, userSessions } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import type { TestUser } from "../../harness/application"
import { type Reply, refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { sharedService } from "../../harness/shared-service"
import { asUser, signInAgain } from "../signed-up"
import { eventsOf } from "../told-of"
import { ORGANIZATIONS, type OrganizationShop, organizationShop } from "./organization-shop"

const clock = movableClock()
const service = await sharedService()
const { store } = service

const SWITCH = "/v1/auth/sessions/switch-organization"
const REFRESH = "/v1/auth/sessions/refresh"
const ME = "/v1/auth/users/me"

/** A user who is in an organization beside Default. */
async function annInTwo(fields: object = {}) {
  const shop = await organizationShop(service)
  const [ann, id] = [await shop.user(), await shop.make()]
  await shop.seat(id, ann.id, "admin")
  if (Object.keys(fields).length > 0) await shop.server.patch(`${ORGANIZATIONS}/${id}`, fields)
  return { shop, ann, id, home: (await shop.application.environment()).default_organization_id }
}

const switchTo = (who: Pick<TestUser, "post">, organization_id: string, refresh_token?: string) =>
  who.post(SWITCH, { organization_id, ...(refresh_token && { refresh_token }) })

const renew = ({ application }: OrganizationShop, refresh_token: string, more = {}) =>
  application.app().post(REFRESH, { refresh_token, ...more })

const claimsOf = ({ body }: Reply) => decodeJwt(body.data.tokens.access_token)

const tokenOf = ({ body }: Reply): string => body.data.tokens.refresh_token

describe("a switch", () => {
  test("moves the session, and the old refresh token dies", async () => {
    const { shop, ann, id } = await annInTwo()
    await shop.server.patch(`${ORGANIZATIONS}/${id}/members/${ann.id}`, { permissions: ["a:b"] })
    for (const given of [ann.refresh_token, undefined]) {
      const own = given ? ann : await shop.user()
      if (!given) await shop.seat(id, own.id, "admin")
      const before = decodeJwt(own.access_token)
      const moved = await switchTo(own, id, given)
      expect(moved.body.data.organization).toEqual({ id, name: "Acme", role: "admin" })
      expect(moved.body.data.session.id).toBe(own.session_id)
      const claims = claimsOf(moved)
      const orgs = [
        { id, role: "admin" },
        { id: before.org_id, role: "member" },
      ]
      expect(claims).toMatchObject({ org_id: id, org_role: "admin", orgs, sid: own.session_id })
      expect(claims.org_permissions).toEqual(given ? ["a:b"] : [])
      expect(claims.jti).not.toBe(before.jti)
      expect(tokenOf(moved)).not.toBe(own.refresh_token)
      expect(refusal(await renew(shop, own.refresh_token))).toEqual([401, "unauthorized"])
      const next = await renew(shop, tokenOf(moved))
      expect(claimsOf(next).org_id).toBe(id)
      clock.advance({ seconds: 11 })
      expect(refusal(await renew(shop, own.refresh_token))).toEqual([401, "unauthorized"])
      expect(refusal(await own.get(ME))).toEqual([401, "unauthorized"])
    }
    const events = await eventsOf(service, shop.project)
    const reasons = events.map(({ metadata }) => metadata.reason).filter(Boolean)
    expect(reasons).toEqual(["token_reuse", "token_reuse"])
  })

  test("needs a membership, and a refresh token of the same session", async () => {
    const { shop, ann, id } = await annInTwo()
    const foreign = await shop.make()
    const there = await shop.make({ environment: "test" })
    for (const wanted of [there, newId()])
      expect(refusal(await switchTo(ann, wanted))).toEqual([404, "not_found"])
    const refused = await switchTo(ann, foreign)
    expect(refusal(refused)).toEqual([403, "forbidden"])
    expect(refused.body.error.details).toEqual({ reason: "not_a_member" })
    expect((await switchTo(ann, "nonsense")).status).toBe(422)
    const other = await signInAgain(service, shop.application, ann.id)
    for (const token of [other.tokens.refresh_token, "belfry_refresh_unknown"])
      expect(refusal(await switchTo(ann, id, token))).toEqual([401, "unauthorized"])
    for (const token of [ann.refresh_token, other.tokens.refresh_token])
      expect((await renew(shop, token)).status).toBe(200)
  })

  test("is nothing for somebody who acts as the user", async () => {
    const { shop, ann, id } = await annInTwo()
    const path = `/v1/auth/users/${ann.id}/impersonate`
    const acting = (await shop.server.post(path, { reason: "help" })).body.data
    const tokens = { access_token: acting.access_token, refresh_token: "" }
    const refused = await switchTo(asUser(service, { tokens } as never), id)
    expect([...refusal(refused), refused.body.error.details.reason]).toEqual([
      ...[403, "forbidden", "impersonated"],
    ])
  })

  test("twice at once leaves one refresh token that works", async () => {
    const { shop, ann, id, home } = await annInTwo()
    const answers = await Promise.all([id, home, id].map((wanted) => switchTo(ann, wanted)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    const own = eq(userRefreshTokens.session_id, ann.session_id)
    const rows = await store.read.select().from(userRefreshTokens).where(own)
    expect(rows.map(({ used_at }) => used_at).filter((at) => at === null)).toHaveLength(1)
    expect(new Set(answers.map(tokenOf)).size).toBe(3)
    const [session] = await store.read
      .select()
      .from(userSessions)
      .where(eq(userSessions.id, ann.session_id))
    expect([id, home]).toContain(session?.organization_id ?? "")
    const renewed = []
    for (const answer of answers) renewed.push((await renew(shop, tokenOf(answer))).status)
    expect(renewed.sort()).toEqual([200, 401, 401])
  })

  test("beside the end of the membership is before it or refused, and never after", async () => {
    for (let round = 0; round < 5; round++) {
      const { shop, ann, id, home } = await annInTwo()
      const member = `${ORGANIZATIONS}/${id}/members/${ann.id}`
      const [moved, gone] = await Promise.all([switchTo(ann, id), shop.server.remove(member)])
      expect(gone.status).toBe(200)
      if (moved.status !== 200) expect(refusal(moved)).toEqual([403, "forbidden"])
      expect(refusal(await switchTo(ann, id))).toEqual([403, "forbidden"])
      const token = moved.status === 200 ? tokenOf(moved) : ann.refresh_token
      const next = await renew(shop, token)
      expect([claimsOf(next).org_id, claimsOf(next).orgs]).toEqual([
        home,
        [{ id: home, role: "member" }],
      ])
    }
  })
})

describe("an organization that demands a second factor", () => {
  const FACTOR = { mfa_required: true }

  test("takes no session without one, and uses nothing up", async () => {
    const { shop, ann, id } = await annInTwo(FACTOR)
    const tries = [
      () => switchTo(ann, id),
      () => switchTo(ann, id, ann.refresh_token),
      () => renew(shop, ann.refresh_token, { organization_id: id }),
    ]
    for (const attempt of tries) expect(refusal(await attempt())).toEqual([403, "mfa_required"])
    clock.advance({ seconds: 11 })
    expect((await renew(shop, ann.refresh_token)).status).toBe(200)
    const amr = ["pwd", "mfa"]
    const proven = await signInAgain(service, shop.application, ann.id, { amr })
    const moved = await switchTo(asUser(service, proven), id)
    expect(claimsOf(moved)).toMatchObject({ org_id: id, amr })
    expect((await asUser(service, moved.body.data).get(ORGANIZATIONS)).status).toBe(200)
  })

  test("lets in a user without a method to set one up, until they are elsewhere", async () => {
    const { shop, ann, id, home } = await annInTwo(FACTOR)
    const signed = await signInAgain(service, shop.application, ann.id, { organization_id: id })
    expect(signed.organization.id).toBe(id)
    const inside = asUser(service, signed)
    expect(refusal(await inside.get(ORGANIZATIONS))).toEqual([403, "mfa_required"])
    expect(refusal(await switchTo(inside, home))).toEqual([403, "mfa_required"])
    expect((await inside.get(ME)).status).toBe(200)
    const stayed = await renew(shop, signed.tokens.refresh_token)
    expect(claimsOf(stayed).org_id).toBe(id)
    const still = asUser(service, stayed.body.data)
    expect(refusal(await still.get(ORGANIZATIONS))).toEqual([403, "mfa_required"])
    const moved = await renew(shop, tokenOf(stayed), { organization_id: home })
    expect(claimsOf(moved).org_id).toBe(home)
    expect((await asUser(service, moved.body.data).get(ORGANIZATIONS)).status).toBe(200)
    const back = await renew(shop, tokenOf(moved), { organization_id: id })
    expect(refusal(back)).toEqual([403, "mfa_required"])
  })

  test("refuses refreshes of sessions that were there before, and takes them again afterwards", async () => {
    const { shop, ann, id } = await annInTwo()
    const moved = await switchTo(ann, id)
    const path = `${ORGANIZATIONS}/${id}`
    await shop.server.patch(path, FACTOR)
    expect(refusal(await renew(shop, tokenOf(moved)))).toEqual([403, "mfa_required"])
    await shop.server.patch(path, { mfa_required: false })
    expect((await renew(shop, tokenOf(moved))).status).toBe(200)
    await shop.server.patch(path, FACTOR)
    const signed = await signInAgain(service, shop.application, ann.id, { organization_id: id })
    await shop.server.patch(path, { mfa_required: false })
    const free = await renew(shop, signed.tokens.refresh_token)
    expect((await asUser(service, free.body.data).get(ORGANIZATIONS)).status).toBe(200)
  })
})

describe("a token", () => {
  test("names 50 of 60 organizations, the active one first, then by name", async () => {
    const shop = await organizationShop(service)
    const ann = await shop.user()
    const ids: string[] = []
    for (let n = 0; n < 60; n++)
      ids.push(await shop.make({ name: `O${String(n).padStart(2, "0")}` }))
    for (const id of ids) await shop.seat(id, ann.id)
    const last = ids.at(-1) ?? ""
    const claims = claimsOf(await switchTo(ann, last))
    const { default_organization_id: home } = await shop.application.environment()
    const orgs = (claims.orgs as { id: string }[]).map(({ id }) => id)
    expect(orgs).toEqual([last, home, ...ids.slice(0, 48)])
    expect(claims.orgs_truncated).toBe(true)
    expect((await ann.get(ORGANIZATIONS)).body.meta.total).toBe(61)
  })

  test("of a deleted organization's session names Default at the next refresh", async () => {
    const { shop, ann, id, home } = await annInTwo()
    const moved = await switchTo(ann, id)
    await shop.server.remove(`${ORGANIZATIONS}/${id}`)
    const next = await renew(shop, tokenOf(moved))
    expect(claimsOf(next)).toMatchObject({ org_id: home, orgs: [{ id: home, role: "member" }] })
    expect((await signInAgain(service, shop.application, ann.id)).organization.id).toBe(home)
  })
})
