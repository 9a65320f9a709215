/**
 * The peer of the job loop: so many no-op jobs through graphile-worker, tuned or as it comes. Runs
 * in the folder where it is installed: `node graphile.mjs tuned|default JOBS` prints jobs a second.
 */
import { createRequire } from "node:module"

const require = createRequire(`${process.cwd()}/`)
const { run, makeWorkerUtils, Logger } = require("graphile-worker")
const { Pool } = require("pg")

const CONCURRENCY = 24
const LOCAL_QUEUE = 500
const BATCH_MS = 0

const [way, count] = process.argv.slice(2)
const jobs = Number(count)
const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 24 })
pool.on("error", () => {})
pool.on("connect", (client) => client.on("error", () => {}))
const logger = new Logger(() => () => {})

const setup = await makeWorkerUtils({ pgPool: pool, logger })
await setup.migrate()
await pool.query(
  "SELECT graphile_worker.add_job('noop', '{}'::json) FROM generate_series(1, $1::int)",
  [jobs],
)

let ran = 0
const tuned = {
  preset: {
    worker: {
      concurrentJobs: CONCURRENCY,
      localQueue: { size: LOCAL_QUEUE },
      completeJobBatchDelay: BATCH_MS,
      failJobBatchDelay: BATCH_MS,
    },
  },
}
const begun = performance.now()
const runner = await run({
  ...(way === "tuned" ? tuned : {}),
  pgPool: pool,
  logger,
  noHandleSignals: true,
  taskList: {
    noop: async () => {
      ran += 1
    },
  },
})
for (let left = jobs; left > 0; ) {
  await new Promise((resolve) => setTimeout(resolve, ran < jobs ? 20 : 2))
  if (ran < jobs) continue
  const { rows } = await pool.query("SELECT count(*)::int AS left FROM graphile_worker.jobs")
  left = rows[0].left
}
const seconds = (performance.now() - begun) / 1000
await runner.stop()
await pool.end()
console.log(JSON.stringify({ per_second: jobs / seconds, ran }))
process.exit(0)
