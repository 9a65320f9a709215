import { describe, expect, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { missing, note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { drained, eventTypes, get, reaches, send, until } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const MAILS_A_ROUND = 20
const SPREAD_MS = 3000
/** So much earlier a mail is sent than it is due: a time that is over when it arrives schedules nothing. */
const AHEAD_MS = 2000
const DAY = 86_400_000

interface ScheduledMail {
  status: string
  scheduled_at: string
  sent_at: string | null
}

const SENT_ONCE = ["email.queued", "email.sent", "email.delivered"]

/** Schedules mails for the next seconds, and kills the server in the middle of them. */
async function surviveKills(kills: number, env: Record<string, string>) {
  const home = makeHome()
  const options = { home, env: { ...lean, ...env } }
  const ids: string[] = []
  try {
    for (let round = 0; round < kills; round++) {
      await using server = await startBelfry(options)
      for (let at = 0; at < MAILS_A_ROUND; at++) {
        const ahead = AHEAD_MS + (at * SPREAD_MS) / MAILS_A_ROUND
        const scheduled_at = new Date(Date.now() + ahead).toISOString()
        ids.push(await send(server, { scheduled_at }))
      }
      await Bun.sleep(AHEAD_MS + Math.random() * SPREAD_MS)
      server.kill("SIGKILL")
      await server.exited
    }
    await Bun.sleep(AHEAD_MS + SPREAD_MS) // the times of the last ones pass while nothing runs
    await using last = await startBelfry(options)
    await drained(last)
    for (const id of ids) {
      const mail = await get<ScheduledMail>(last, `/v1/emails/${id}`)
      expect(mail.status).toBe("delivered")
      expect(Date.parse(mail.sent_at ?? "")).toBeGreaterThanOrEqual(Date.parse(mail.scheduled_at))
      expect(await eventTypes(last, id)).toEqual(SENT_ONCE)
    }
    expect(await get(last, "/v1/scheduled")).toEqual([])
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** A clock that is set while the process runs; lengths of time are measured as ever. */
function steppedClock(home: string) {
  const file = join(home, "clock")
  const library = Bun.spawnSync(["faketime", "-m", "-f", "+0", "sh", "-c", "echo $LD_PRELOAD"])
  let ahead = 0
  const set = (days: number) => {
    ahead = days * DAY
    writeFileSync(file, `${days < 0 ? "" : "+"}${days}d\n`)
  }
  set(0)
  return {
    set,
    now: () => Date.now() + ahead,
    env: {
      LD_PRELOAD: library.stdout.toString().trim(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
  }
}

type SteppedClock = ReturnType<typeof steppedClock>

/** More than two polls of the queue: what is not sent by then waits. */
const QUIET_MS = 2500

async function surviveSteps(env: Record<string, string>) {
  const home = makeHome()
  const clock = steppedClock(home)
  const options = { home, env: { ...lean, ...env, ...clock.env } }
  try {
    const ids = await stepBothWays(await startBelfry(options), clock)
    // A start with the clock 45 days back: nothing is sent that is not due.
    clock.set(-45)
    await using back = await startBelfry(options)
    await Bun.sleep(QUIET_MS)
    const { last, before, after } = ids
    expect((await get<ScheduledMail>(back, `/v1/emails/${last}`)).status).toBe("queued")
    clock.set(46)
    const late = (await reaches(back, last, "delivered")) as unknown as ScheduledMail
    expect(Date.parse(late.sent_at ?? "")).toBeGreaterThanOrEqual(Date.parse(late.scheduled_at))
    for (const id of [before, after, last]) expect(await eventTypes(back, id)).toEqual(SENT_ONCE)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

/** Leaves one mail that is due in 46 days, and the server killed. */
async function stepBothWays(server: Belfry, clock: SteppedClock) {
  const at = (milliseconds: number) => new Date(clock.now() + milliseconds).toISOString()
  const before = await send(server, { scheduled_at: at(45 * DAY - 60_000) })
  const last = await send(server, { scheduled_at: at(46 * DAY - 60_000) })
  await Bun.sleep(QUIET_MS)
  expect((await get<ScheduledMail>(server, `/v1/emails/${before}`)).status).toBe("queued")

  clock.set(45) // its time has come
  const first = (await reaches(server, before, "delivered")) as unknown as ScheduledMail
  expect(Date.parse(first.sent_at ?? "")).toBeGreaterThanOrEqual(Date.parse(first.scheduled_at))
  expect((await get<ScheduledMail>(server, `/v1/emails/${last}`)).status).toBe("queued")

  clock.set(0) // 45 days back
  const after = await send(server, { scheduled_at: at(1500) })
  await reaches(server, after, "delivered")
  expect((await get<ScheduledMail>(server, `/v1/emails/${last}`)).status).toBe("queued")
  const left = await get<{ seconds_until_send: number }>(server, `/v1/scheduled/${last}`)
  expect(left.seconds_until_send).toBeGreaterThan((45 * DAY) / 1000)
  server.kill("SIGKILL")
  await until("the end of the server", async () => (await server.exited) !== undefined)
  return { before, after, last }
}

const kills = Math.ceil(sizes.kills / 5)

test(`SQLite: scheduled mail is sent at its time, once, over ${kills} times kill -9`, async () => {
  await surviveKills(kills, {})
})

test.skipIf(missing("faketime"))(
  "SQLite: scheduled mail is sent at its time when the clock steps by 45 days, both ways",
  async () => {
    await surviveSteps({})
  },
)

const has_postgres = !noPostgres()
if (!has_postgres) note("scheduled mail on Postgres: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("on Postgres", () => {
  test.skipIf(!sizes.on_postgres)(
    "scheduled mail is sent at its time, once, over kill -9",
    async () => {
      await using database = await freshDatabase()
      await surviveKills(Math.ceil(kills / 2), {
        DATABASE_URL: database.url,
        BELFRY_DELIVERY_LEASE: "5s",
      })
    },
  )

  test.skipIf(!sizes.on_postgres || missing("faketime"))(
    "scheduled mail is sent at its time when the clock steps by 45 days, both ways",
    async () => {
      await using database = await freshDatabase()
      await surviveSteps({ DATABASE_URL: database.url, BELFRY_DELIVERY_LEASE: "5s" })
    },
  )
})
