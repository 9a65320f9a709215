import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { freshDatabase, postgresFolder, startPostgres } from "../harness/postgres"
import { atLeast, type Bench, median, ratioOf, requireEqual, series } from "./bench"
import { scratchFolder } from "./scratch"

/** As released at the time of writing; its own newest dependencies may not resolve everywhere. */
const PEER = "graphile-worker@0.18.0"
const NOT_NEWER = "--before=2026-03-01"

/** Enough for some seconds each; the peer as it comes asks the database once and more a job. */
const jobs_of = { ours: 60_000, ours_postgres: 30_000, tuned: 40_000, default: 3_000 }

export const jobs: Bench = {
  name: "jobs",
  title: "the job loop, no-op jobs, each claimed and ended on disk",

  async run({ rounds, seconds }) {
    const programs = postgresFolder()
    if (!programs) throw new Error("needs Postgres (apt-get install postgresql)")
    using peer = installPeer()
    await using server = await startPostgres(programs)
    process.env.BELFRY_TEST_POSTGRES = server.url // for `freshDatabase`
    const share = Math.min(1, seconds / 5)
    const size = (way: keyof typeof jobs_of) => Math.round(jobs_of[way] * share)

    const ours = series("ours: SQLite, 20 at once", "/s")
    const onPostgres = series("ours: Postgres, 20 at once", "/s")
    const tuned = series("graphile-worker, tuned", "/s")
    const asItComes = series("graphile-worker, as it comes", "/s")
    for (let round = 0; round < rounds; round++) {
      asItComes.values.push(await peerRuns(peer.path, "default", size("default")))
      ours.values.push(await oursRuns(size("ours"), null))
      tuned.values.push(await peerRuns(peer.path, "tuned", size("tuned")))
      await using database = await freshDatabase()
      onPostgres.values.push(await oursRuns(size("ours_postgres"), database.url))
    }
    return {
      series: [ours, onPostgres, tuned, asItComes],
      verdicts: [
        atLeast("ours to graphile-worker, tuned", ratioOf(ours, tuned), 2),
        atLeast("ours to graphile-worker, as it comes", ratioOf(ours, asItComes), 10),
      ],
      notes: [
        `SQLite with synchronous=FULL, Postgres beside it with fsync on. Tuned: ${PEER} with a local queue of 500, completions in batches, 24 at once; as it comes: its own defaults. Jobs are enqueued before the clock starts, which stops when no row is left; every job ran exactly once.`,
        `On the same Postgres ours takes ${(median(onPostgres.values) / median(tuned.values)).toFixed(2)} × the tuned peer's rate.`,
      ],
    }
  },
}

function installPeer() {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  copyFileSync(join(import.meta.dir, "graphile.mjs"), join(scratch.path, "graphile.mjs"))
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
  const install = (...more: string[]) =>
    Bun.spawnSync({
      cmd: ["npm", "install", ...flags, ...more],
      cwd: scratch.path,
      stdio: ["ignore", "ignore", "pipe"],
    })
  const first = install(PEER)
  const made = first.exitCode === 0 ? first : install("graphile-worker", NOT_NEWER)
  if (made.exitCode === 0) return scratch
  scratch[Symbol.dispose]()
  throw new Error(`the peer cannot be installed: ${made.stderr.toString()}`)
}

async function peerRuns(folder: string, way: "tuned" | "default", jobs: number): Promise<number> {
  await using database = await freshDatabase()
  const cmd = ["node", "graphile.mjs", way, String(jobs)]
  return await measured(`graphile-worker, ${way}`, jobs, { cmd, cwd: folder, url: database.url })
}

async function oursRuns(jobs: number, url: string | null): Promise<number> {
  using scratch = scratchFolder()
  const cmd = [process.execPath, join(import.meta.dir, "job-lanes.ts"), String(jobs)]
  return await measured("ours", jobs, { cmd, cwd: scratch.path, url })
}

interface Child {
  cmd: string[]
  cwd: string
  url: string | null
}

async function measured(who: string, jobs: number, { cmd, cwd, url }: Child): Promise<number> {
  const child = Bun.spawn({
    cmd,
    cwd,
    env: {
      PATH: process.env.PATH ?? "",
      BELFRY_DATA_DIR: cwd,
      BELFRY_LOG_LEVEL: "warn",
      ...(url && { DATABASE_URL: url }),
    },
    stdout: "pipe",
    stderr: "pipe",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`${who} failed: ${await child.stderr.text()}`)
  const told = JSON.parse(text) as { per_second: number; ran: number }
  requireEqual(`runs of jobs, ${who}`, jobs, told.ran)
  return told.per_second
}
