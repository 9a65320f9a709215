/**
 * The job loop on its own: so many no-op jobs, each claimed and ended on disk, on the engine that
 * the environment names. A process of its own: `job-lanes.ts JOBS` prints jobs a second.
 */
import { sql } from "drizzle-orm"
import { settings } from "../../src/core/config"
import { bind, enqueueAll, type JobKind, jobTable } from "../../src/jobs/jobs"
import { WorkLoop } from "../../src/jobs/loop"
import { jobs } from "../../src/jobs/tables"
import { openStore } from "../../src/store/open"

const CHUNK = 1000
const noop: JobKind<{ number: number }> = { name: "bench.noop", schedule: () => undefined }

const wanted = Number(process.argv[2])
const concurrency = settings()["delivery.concurrency"]
const store = await openStore(settings())
for (let done = 0; done < wanted; done += CHUNK) {
  const size = Math.min(CHUNK, wanted - done)
  const work = Array.from({ length: size }, (_, n) => ({
    payload: { number: done + n },
    project_id: null,
  }))
  await store.tx((tx) => enqueueAll(tx, noop, work))
}

let ran = 0
const run = async () => {
  ran += 1
  return {}
}
const lease_ms = settings()["delivery.lease"]
const loop = new WorkLoop({
  store,
  table: jobTable(bind(noop, { run })),
  concurrency,
  lease_ms,
  alone: true,
})
const begun = performance.now()
await loop.start()
while ((await left()) > 0) await Bun.sleep(ran < wanted ? 20 : 2)
const seconds = (performance.now() - begun) / 1000
const { commits } = store.stats
await loop.stop(1000)
await store.close()
console.log(JSON.stringify({ per_second: wanted / seconds, ran, commits }))
process.exit(0)

async function left(): Promise<number> {
  if (ran < wanted) return wanted - ran
  const [row] = await store.read.select({ rows: sql<number>`count(*)` }).from(jobs)
  return Number(row?.rows)
}
