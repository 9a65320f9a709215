import { expect, test } from "bun:test"
import { mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { leftover } from "../harness/leftovers"
import { root } from "../harness/migrations"
import { reachable } from "../harness/sources"

const PAGE = readFileSync(join(root, "docs/how-a-message-travels.md"), "utf8")

/** What runs for each email grows with their number. Work of timers does not, however slow the machine is. */
const [FEW, MANY] = [29, 41]

/** How often each line of each file of `src` ran, while so many emails travelled. */
async function linesRun(journeys: number): Promise<Map<string, Map<number, number>>> {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-coverage-")))
  const coverage = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${folder}`]
  const cmd = [
    process.execPath,
    "test",
    "--timeout=60000",
    ...coverage,
    "./test/harness/journey.ts",
  ]
  const own = { BELFRY_TEST_JOURNEYS: String(journeys), DATABASE_URL: undefined }
  const env = { ...process.env, ...own }
  const child = Bun.spawn({ cmd, cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
  const output = (await child.stdout.text()) + (await child.stderr.text())
  expect(await child.exited, output).toBe(0)
  const files = new Map<string, Map<number, number>>()
  let lines = new Map<number, number>()
  for (const line of readFileSync(join(folder, "lcov.info"), "utf8").split("\n")) {
    const [kind = "", value = ""] = line.split(/:(.*)/)
    if (kind === "SF") {
      lines = new Map()
      files.set(value, lines)
    }
    const [number = 0, count = 0] = value.split(",").map(Number)
    if (kind === "DA") lines.set(number, count)
  }
  return files
}

/** The files in a section of the page: each row of its table is a folder and the files in it. */
function listed(heading: string): string[] {
  const section = PAGE.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? ""
  const rows = [...section.matchAll(/^\| `([^`]+)` \| (.*) \|$/gm)]
  return rows.flatMap(([, folder = "", files = ""]) =>
    [...files.matchAll(/`([^`]+)`/g)].map(([, name]) => join("src", folder, `${name}.ts`)),
  )
}

test("the page lists every file that one email and its webhook run through", async () => {
  const [none, few, many] = [await linesRun(0), await linesRun(FEW), await linesRun(MANY)]
  const runs = [...many].flatMap(([path, lines]) => {
    if (!path.startsWith("src/")) return []
    const times = [...lines].map(([line, count]) => {
      const at_rest = none.get(path)?.get(line) ?? 0
      const of_few = few.get(path)?.get(line) ?? 0
      return { of_few: (of_few - at_rest) / FEW, of_many: (count - at_rest) / MANY }
    })
    return [{ path, times: times.filter(({ of_many }) => of_many >= 0.9) }]
  })
  const listing = listed("Every file on the way")
  expect(listing).toEqual(listing.toSorted())
  const silent = listing.filter((path) => !runs.some((one) => one.path === path && one.times[0]))
  expect(silent).toEqual([])
  const steady = runs.filter(({ times }) =>
    times.some(({ of_few, of_many }) => Number.isInteger(of_many) && of_few === of_many),
  )
  expect(steady.map(({ path }) => path).filter((path) => !listing.includes(path))).toEqual([])
})

test("the files of the mailer thread are files of the thread", () => {
  // The thread loads them at its start, which the list of imports does not tell.
  const starts = ["src/worker.ts", "src/emails/mailer-thread.ts"]
  const thread = starts.flatMap(reachable).map(({ path }) => path)
  const files = listed("Files of the mailer thread")
  expect(files).not.toEqual([])
  expect(files.filter((path) => !thread.includes(path))).toEqual([])
})
