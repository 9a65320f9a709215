import { AsyncLocalStorage } from "node:async_hooks"
import type { SQL } from "bun"
import { Column, is, Param, sql } from "drizzle-orm"
import { type BunSQLDatabase, drizzle } from "drizzle-orm/bun-sql"
import type { PgDialect } from "drizzle-orm/pg-core"
import { ApiError } from "../core/errors"
import { faultOf } from "../core/faults"
import { uuidOfBytes } from "../core/ids"
import { log } from "../core/log"
import { monotonic, sleep } from "../core/time"
import { tuneAutovacuum } from "./autovacuum"
import { perform, TableChanges } from "./cached"
import { postgresType } from "./columns"
import { NoDatabase } from "./database-file"
import { distanceMs } from "./group-commit"
import { HEAVY_READ_MS, type HeavyPlace, HeavyReads, tookTooLong } from "./heavy-reads"
import { migratePostgres } from "./migrate"
import { connect, POOL } from "./postgres-pool"
import { apart } from "./snapshot"
import type { Closure, Reader, Store, Tx } from "./store"

/** Connections that search for long. The others are for everything else. */
const MAX_HEAVY = 4
/** One listens, and one migrates before. */
const MAX_DIRECT = 2
const MAX_ATTEMPTS = 8

/**
 * serialization_failure and deadlock_detected: no fault of the caller, and cured by another try.
 */
const CONFLICTS = ["40001", "40P01"]

/** Of reads that all see the same: they lock nothing, and no conflict can stop them. */
const ONE_MOMENT = { isolationLevel: "repeatable read", accessMode: "read only" } as const

const READING = { accessMode: "read only" } as const
/** What a statement at its time limit ends with. */
const QUERY_CANCELED = "57014"

const POLLING =
  "Postgres is behind a pooler in transaction mode, so notifications do not arrive; polling instead"

/** The transaction whose closure is running here; `open` ends with it. */
const running = new AsyncLocalStorage<{ open: boolean; effects: (() => void)[] }>()

interface PostgresOptions extends ConnectOptions {
  url: string
  /** The same database past a pooler, for what needs a session of its own. */
  direct_url?: string | null
  /** Throws NoDatabase where nothing has begun, instead of beginning it. */
  demand?: boolean
  /** Hears of every transaction that failed for good, but for those that we refused ourselves. */
  onFault?: (error: unknown) => void
}

/**
 * A pool on one Postgres; N nodes may share it. Migrations run first. Behind a pooler in transaction
 * mode nothing is kept in a session: statements have no name, and LISTEN goes past it, or is left out.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, direct_url, onFault } = options
  const { pool, is_pooled } = await openPool(options)
  let direct: SQL | undefined
  const close = async () => {
    await Promise.all([pool.close({ timeout: 5 }), direct?.close({ timeout: 5 })])
  }
  try {
    if (direct_url) direct = await connectPatiently(direct_url, MAX_DIRECT, options)
    if (options.demand) await requireBegun(pool, url)
    await migratePostgres(direct ?? pool)
    await tuneAutovacuum(direct ?? pool)
  } catch (error) {
    await close()
    throw error
  }
  let is_polling_told = false
  const ears = direct ?? (is_pooled ? undefined : pool)
  const changes = new TableChanges()
  const access = {
    identity: changes,
    isAlone: false,
    onChanged: (tables: string[], hear: () => void) => changes.listen(tables, hear),
    changeCount: () => undefined,
  }
  const logger = {
    logQuery: (text: string) => changes.noteStatement(text, running.getStore()?.effects),
  }
  const database = Object.assign(withUuids(drizzle(pool, { logger })), access)
  const stats = { closures: 0, commits: 0 }
  const runApart = spaced()

  async function tx<Result>(closure: Closure<Result>): Promise<Result> {
    if (running.getStore()?.open) throw new Error("A closure opened a transaction: pass `tx` down")
    const effects: (() => void)[] = []
    const result = await database.transaction((raw) => {
      const afterCommit = (effect: () => void) => void effects.push(effect)
      const noteChange = (table: string) => changes.note(table, effects)
      const open = Object.assign(raw as unknown as Tx, access, { afterCommit, noteChange })
      return alone(() => closure(open), effects)
    })
    stats.closures += 1
    stats.commits += 1
    for (const effect of effects) perform(effect)
    return result
  }

  return {
    read: Object.assign(database, { heavy: heavyReads(database, access) }) as unknown as Reader,
    isAlone: false,
    tx: (closure, _, apart_ms) => {
      const run = () => retryConflicts(() => tx(closure), onFault)
      return apart_ms === undefined ? run() : runApart(run, apart_ms)
    },
    snapshot: (look) =>
      database.transaction(
        (raw) => look(Object.assign(raw as unknown as Reader, access)),
        ONE_MOMENT,
      ),
    notify: (topic, payload) => publish(pool, topic, payload),
    listen: async (topic, hear) => {
      if (ears) await hearFrom(ears, topic, hear)
      else if (!is_polling_told) log.warn(POLLING, { next: "set DATABASE_DIRECT_URL" })
      is_polling_told ||= !ears
    },
    stats,
    emptyLog: async () => true,
    close,
  }
}

/** Runs what may wait, as `apart_ms` of `Store.tx` says. */
function spaced() {
  let next_at = 0
  return async <Result>(run: () => Promise<Result>, apart_ms: number): Promise<Result> => {
    const early = next_at - monotonic()
    if (early > 0) await sleep(early)
    const begun = monotonic()
    try {
      return await run()
    } finally {
      const ended = monotonic()
      next_at = ended + distanceMs(apart_ms, ended - begun)
    }
  }
}

/** The server does the work, and ends a statement that takes too long. */
function heavyReads(database: BunSQLDatabase, access: object): HeavyReads {
  const place: HeavyPlace = (act) =>
    database
      .transaction(async (raw) => {
        await raw.execute(sql.raw(`SET LOCAL statement_timeout = ${HEAVY_READ_MS}`))
        const db = Object.assign(raw as unknown as Reader, access)
        return act(async (build) => await build(db))
      }, READING)
      .catch((error) => {
        throw sqlState(error) === QUERY_CANCELED ? tookTooLong() : error
      })
  return new HeavyReads(place, MAX_HEAVY)
}

/** Reads one moment of a Postgres on a connection of its own, with nothing changed. */
export async function readPostgresMoment<Result>(
  url: string,
  look: (db: Reader) => Promise<Result>,
): Promise<Result> {
  const pool = await connectPatiently(url, 1, {})
  try {
    const read = (raw: unknown) => look(Object.assign(raw as Reader, apart(false)))
    return await withUuids(drizzle(pool)).transaction(read, ONE_MOMENT)
  } finally {
    await pool.close()
  }
}

/**
 * Ids arrive as the bytes that SQLite takes, and become the text of a `uuid`. In a prepared statement
 * they arrive later, through their encoders.
 */
function withUuids<Database extends object>(database: Database): Database {
  const { dialect } = database as unknown as { dialect: PgDialect }
  const build = dialect.sqlToQuery.bind(dialect)
  dialect.prepareTyping = (encoder) => (isId(encoder) ? "uuid" : "none")
  dialect.sqlToQuery = (query, source) => {
    const built = build(query, source)
    const params = built.params.map((value, at) => {
      if (is(value, Param) && isId(value.encoder))
        return new Param(value.value, asUuid(value.encoder))
      return built.typings?.[at] === "uuid" && value !== null
        ? uuidOfBytes(value as Uint8Array)
        : value
    })
    return { ...built, params }
  }
  return database
}

const isId = (encoder: unknown): encoder is Column =>
  is(encoder, Column) && postgresType(encoder) === "uuid"

const asUuid = (column: Column) => ({
  mapToDriverValue(value: unknown) {
    const bytes = column.mapToDriverValue(value) as Uint8Array | null
    return bytes && uuidOfBytes(bytes)
  },
})

/** Where a direct url is set, the other one leads to a pooler. Else the start finds out. */
async function openPool(options: PostgresOptions) {
  const { url, direct_url } = options
  const pool = await connectPatiently(url, POOL.connections, options)
  const is_pooled = direct_url ? true : await sharesSessions(pool)
  if (!is_pooled) return { pool, is_pooled }
  await pool.close()
  return { pool: connect(url, { max: POOL.connections, prepare: false }), is_pooled }
}

async function requireBegun(pool: SQL, url: string) {
  const [ledger] = await pool`SELECT to_regclass('belfry_migrations') AS oid`
  if (!ledger?.oid) throw new NoDatabase(`${nameOf(url)} ${EMPTY}`)
}

const EMPTY =
  "is empty. Check that DATABASE_URL names the right database, or fill it with `belfry migrate`, `serve` or `init`."

/** A closure that opened another transaction would hold one connection and wait for a second. */
async function alone<Result>(closure: () => Promise<Result>, effects: (() => void)[]) {
  const mark = { open: true, effects }
  try {
    return await running.run(mark, async () => await closure())
  } finally {
    mark.open = false
  }
}

async function retryConflicts<Result>(
  attempt: () => Promise<Result>,
  onFault: (error: unknown) => void = () => {},
): Promise<Result> {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      if (number === MAX_ATTEMPTS || !CONFLICTS.includes(sqlState(error) ?? "")) {
        if (!(error instanceof ApiError)) onFault(error) // a refusal of ours is no trouble
        throw error
      }
      await sleep(Math.random() * 10 * 2 ** number) // jitter, lest the same two meet again
    }
  }
}

/** Outside every transaction: NOTIFY takes a lock on the whole database until its commit. */
async function publish(pool: SQL, topic: string, payload: string) {
  try {
    await pool`SELECT pg_notify(${topic}, ${payload})`
  } catch (error) {
    log.debug("a notification was lost; the next poll finds what it announced", { topic, error })
  }
}

async function hearFrom(pool: SQL, topic: string, hear: (payload: string) => void) {
  try {
    await pool.listen(topic, hear)
  } catch (error) {
    log.warn("cannot listen on Postgres; polling instead", { topic, error })
  }
}

/** The five-character SQLSTATE: a failing query arrives wrapped by drizzle, a failing COMMIT bare. */
export function sqlState(error: unknown): string | undefined {
  const { errno, cause } = error as { errno?: string; cause?: { errno?: string } }
  return cause?.errno ?? errno
}

const TRY_EVERY_MS = 500
const TELL_EVERY_MS = 5000
/** A pooler gives the same server to two connections at once, or two servers to one, within these. */
const LOOKS = 5

/** Postgres could not be reached for as long as it was waited for. */
export class DatabaseAway extends Error {
  override readonly name = "DatabaseAway"
}

interface ConnectOptions {
  patience_ms?: number
  /** For tests: how often the wait is told. */
  tell_every_ms?: number
}

/**
 * A pool on a Postgres that answers. One that is away, or that just starts, is waited for, with a
 * line in the log now and then. Throws DatabaseAway after that, and at once what waiting does not mend.
 */
export async function connectPatiently(
  url: string,
  max: number,
  options: ConnectOptions,
): Promise<SQL> {
  const { patience_ms = 0, tell_every_ms = TELL_EVERY_MS } = options
  const begun = monotonic()
  let told = Number.NEGATIVE_INFINITY
  for (;;) {
    const pool = connect(url, { max })
    const error = await failureOf(pool)
    if (error === undefined) return pool
    await pool.close()
    if (faultOf(error) !== "away") throw error
    const waited = monotonic() - begun
    if (waited >= patience_ms) throw away(url, error, waited)
    if (monotonic() - told >= tell_every_ms) {
      told = monotonic()
      const seconds_left = Math.ceil((patience_ms - waited) / 1000)
      log.warn(`${nameOf(url)} does not answer; waiting`, { seconds_left, error })
    }
    await sleep(Math.min(TRY_EVERY_MS, patience_ms - waited))
  }
}

async function failureOf(pool: SQL): Promise<unknown> {
  try {
    await processOf(pool)
    return undefined
  } catch (error) {
    return error ?? new Error("it gave no reason")
  }
}

/** Asked in the simple protocol, which leaves no statement behind. */
async function processOf(connection: Pick<SQL, "unsafe">): Promise<number> {
  const [row] = await connection.unsafe("SELECT pg_backend_pid() AS pid").simple()
  return Number(row.pid)
}

function away(url: string, error: unknown, waited_ms: number): DatabaseAway {
  const reason = error instanceof Error ? error.message : String(error)
  const how_long = waited_ms < 1000 ? "" : ` for ${Math.round(waited_ms / 1000)} s`
  return new DatabaseAway(`${nameOf(url)} did not answer${how_long}: ${reason}.`, { cause: error })
}

/** Without user and password. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `The Postgres database ${host}${pathname}`
}

/**
 * Whether a pooler lends its servers by the transaction. Then a session ends with each transaction:
 * one connection of ours meets several processes of Postgres, or two of ours meet the same.
 */
export async function sharesSessions(pool: SQL): Promise<boolean> {
  const connections = await Promise.all([pool.reserve(), pool.reserve()])
  const seen = connections.map(() => new Set<number>())
  try {
    for (let look = 0; look < LOOKS; look++) {
      for (const [at, connection] of connections.entries()) {
        seen[at]?.add(await processOf(connection))
      }
    }
  } finally {
    for (const connection of connections) connection.release()
  }
  const [one = new Set<number>(), other = new Set<number>()] = seen
  return one.size > 1 || other.size > 1 || !one.isDisjointFrom(other)
}
