import { atMost, type Bench, ratioOf, series } from "./bench"
import { scratchFolder } from "./scratch"

const SMALL = 10_000
const LARGE = 1_000_000
const QUICK_LARGE = 100_000

export const subscribers: Bench = {
  name: "subscribers",
  title: "pages of the list of a million subscribers, with each filter, against ten thousand",

  async run({ rounds, seconds }) {
    const size = rounds > 2 ? LARGE : QUICK_LARGE
    const small = await listing(SMALL, seconds)
    const large = await listing(size, seconds)
    const names = Object.keys(small.p99)
    const figures = names.map((name) => {
      const few = series(`${name}, ${SMALL.toLocaleString("en")}`, "µs")
      const many = series(`${name}, ${size.toLocaleString("en")}`, "µs")
      few.values.push(small.p99[name] ?? Number.NaN)
      many.values.push(large.p99[name] ?? Number.NaN)
      return { name, few, many }
    })
    const writing = series("subscribers written", "/s")
    writing.values.push(large.written_a_second)
    return {
      series: [...figures.flatMap(({ few, many }) => [few, many]), writing],
      verdicts: figures.map(({ name, few, many }) =>
        atMost(`${name}, a hundred times as many`, ratioOf(many, few), 1.5, "×"),
      ),
      notes: [
        "99th percentiles of a page of 25 with its total, one after the other, in the process of the store, on SQLite. Names are made of syllables, of which few are common.",
      ],
    }
  },
}

interface ListTimes {
  p50: Record<string, number>
  p99: Record<string, number>
  written_a_second: number
}

async function listing(rows: number, seconds: number): Promise<ListTimes> {
  using scratch = scratchFolder()
  const child = Bun.spawn({
    cmd: [
      process.execPath,
      `${import.meta.dir}/subscriber-lanes.ts`,
      String(rows),
      String(seconds),
    ],
    env: {
      PATH: process.env.PATH ?? "",
      BELFRY_DATA_DIR: scratch.path,
      BELFRY_LOG_LEVEL: "warn",
    },
    stdout: "pipe",
    stderr: "inherit",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`listing ${rows} subscribers failed`)
  return JSON.parse(text) as ListTimes
}
