import { eq, sql } from "drizzle-orm"
import { type ErrorCode, fail } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { isoFrom, isPast, millis, millisFrom } from "../core/time"
import { subscriberOf } from "../lib/ip-ranges"
import type { Store, Tx } from "../store/store"
import { kitTable, type OwnerTable } from "./owner-tables"
import type { throttleColumns } from "./person-columns"

/** At most `size` attempts in `seconds`. A name that ends in `_address` counts by network. */
export interface ThrottleBucket {
  name: string
  size: number
  seconds: number
  /** What a full one answers, where it is not about signing in. */
  code?: ErrorCode
}

export type CountedAttempt = [bucket: ThrottleBucket, subject: string]

type ThrottleColumns = ReturnType<typeof throttleColumns>
type ThrottleTable = OwnerTable<ThrottleColumns>

/**
 * Counts attempts before anything is tried, in the database: a restart forgets nothing, and all
 * nodes count together. Subjects are stored as MACs.
 */
export class Throttle {
  readonly #store: Store
  readonly #secrets: Secrets
  readonly #counts

  constructor(store: Store, secrets: Secrets, table: ThrottleTable) {
    this.#store = store
    this.#secrets = secrets
    this.#counts = kitTable<ThrottleColumns>(table)
  }

  /** Throws 429 with the bucket's code when one of the buckets is full; then none is counted. */
  async consume(...attempts: CountedAttempt[]): Promise<void> {
    await this.peek(...attempts)
    await this.#store.tx(async (tx) => {
      for (const [bucket, subject] of attempts) {
        const row = await this.#count(tx, this.#key(bucket, subject), bucket.seconds)
        if (row && row.used > bucket.size) refuse(bucket, row.ends_at)
      }
    })
  }

  /** As `consume`, but counts nothing. */
  async peek(...attempts: CountedAttempt[]): Promise<void> {
    for (const attempt of attempts) {
      const ends_at = await this.#fullUntil(attempt)
      if (ends_at !== undefined) refuse(attempt[0], ends_at)
    }
  }

  /** Whether the next attempt would be refused. */
  async isFull(attempt: CountedAttempt): Promise<boolean> {
    return (await this.#fullUntil(attempt)) !== undefined
  }

  async #fullUntil([bucket, subject]: CountedAttempt): Promise<string | undefined> {
    const counts = this.#counts
    const own = eq(counts.subject, this.#key(bucket, subject))
    const [row] = await this.#store.read.select().from(counts).where(own)
    return row && row.used >= bucket.size && !isPast(row.ends_at) ? row.ends_at : undefined
  }

  /** What was tried turned out to be right: it was no guessing. */
  async reset(tx: Tx, ...attempts: CountedAttempt[]): Promise<void> {
    for (const [bucket, subject] of attempts) {
      await tx.delete(this.#counts).where(eq(this.#counts.subject, this.#key(bucket, subject)))
    }
  }

  /** Takes back one attempt, where others share the bucket. */
  async refund(tx: Tx, [bucket, subject]: CountedAttempt): Promise<void> {
    const { used } = this.#counts
    const one_less = sql`case when ${used} > 0 then ${used} - 1 else 0 end`
    const own = eq(this.#counts.subject, this.#key(bucket, subject))
    await tx.update(this.#counts).set({ used: one_less }).where(own)
  }

  /** One statement, so that two at once are two. */
  async #count(tx: Tx, subject: string, seconds: number) {
    const { used, ends_at } = this.#counts
    const is_over = sql`${ends_at} <= ${millis()}`
    const fresh = { subject, used: 1, ends_at: isoFrom(millis() + seconds * 1000) }
    const [row] = await tx
      .insert(this.#counts)
      .values(fresh)
      .onConflictDoUpdate({
        target: this.#counts.subject,
        set: {
          used: sql`case when ${is_over} then 1 else ${used} + 1 end`,
          ends_at: sql`case when ${is_over} then excluded.ends_at else ${ends_at} end`,
        },
      })
      .returning()
    return row
  }

  #key({ name }: ThrottleBucket, subject: string): string {
    const whom = name.endsWith("_address") ? subscriberOf(subject) : subject
    return `${name}:${this.#secrets.mac("throttle", `${name}:${whom}`).toString("base64url")}`
  }
}

function refuse({ name, size, seconds, code }: ThrottleBucket, ends_at: string): never {
  const retry_after = Math.max(1, Math.ceil((millisFrom(ends_at) - millis()) / 1000))
  const details = { retry_after, limit: size, window_seconds: seconds, scope: name }
  fail(
    code ?? "login_rate_limit_exceeded",
    `Too many attempts. Try again in ${retry_after} s.`,
    details,
  )
}
