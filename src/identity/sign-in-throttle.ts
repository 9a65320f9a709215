import { eq, sql } from "drizzle-orm"
import { fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { isoFrom, isPast, millis, millisFrom } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import type { Reader, Store, Tx } from "../store/store"
import { throttles } from "./tables"

/** At most `size` attempts in `seconds`. */
interface ThrottleBucket {
  name: string
  size: number
  seconds: number
}

const QUARTER_HOUR = 900

/** Contract 00, section 7. */
export const BUCKETS = {
  sign_in: { name: "sign_in", size: 10, seconds: QUARTER_HOUR },
  sign_in_address: { name: "sign_in_address", size: 30, seconds: QUARTER_HOUR },
  sign_up: { name: "sign_up", size: 10, seconds: QUARTER_HOUR },
  sign_up_address: { name: "sign_up_address", size: 30, seconds: QUARTER_HOUR },
  /** A signed-in person proves their identity again. This bucket is separate, so strangers cannot fill it. */
  proof: { name: "proof", size: 10, seconds: QUARTER_HOUR },
  mfa: { name: "mfa", size: 10, seconds: QUARTER_HOUR },
  forgot: { name: "forgot", size: 3, seconds: 3600 },
  forgot_address: { name: "forgot_address", size: 30, seconds: QUARTER_HOUR },
} as const satisfies Record<string, ThrottleBucket>

type CountedAttempt = [bucket: ThrottleBucket, subject: string]

/**
 * Counts attempts before anything is tried, in the database: a restart forgets nothing, and all
 * nodes count together. Subjects are stored as MACs.
 */
export class Throttle {
  readonly #store: Store
  readonly #secrets: Secrets

  constructor(store: Store, secrets: Secrets) {
    this.#store = store
    this.#secrets = secrets
  }

  /** Throws 429 `login_rate_limit_exceeded` when one of the buckets is full; then none is counted. */
  async consume(...attempts: CountedAttempt[]): Promise<void> {
    for (const [bucket, subject] of attempts) {
      const row = await find(this.#store.read, this.#key(bucket, subject))
      if (row && row.used >= bucket.size && !isPast(row.ends_at)) refuse(bucket, row.ends_at)
    }
    await this.#store.tx(async (tx) => {
      for (const [bucket, subject] of attempts) {
        const row = await count(tx, this.#key(bucket, subject), bucket.seconds)
        if (row && row.used > bucket.size) refuse(bucket, row.ends_at)
      }
    })
  }

  /** What was tried turned out to be right: it was no guessing. */
  async reset(tx: Tx, ...attempts: CountedAttempt[]): Promise<void> {
    for (const [bucket, subject] of attempts) {
      await tx.delete(throttles).where(eq(throttles.subject, this.#key(bucket, subject)))
    }
  }

  /** Takes back one attempt, where others share the bucket. */
  async refund(tx: Tx, [bucket, subject]: CountedAttempt): Promise<void> {
    const used = sql`case when ${throttles.used} > 0 then ${throttles.used} - 1 else 0 end`
    const own = eq(throttles.subject, this.#key(bucket, subject))
    await tx.update(throttles).set({ used }).where(own)
  }

  #key({ name }: ThrottleBucket, subject: string): string {
    const whom = name.endsWith("_address") ? subscriberOf(subject) : subject
    return `${name}:${this.#secrets.mac("throttle", `${name}:${whom}`).toString("base64url")}`
  }
}

type ThrottleRow = typeof throttles.$inferSelect

async function find(db: Reader, subject: string): Promise<ThrottleRow | undefined> {
  const [row] = await db.select().from(throttles).where(eq(throttles.subject, subject))
  return row
}

/** One statement, so that two at once are two. */
async function count(tx: Tx, subject: string, seconds: number): Promise<ThrottleRow | undefined> {
  const is_over = sql`${throttles.ends_at} <= ${millis()}`
  const { used, ends_at } = throttles
  const fresh = { subject, used: 1, ends_at: isoFrom(millis() + seconds * 1000) }
  const [row] = await tx
    .insert(throttles)
    .values(fresh)
    .onConflictDoUpdate({
      target: throttles.subject,
      set: {
        used: sql`case when ${is_over} then 1 else ${used} + 1 end`,
        ends_at: sql`case when ${is_over} then excluded.ends_at else ${ends_at} end`,
      },
    })
    .returning()
  return row
}

function refuse({ name, size, seconds }: ThrottleBucket, ends_at: string): never {
  const retry_after = Math.max(1, Math.ceil((millisFrom(ends_at) - millis()) / 1000))
  const details = { retry_after, limit: size, window_seconds: seconds, scope: name }
  fail("login_rate_limit_exceeded", `Too many attempts. Try again in ${retry_after} s.`, details)
}
