import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { users } from "../../../src/auth/tables"
import { newId } from "../../../src/core/ids"
import { playGames } from "../../fakes/play-games"
import { newApplication } from "../../harness/application"
import { type Reply, refusal } from "../../harness/client"
import { sharedService } from "../../harness/shared-service"
import { elsewhere } from "../letters"

const PATH = "/v1/auth/play-games"
const CLIENT = { client_id: "1234-a.apps.example", client_secret: "quiet-river-42" }

const platform = playGames(CLIENT)
const service = await sharedService({ trusted_proxies: ["127.0.0.1"] })
Object.assign(service.settings, { "auth.play_games.endpoint": platform.url })
afterAll(() => platform.stop())
const { store } = service

async function game(settings: object = {}) {
  const shop = await newApplication(service, await service.project())
  const path = `/v1/auth/applications/${shop.id}/gaming-providers/play-games`
  await shop.server().call("PUT", path, { body: { enabled: true, ...CLIENT, ...settings } })
  const signIn = (server_auth_code: string, fields: object = {}) =>
    shop.app().post(PATH, { server_auth_code, ...fields }, elsewhere())
  return { shop, signIn }
}

const opaque = ({ status, body }: Reply) => JSON.stringify({ status, error: body.error })

test("a player is who the platform says, once new and then known", async () => {
  const { signIn } = await game()
  const player_id = newId()
  const wish = { display_name: "Ann", player_id: "a_liar", playerId: "a_liar" }
  const first = await signIn(platform.codeFor(player_id), wish)
  const identity = { provider: "play-games", provider_user_id: player_id, email: null }
  expect(first.status).toBe(201)
  expect(first.body.data.user).toMatchObject({ name: "Ann", email: null, identities: [identity] })
  const again = await signIn(platform.codeFor(player_id))
  expect([again.status, again.body.data.user.id]).toEqual([200, first.body.data.user.id])
})

test("two codes at once for one new player make one user", async () => {
  const { shop, signIn } = await game()
  const player_id = newId()
  const both = [0, 1].map(() => signIn(platform.codeFor(player_id)))
  expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 201])
  const rows = await store.read.select().from(users).where(eq(users.application_id, shop.id))
  expect(rows.length).toBe(1)
})

test("a code works once, also where the platform takes it again and again", async () => {
  const { signIn } = await game()
  const code = platform.codeFor(newId())
  platform.state.keeps_codes = true
  const answers = await Promise.all(Array.from({ length: 50 }, () => signIn(code)))
  platform.state.keeps_codes = false
  const counts = Map.groupBy(answers, ({ status }) => status)
  expect([201, 401].map((status) => counts.get(status)?.length)).toEqual([1, 49])
})

test("every failure has one answer, an outage of the platform, too", async () => {
  const { signIn } = await game()
  const used = platform.codeFor(newId())
  await signIn(used)
  const wrong = [await signIn("4/0Amade-up"), await signIn(used)]
  for (const settings of [{ client_secret: "another-secret" }, { client_id: "5678-b" }])
    wrong.push(await (await game(settings)).signIn(platform.codeFor(newId())))
  for (const player_id of ["", " ", "a".repeat(256)])
    wrong.push(await signIn(platform.codeFor(player_id)))
  platform.state.is_away = true
  wrong.push(await signIn(platform.codeFor(newId())))
  platform.state.is_away = false
  Object.assign(service.settings, { "auth.play_games.endpoint": "http://127.0.0.1:9" })
  wrong.push(await signIn(platform.codeFor(newId())))
  Object.assign(service.settings, { "auth.play_games.endpoint": platform.url })
  for (const answer of wrong) expect(refusal(answer)).toEqual([401, "invalid_auth_code"])
  expect(new Set(wrong.map(opaque)).size).toBe(1)
})

test("the platform is asked nothing for other credentials, and where it is not set up or off", async () => {
  const { shop } = await game()
  const code = platform.codeFor(newId())
  const before = platform.state.asked
  for (const who of [shop.server(), await service.project(), service.anybody]) {
    const answer = await who.post(PATH, { server_auth_code: code })
    expect(refusal(answer)).toEqual([401, "unauthorized"])
  }
  const legacy = await shop.app("legacy").post(PATH, { server_auth_code: code })
  expect(refusal(legacy)).toEqual([400, "environment_required"])
  expect(refusal(await shop.app("test").post(PATH, { server_auth_code: code }))).toEqual([
    401,
    "provider_not_configured",
  ])
  const off = await game({ enabled: false })
  expect(refusal(await off.signIn(code))).toEqual([401, "provider_not_configured"])
  expect(platform.state.asked).toBe(before)
})
