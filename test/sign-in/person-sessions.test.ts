import { afterAll, expect, test } from "bun:test"
import { eq } from "drizzle-orm"
import { userRefreshTokens, userSessions } from "../../src/auth/tables"
import { newId } from "../../src/core/ids"
import { openSecrets } from "../../src/core/secrets"
import { now } from "../../src/core/time"
import { consoleSessions, refreshTokens } from "../../src/identity/tables"
import {
  endSessions,
  exchangeRefresh,
  forgetSuccessors,
  openSession,
  sessionOf,
  startSession,
} from "../../src/sign-in/person-sessions"
import { movableClock } from "../harness/clock"
import { testStore } from "../harness/store"

const { store, folder, [Symbol.asyncDispose]: close } = await testStore()
afterAll(close)
const clock = movableClock()
const secrets = openSecrets({ data_dir: folder, master_key: null })

const owner = {
  secrets,
  sessions: userSessions,
  refresh_tokens: userRefreshTokens,
  refresh_seconds: 3600,
  token_columns: ({ project_id }: { project_id: string }) => ({ project_id }),
}
const own = { ...owner, sessions: consoleSessions, refresh_tokens: refreshTokens }
const the_console = { ...own, token_columns: () => ({}) }

const columns = () => ({
  ...{ user_id: newId(), ip: "192.0.2.1", user_agent: "a".repeat(400) },
  ...{ project_id: newId(), application_id: newId(), environment_id: newId() },
  ...{ organization_id: newId(), amr: ["pwd"], auth_time: now(), act: null },
  ...{ lacks_factor: false, stepped_up_at: null },
})

const start = () => store.tx((tx) => startSession(tx, owner, columns()))
const exchange = (token: string) => store.tx((tx) => exchangeRefresh(tx, owner, token))

test("fifty at once on one token get one child, which is of the same owner", async () => {
  const { session, refresh_token } = await start()
  expect(session.user_agent).toHaveLength(300)
  const answers = await Promise.all(Array.from({ length: 50 }, () => exchange(refresh_token)))
  const children = answers.map((one) => one && "refresh_token" in one && one.refresh_token)
  expect(new Set(children).size).toBe(1)
  const mine = eq(userRefreshTokens.session_id, session.id)
  const rows = await store.read.select().from(userRefreshTokens).where(mine)
  expect(rows.map(({ project_id }) => project_id)).toEqual([session.project_id, session.project_id])
})

test("a token that was used, forgotten or not, ends its session later, and no other one", async () => {
  for (const forgets of [false, true]) {
    const { session, refresh_token } = await start()
    const other = await start()
    const next = await exchange(refresh_token)
    clock.advance({ seconds: forgets ? 61 : 11 })
    if (forgets) await forgetSuccessors(store, userRefreshTokens)
    expect(await exchange(refresh_token)).toMatchObject({ reused: { id: session.id } })
    if (!next || !("refresh_token" in next)) throw new Error("no child")
    expect(await exchange(next.refresh_token)).toBeUndefined()
    expect(await exchange(other.refresh_token)).toMatchObject({ session: { id: other.session.id } })
  }
})

test("a token works for its owner and its part of the sessions, until its time or its session ends", async () => {
  const { session, refresh_token } = await start()
  const foreign = await start()
  const among = eq(userSessions.environment_id, session.environment_id)
  await store.tx(async (tx) => {
    expect(await exchangeRefresh(tx, the_console, refresh_token)).toBeUndefined()
    expect(await exchangeRefresh(tx, owner, foreign.refresh_token, { among })).toBeUndefined()
    expect(await sessionOf(tx, owner, foreign.refresh_token, among)).toBeUndefined()
    expect(await sessionOf(tx, owner, refresh_token, among)).toEqual(session)
  })
  clock.advance({ seconds: 3599 })
  const next = await exchange(refresh_token)
  if (!next || !("session" in next)) throw new Error("no child")
  expect(next.session.expires_at > session.expires_at).toBe(true)
  expect(await store.tx((tx) => endSessions(tx, userSessions, among))).toHaveLength(1)
  expect(await store.tx((tx) => endSessions(tx, userSessions, among))).toEqual([])
  expect(await exchange(next.refresh_token)).toBeUndefined()
  clock.advance({ seconds: 3601 })
  expect(await exchange(foreign.refresh_token)).toBeUndefined()
})

test("an opened session has no token and ends at its time", async () => {
  const session = await store.tx((tx) => openSession(tx, userSessions, columns(), 900))
  const mine = eq(userSessions.id, session.id)
  clock.advance({ seconds: 901 })
  expect(await store.tx((tx) => endSessions(tx, userSessions, mine))).toEqual([])
})
