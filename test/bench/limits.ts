import { postgresFolder, startPostgres } from "../harness/postgres"
import { acceptHeld } from "./accept"
import { acceptFor } from "./accept-postgres"
import { atLeast, type Bench, ratioOf, series } from "./bench"

/** Every limit is there and counted, and none is reached. */
const LIMITED = {
  BELFRY_PLANS_DEFAULT: "pro",
  BELFRY_PLANS_PRO_REQUESTS_PER_MINUTE: "100000000",
  BELFRY_PLANS_PRO_SENDS_PER_SECOND: "1000000",
  BELFRY_PLANS_PRO_EMAILS_PER_MONTH: "1000000000",
}

export const limits: Bench = {
  name: "limits",
  title: "accepting under a plan with limits against one without",

  async run({ rounds, seconds }) {
    const free = series("SQLite over HTTP, unlimited", "/s")
    const held = series("SQLite over HTTP, limits counted", "/s")
    const free_postgres = series("Postgres without HTTP, unlimited", "/s")
    const held_postgres = series("Postgres without HTTP, limits counted", "/s")
    const programs = postgresFolder()
    if (!programs) throw new Error("needs Postgres (apt-get install postgresql)")
    await using server = await startPostgres(programs)
    process.env.BELFRY_TEST_POSTGRES = server.url // for `freshDatabase`

    for (let round = 0; round < rounds; round++) {
      free.values.push((await acceptHeld(seconds)).per_second)
      held.values.push((await acceptHeld(seconds, LIMITED)).per_second)
      free_postgres.values.push(await acceptFor("together", seconds))
      held_postgres.values.push(await acceptFor("together", seconds, LIMITED))
    }
    return {
      series: [free, held, free_postgres, held_postgres],
      verdicts: [
        atLeast("SQLite, limited to unlimited", ratioOf(held, free), 0.85),
        atLeast("Postgres, limited to unlimited", ratioOf(held_postgres, free_postgres), 0.85),
      ],
      notes: [
        "The limited plan has a request window, a monthly quota and a send bucket, all far from full: on each accept their rows are held and written. Usage a day is counted on both. The rest is as in `accept` (relay held) and `accept-postgres` (coalesced).",
      ],
    }
  },
}
