import { freshDatabase, postgresFolder, startPostgres } from "../harness/postgres"
import { atMost, type Bench, ratioOf, series } from "./bench"
import { scratchFolder } from "./scratch"

const SMALL = 10_000
const LARGE = 10_000_000
const QUICK_LARGE = 300_000

export const suppressions: Bench = {
  name: "suppressions",
  title: "one address looked up among ten million suppressions of a project, against ten thousand",

  async run({ rounds, seconds }) {
    const programs = postgresFolder()
    if (!programs) throw new Error("needs Postgres (apt-get install postgresql)")
    await using server = await startPostgres(programs)
    process.env.BELFRY_TEST_POSTGRES = server.url // for `freshDatabase`
    const large = rounds > 2 ? LARGE : QUICK_LARGE
    const names = ["SQLite", "Postgres"] as const
    const figures = names.map((name) => ({
      name,
      few: series(`${name}, ${SMALL.toLocaleString("en")} suppressions`, "µs"),
      many: series(`${name}, ${large.toLocaleString("en")} suppressions`, "µs"),
      few_at_once: series(`${name}, 200 addresses, ${SMALL.toLocaleString("en")}`, "µs"),
      many_at_once: series(`${name}, 200 addresses, ${large.toLocaleString("en")}`, "µs"),
    }))
    for (let round = 0; round < Math.min(rounds, MOST_ROUNDS); round++) {
      for (const { name, few, many, few_at_once, many_at_once } of figures) {
        const small = await lookUp(name, SMALL, seconds)
        const whole = await lookUp(name, large, seconds)
        few.values.push(small.p50)
        many.values.push(whole.p50)
        few_at_once.values.push(small.many)
        many_at_once.values.push(whole.many)
      }
    }
    return {
      series: figures.flatMap((one) => [one.few, one.many, one.few_at_once, one.many_at_once]),
      verdicts: figures.map(({ name, few, many }) =>
        atMost(`${name}, one address among a thousand times as many`, ratioOf(many, few), 3, "×"),
      ),
      notes: [
        "The large list does not fit into the cache of the database, so a look-up reads a few pages more. Medians of look-ups one after the other, in the process of the store; half of the addresses are suppressed, and each answer is checked. All suppressions belong to one project.",
      ],
    }
  },
}

/** Filling takes minutes at the large size. */
const MOST_ROUNDS = 1

interface LookUpTimes {
  p50: number
  p99: number
  many: number
}

async function lookUp(name: string, rows: number, seconds: number): Promise<LookUpTimes> {
  await using database = name === "Postgres" ? await freshDatabase() : undefined
  using scratch = scratchFolder()
  const child = Bun.spawn({
    cmd: [
      process.execPath,
      `${import.meta.dir}/suppression-lanes.ts`,
      String(rows),
      String(seconds),
    ],
    env: {
      PATH: process.env.PATH ?? "",
      BELFRY_DATA_DIR: scratch.path,
      BELFRY_LOG_LEVEL: "warn",
      ...(database && { DATABASE_URL: database.url }),
    },
    stdout: "pipe",
    stderr: "inherit",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`looking up among ${rows} failed on ${name}`)
  return JSON.parse(text) as LookUpTimes
}
