import { defineConfig } from "drizzle-kit"

/** One run of drizzle-kit serves one engine. */
const postgres = Boolean(process.env.DATABASE_URL)

export default defineConfig({
  dialect: postgres ? "postgresql" : "sqlite",
  schema: postgres ? "./test/harness/postgres-schema.cjs" : "./src/**/tables.ts",
  out: process.env.BELFRY_TEST_MIGRATIONS ?? `./migrations/${postgres ? "postgres" : "sqlite"}`,
})
