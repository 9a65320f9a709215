/**
 * Of the Postgres servers that the test command started, each test process has one to itself: another
 * process' transactions hold back what the feeds of a server show. This stands before every import that
 * may ask for the settings. A program that a test starts gets it by `env: process.env`, and not by itself.
 */
const servers = process.env.BELFRY_TEST_POSTGRES?.split(" ") ?? []
/** From 1, where the command started several processes for a group. */
const worker = Number(process.env.BUN_TEST_WORKER_ID ?? 1)
const own = servers[(worker - 1) % servers.length]

if (own !== undefined) {
  process.env.BELFRY_TEST_POSTGRES = own
  if (process.env.BELFRY_TEST_ENGINE === "postgres") process.env.DATABASE_URL = own
}

export {}
