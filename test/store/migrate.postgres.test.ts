import { expect, test } from "bun:test"
import { SQL } from "bun"
import { settings } from "../../src/core/config"
import { pendingPostgres, SchemaTooNew } from "../../src/store/apply-migrations"
import { migratePostgres } from "../../src/store/migrate"
import { embedded, type Migration } from "../../src/store/migrations"
import { openStore } from "../../src/store/open"
import { freshDatabase } from "../harness/postgres"
import { quietLog } from "../harness/quiet"
import { refusal } from "./facts"

quietLog()

const step = (tag: string, sql: string): Migration => ({ tag, sql })

const tags = embedded.postgres.map(({ tag }) => tag)

async function emptyDatabase() {
  const database = await freshDatabase()
  const pools: SQL[] = []
  const pool = () => {
    const one = new SQL(database.url, { max: 2 })
    pools.push(one)
    return one
  }
  return {
    url: database.url,
    pool,
    async tables() {
      const rows = await pool()`
        SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`
      return rows.map(({ tablename }: { tablename: string }) => tablename)
    },
    async [Symbol.asyncDispose]() {
      for (const one of pools) await one.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

test("an empty database gets every migration, and the second time none", async () => {
  await using it = await emptyDatabase()

  expect(await migratePostgres(it.pool())).toEqual(tags)
  expect(await it.tables()).toContain("messages")
  expect(await migratePostgres(it.pool())).toEqual([])
})

test("ids are UUIDs, and keys sort by byte, whatever the locale of the database is", async () => {
  await using it = await emptyDatabase()
  await migratePostgres(it.pool())

  const rows = await it.pool()`
    SELECT table_name || '.' || column_name AS name, data_type AS type,
      coalesce(collation_name, 'of the database') AS collation
    FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> 'belfry_migrations'
      AND (column_name = 'id' OR column_name LIKE '%\\_id' OR collation_name = 'C')`
  const others = rows.flatMap(({ name, type, collation }: Record<string, string>) =>
    type === "uuid" ? [] : `${name}: ${collation}`,
  )
  expect(others.sort()).toEqual([
    "ai_instance_spending.period: C",
    "audit_log.target_id: of the database",
    "auth_environments.passkey_rp_id: C",
    "devices.app_id: of the database",
    "devices.device_id: of the database",
    "devices.user_id: of the database",
    "gaming_providers.client_id: of the database",
    "gaming_providers.team_id: of the database",
    "idempotency.request: C",
    "inbound_emails.rfc_message_id: of the database",
    "inbox_tickets.id: C",
    "instance_values.name: C",
    "merged_subscribers.external_id: of the database",
    "messages.rfc_message_id: of the database",
    "messages.user_id: of the database",
    "mfa_challenges.token_hash: C",
    "mta_sts_policies.domain: C",
    "mta_sts_policies.policy_id: of the database",
    "oauth_providers.client_id: of the database",
    "oauth_providers.key_id: of the database",
    "oauth_providers.team_id: of the database",
    "organization_invitations.email_key: C",
    "password_resets.token_hash: C",
    "paused_queues.queue: C",
    "provider_receipts.provider_message_id: of the database",
    "refresh_tokens.token_hash: C",
    "request_log.request_id: of the database",
    "subscriber_postings.term: C",
    "subscriber_words.word: C",
    "subscribers.external_id: of the database",
    "throttles.subject: C",
    "used_assertions.hash: C",
    "user_challenges.token_hash: C",
    "user_codes.identifier: C",
    "user_identities.provider_user_id: C",
    "user_links.token_hash: C",
    "user_passkeys.credential_id: C",
    "user_refresh_tokens.token_hash: C",
    "user_throttles.subject: C",
    "users.anonymous_device_id: of the database",
    "users.email_key: C",
  ])
})

test("of several nodes that start at once each migration is applied by one", async () => {
  await using it = await emptyDatabase()

  const all = await Promise.all([1, 2, 3, 4].map(() => migratePostgres(it.pool())))
  expect(all.flat().sort()).toEqual(tags.toSorted())
})

test("who comes second waits at the lock until the first one is through", async () => {
  await using it = await emptyDatabase()
  const other = await it.pool().reserve()
  await other`SELECT pg_advisory_lock(727001)`

  const migration = migratePostgres(it.pool())
  const waiting = async () => {
    const rows = await other`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`
    return rows.length
  }
  while ((await waiting()) === 0) await Bun.sleep(5)
  expect(await it.tables()).toEqual([])
  await other`SELECT pg_advisory_unlock(727001)`
  expect(await migration).toEqual(tags)
  other.release()
})

test("a migration that breaks in the middle leaves nothing of itself, and frees the lock", async () => {
  await using it = await emptyDatabase()
  const good = step("0000_a", "CREATE TABLE a (n int);")
  const broken = step("0001_b", "CREATE TABLE b (n int);--> statement-breakpoint\nNONSENSE;")

  expect(await refusal(migratePostgres(it.pool(), [good, broken]))).toContain("NONSENSE")
  expect(await it.tables()).toEqual(["a", "belfry_migrations"])
  const mended = step("0001_b", "CREATE TABLE b (n int);")
  expect(await migratePostgres(it.pool(), [good, mended])).toEqual(["0001_b"])
})

test("a schema from a later version is refused by the name of what is strange", async () => {
  await using it = await emptyDatabase()
  await migratePostgres(it.pool(), [...embedded.postgres, step("9999_later", "SELECT 1;")])

  const store = openStore({ ...settings(), database_url: it.url })
  const error = await store.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(SchemaTooNew)
  expect((error as Error).message).toContain('"9999_later"')
})

test("what is pending is told without changing anything", async () => {
  await using it = await emptyDatabase()
  expect(await pendingPostgres(it.pool())).toEqual(tags)
  expect(await it.tables()).toEqual([])
  await migratePostgres(it.pool())
  expect(await pendingPostgres(it.pool())).toEqual([])
})
