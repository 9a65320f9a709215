import { and, eq, gte, lt, sql } from "drizzle-orm"
import { ApiError } from "../core/errors"
import { millis } from "../core/time"
import { forUpdate } from "../store/columns"
import { prepared, remover } from "../store/statements"
import type { Store, Tx } from "../store/store"
import { countryHours } from "./tables"

const HOUR_SECONDS = 3600
const HOURS_A_DAY = 24

/** Sends an hour that any country may get. */
const LEAST = 50

/** As many times the usual volume is no trouble yet. */
const TIMES = 5

/** The whole days (UTC) before today that say what is usual. */
const USUAL_DAYS = 7

/** A send, and the country prefix under which it is limited; absent where it is not. */
interface CountrySend {
  project_id: string
  country?: string | undefined
}

type CountryHour = typeof countryHours.$inferSelect

/**
 * Why the hour of a country has no room for a send: 429 `rate_limit_exceeded`, scope `country`. Null for a send that has
 * room beside those before it in the list. The hours stay locked until the transaction ends, so that no node exceeds
 * them. Counts nothing: `countByCountry` does.
 */
export async function refusalsByCountry(
  tx: Tx,
  sends: CountrySend[],
): Promise<(ApiError | null)[]> {
  const hours = new Map<string, CountryHour>()
  for (const [name, [first]] of byCountry(sends))
    if (first) hours.set(name, await hourForUpdate(tx, first))
  return sends.map((send) => {
    const hour = hours.get(nameOf(send))
    if (!hour) return null
    if (hour.sends >= hour.most) return countryFull(hour)
    hour.sends += 1
    return null
  })
}

/** Counts sends that had room, in the same transaction. */
export async function countByCountry(tx: Tx, sends: CountrySend[]): Promise<void> {
  for (const [, list] of byCountry(sends)) {
    const [first] = list
    if (first) await addTo(tx, { ...keyOf(first), sends: list.length })
  }
}

type LimitedSend = Required<CountrySend> & { country: string }

/** In one order everywhere, so that no two transactions wait for each other's rows. */
function byCountry(sends: CountrySend[]): [string, LimitedSend[]][] {
  const limited = sends.filter((send): send is LimitedSend => send.country !== undefined)
  return [...Map.groupBy(limited, nameOf)].sort(([a], [b]) => (a < b ? -1 : 1))
}

const nameOf = ({ project_id, country = "" }: CountrySend) => `${project_id} ${country}`

const currentHour = () => Math.floor(millis() / 1000 / HOUR_SECONDS)

const keyOf = ({ project_id, country: prefix }: LimitedSend) => ({
  ...{ project_id, prefix, hour: currentHour() },
})

async function hourForUpdate(tx: Tx, send: LimitedSend): Promise<CountryHour> {
  const key = keyOf(send)
  const [known] = await find(tx, key)
  if (known) return known
  const fresh = { ...key, sends: 0, most: await mostIn(tx, key) }
  // Another node may have been faster: then its row stands.
  await tx.insert(countryHours).values(fresh).onConflictDoNothing()
  const [made] = await find(tx, key)
  return made ?? fresh
}

type HourKey = Pick<CountryHour, "project_id" | "prefix" | "hour">

/**
 * Five times the usual volume, at least 50. The usual volume is the mean of the busiest hours of the last seven days: a
 * day without sends has 0. Today says nothing, so that an abuser of a key cannot raise the limit within a day.
 */
async function mostIn(tx: Tx, { project_id, prefix, hour }: HourKey): Promise<number> {
  const today = hour - (hour % HOURS_A_DAY)
  const day = sql<number>`${countryHours.hour} / ${sql.raw(String(HOURS_A_DAY))}`
  const busiest = await tx
    .select({ sends: sql`MAX(${countryHours.sends})`.mapWith(Number) })
    .from(countryHours)
    .where(
      and(
        eq(countryHours.project_id, project_id),
        eq(countryHours.prefix, prefix),
        gte(countryHours.hour, today - USUAL_DAYS * HOURS_A_DAY),
        lt(countryHours.hour, today),
      ),
    )
    .groupBy(day)
  const usual = busiest.reduce((sum, { sends }) => sum + sends, 0) / USUAL_DAYS
  return Math.max(LEAST, Math.floor(TIMES * usual))
}

function countryFull({ prefix, hour, most: limit }: CountryHour): ApiError {
  const retry_after = Math.max(1, Math.ceil((hour + 1) * HOUR_SECONDS - millis() / 1000))
  const message = `This project may send ${limit} texts an hour to numbers that begin with ${prefix}. Try again in ${retry_after} s, or list ${prefix} in the allowed_countries of a provider.`
  const details = { retry_after, limit, window_seconds: HOUR_SECONDS, scope: "country", prefix }
  return new ApiError("rate_limit_exceeded", message, details)
}

const { project_id, prefix, hour, sends } = countryHours

const find = prepared({ project_id, prefix, hour }, (tx: Tx, slot) =>
  forUpdate(
    tx
      .select()
      .from(countryHours)
      .where(and(eq(project_id, slot.project_id), eq(prefix, slot.prefix), eq(hour, slot.hour))),
  ),
)

const addTo = prepared({ project_id, prefix, hour, sends }, (tx: Tx, slot) =>
  tx
    .update(countryHours)
    .set({ sends: sql`${sends} + ${slot.sends}` })
    .where(and(eq(project_id, slot.project_id), eq(prefix, slot.prefix), eq(hour, slot.hour))),
)

/** Rows of one transaction. */
const PURGED_AT_ONCE = 200

/** Forgets up to 200 hours that say nothing of today any more. Returns how many went. */
export async function purgeCountryHours(store: Store): Promise<number> {
  const old = lt(hour, currentHour() - (USUAL_DAYS + 1) * HOURS_A_DAY)
  const rows = store.read.select({ project_id, prefix, hour }).from(countryHours).where(old)
  const some = await rows.orderBy(hour).limit(PURGED_AT_ONCE)
  if (some.length > 0) await store.tx((tx) => removeRows(tx, some))
  return some.length
}

const removeRows = remover(countryHours, ["project_id", "prefix", "hour"], { quiet: true })
