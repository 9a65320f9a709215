import { expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { createLocalJWKSet, jwtVerify } from "jose"
import { newId } from "../../src/core/ids"
import { millis } from "../../src/core/time"
import { signToken, verifyToken } from "../../src/lib/signed-token"
import { provingKey, publishedKeys, signerIn, signerOf } from "../../src/signing-keys/signing-keys"
import { signingKeys } from "../../src/signing-keys/tables"
import { movableClock } from "../harness/clock"
import { team } from "../harness/people"
import { sharedService } from "../harness/shared-service"

const clock = movableClock()
const service = await sharedService()
const {
  store,
  parts: { secrets },
} = service

const owners = async () => {
  const { project_id } = await team(service)
  return { project: { project_id }, application: { project_id, application_id: newId() } }
}

const claims = () => {
  const iat = Math.floor(millis() / 1000)
  return { iss: "https://a.test", aud: "app", sub: "ann", iat, exp: iat + 60 }
}

test("an application signs with ES256 inside a transaction, and jose proves it by the key set", async () => {
  const { application } = await owners()
  const token = await store.tx(async (tx) =>
    signToken(await signerIn(tx, secrets, application), "at+jwt", claims()),
  )
  const keys = await publishedKeys(store.read, application)
  expect(keys).toMatchObject([{ kty: "EC", crv: "P-256", alg: "ES256", use: "sig" }])
  const set = createLocalJWKSet({ keys: keys.map((key) => ({ ...key, y: key.y ?? "" })) })
  const { payload } = await jwtVerify(token, set, {
    algorithms: ["ES256"],
    currentDate: new Date(millis()),
  })
  expect(payload.sub).toBe("ann")
  const key = await provingKey(store.read, application, keys[0]?.kid ?? "")
  if (!key) throw new Error("no key")
  const rules = { issuer: "https://a.test", audience: "app", type: "at+jwt", claims: ["sub"] }
  const at = new Date(millis())
  expect(await verifyToken(token, key, { ...rules, at })).toMatchObject({ sub: "ann" })
})

test("a project, its applications and other applications know no key of each other", async () => {
  const { project, application } = await owners()
  const other = { ...application, application_id: newId() }
  const kids: string[] = []
  for (const owner of [project, application, other])
    kids.push((await signerOf(store, secrets, owner)).kid)
  for (const owner of [project, application, other]) {
    const { kid } = await signerOf(store, secrets, owner)
    const published = (await publishedKeys(store.read, owner)).map((key) => key.kid)
    expect(published).toEqual([kid])
    const foreign = kids.filter((one) => one !== kid)
    for (const one of foreign) expect(await provingKey(store.read, owner, one)).toBeUndefined()
  }
})

test("a key signs for 90 days, and is published until the last of its tokens ended", async () => {
  const { application } = await owners()
  const first = await signerOf(store, secrets, application)
  clock.advance({ seconds: 90 * 86_400 })
  const second = await store.tx((tx) => signerIn(tx, secrets, application))
  expect(second.kid).not.toBe(first.kid)
  const kids = async () => (await publishedKeys(store.read, application)).map(({ kid }) => kid)
  expect(await kids()).toEqual([first.kid, second.kid])
  clock.advance({ seconds: 7 * 86_400 })
  expect(await kids()).toEqual([second.kid])
  const rows = store.read.select().from(signingKeys)
  expect(await rows.where(eq(signingKeys.application_id, application.application_id))).toHaveLength(
    2,
  )
})

test("fifty sign-ins at once make one key", async () => {
  const { application } = await owners()
  const signers = await Promise.all(
    Array.from({ length: 50 }, () => store.tx((tx) => signerIn(tx, secrets, application))),
  )
  expect(new Set(signers.map(({ kid }) => kid)).size).toBe(1)
})
