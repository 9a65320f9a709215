import { defineConfig } from "drizzle-kit"

/** The tables choose their engine when they are imported, so one run of drizzle-kit serves one engine. */
const postgres = Boolean(process.env.DATABASE_URL)

export default defineConfig({
  dialect: postgres ? "postgresql" : "sqlite",
  schema: "./src/**/tables.ts",
  out: process.env.BELFRY_TEST_MIGRATIONS ?? `./migrations/${postgres ? "postgres" : "sqlite"}`,
})
