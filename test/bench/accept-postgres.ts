import { freshDatabase, postgresFolder, startPostgres } from "../harness/postgres"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { oneMail } from "./mail"
import { scratchFolder } from "./scratch"

export const acceptPostgres: Bench = {
  name: "accept-postgres",
  title: "accepting on one Postgres, coalesced against one transaction a message",

  async run({ rounds, seconds }) {
    const programs = postgresFolder()
    if (!programs) throw new Error("needs Postgres (apt-get install postgresql)")
    await using server = await startPostgres(programs)
    process.env.BELFRY_TEST_POSTGRES = server.url // for `freshDatabase`

    const alone = series("one transaction a message", "/s")
    const together = series("ours: coalesced", "/s")
    for (let round = 0; round < rounds; round++) {
      alone.values.push(await acceptFor("alone", seconds))
      together.values.push(await acceptFor("together", seconds))
    }
    return {
      series: [alone, together],
      verdicts: [atLeast("coalesced to uncoalesced", ratioOf(together, alone), 3)],
      notes: [
        "64 messages of 1 KB in flight, each with its own idempotency key; the same accept, in the same process, without HTTP. Postgres runs beside it with fsync on. The database held exactly what was accepted.",
      ],
    }
  },
}

/** Messages a second that a process of its own accepted, without HTTP. */
export async function acceptFor(
  way: "together" | "alone",
  seconds: number,
  environment: Record<string, string> = {},
): Promise<number> {
  await using database = await freshDatabase()
  using scratch = scratchFolder()
  const body = oneMail(scratch.path, "shop@bench.test")
  const child = Bun.spawn({
    cmd: [process.execPath, `${import.meta.dir}/accept-lanes.ts`, way, String(seconds), body],
    env: {
      PATH: process.env.PATH ?? "",
      DATABASE_URL: database.url,
      BELFRY_DATA_DIR: scratch.path,
      BELFRY_LOG_LEVEL: "warn",
      ...environment,
    },
    stdout: "pipe",
    stderr: "inherit",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`accepting ${way} failed`)
  const told = JSON.parse(text) as { per_second: number; accepted: number; stored: number }
  requireEqual(`rows, accepted ${way}`, told.accepted, told.stored)
  return told.per_second
}
