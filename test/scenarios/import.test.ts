import { Database } from "bun:sqlite"
import { expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { MEGABYTE, residentMegabytes } from "../bench/memory"
import { type Belfry, binary, startBelfry } from "../harness/binary"
import { sizes } from "../harness/sizes"

const PEOPLE = sizes.imported
/** A line of each fault in so many lines. */
const BROKEN_EVERY = 1000
const MOST_GROWN_MB = (64 * 1024 * 1024) / MEGABYTE
const STEADY_LINES = 2000

const NAMES: [locale: string, name: string][] = [
  ["en", "Ann Bell"],
  ["de", 'Jörg "Jo" Özil; Müller'],
  ["fr", "Élodie Lefèvre"],
  ["es", "Íñigo Núñez"],
  ["pt", "João Conceição"],
  ["it", "Niccolò D'Amico"],
  ["pl", "Żółć Gęślą"],
  ["cs", "Řehoř Žluťoučký"],
  ["ru", "Ёлка Щукина"],
  ["uk", "Їжак Ґудзь"],
  ["el", "Όλγα Ξένου"],
  ["tr", "İpek Iğdır"],
  ["ar", "ليلى حسن"],
  ["he", "שרה לוי"],
  ["hi", "श्रेया शर्मा"],
  ["th", "สมชาย ใจดี"],
  ["vi", "Ngọc Trần"],
  ["ja", "山田 太郎"],
  ["ko", "김 민준"],
  ["zh-Hans", "李 雷"],
]
const NOTE = 'first line\r\nsecond "line"; end'

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`

/** What a line of a broken kind says instead; each kind is refused for a reason of its own. */
const FAULTS = [
  { email: "no address" },
  { external_id: "external" },
  { external_id: "", email: "" },
  { more: ";a cell too many" },
]

function line(at: number): string {
  const [locale, name] = NAMES[at % NAMES.length] ?? ["en", ""]
  const fault = FAULTS[(at % BROKEN_EVERY) - 1]
  const plain = { external_id: `c${at}`, email: `c${at}@people.test`, more: "" }
  const { external_id, email, more } = { ...plain, ...fault }
  const note = at % 50 === 0 ? quoted(NOTE) : ""
  return `${external_id};${email};${quoted(`${name} ${at}`)};${locale};"all;${at % 3}";${note}${more}\r\n`
}

/** As a spreadsheet saves it: a BOM, semicolons, quoted cells, line breaks in cells. */
async function writePeople(path: string): Promise<void> {
  const writer = Bun.file(path).writer()
  writer.write("\ufeffCustomer No;E-Mail;Name;Language;Tags;Note\r\n")
  for (let at = 0; at < PEOPLE; at++) {
    writer.write(line(at))
    if (at % 10_000 === 0) await writer.flush()
  }
  await writer.end()
}

interface Imported {
  code: number
  counts: { created: number; updated: number; skipped: number; failed: number; errors: string }
  /** The most that it grew after its first lines. */
  grown_mb: number
}

function startImport({ home, url, api_key }: Belfry, file: string) {
  const mapped = ["--map", "Customer No=external_id", "--map", "Note=metadata.note"]
  return Bun.spawn([binary, "subscribers", "import", file, ...mapped, "--json"], {
    cwd: join(home, "work"),
    env: {
      ...{ PATH: process.env.PATH ?? "", HOME: home, XDG_STATE_HOME: join(home, "state") },
      ...{ BELFRY_URL: url, BELFRY_API_KEY: api_key },
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  })
}

/** How many lines of the file were answered so far. */
function linesDone(file: string): number {
  if (!existsSync(`${file}.progress`)) return 0
  return (JSON.parse(readFileSync(`${file}.progress`, "utf8")) as { lines: number }).lines
}

async function importAll(server: Belfry, file: string): Promise<Imported> {
  const from = linesDone(file)
  const child = startImport(server, file)
  let [before, most] = [Number.NaN, 0]
  const timer = setInterval(() => {
    if (child.exitCode !== null) return
    const now = residentMegabytes(child.pid)
    if (Number.isNaN(before) && linesDone(file) >= from + STEADY_LINES) before = now
    most = Math.max(most, now)
  }, 100)
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  clearInterval(timer)
  if (out === "") throw new Error(`exit ${code}: ${err}`)
  return { code, counts: JSON.parse(out), grown_mb: most - before }
}

/** Imports until half of the lines are answered, then dies. */
async function importHalf(server: Belfry, file: string): Promise<void> {
  const child = startImport(server, file)
  while (linesDone(file) < PEOPLE / 2 && child.exitCode === null) await Bun.sleep(2)
  expect(child.exitCode).toBeNull()
  child.kill("SIGKILL")
  await child.exited
}

/** How many there are, and when they changed. */
function stateOf({ data_dir }: Belfry) {
  using database = new Database(join(data_dir, "belfry.db"), { readonly: true })
  return database
    .query("SELECT count(*) AS people, sum(updated_at) AS changed FROM subscribers")
    .get() as { people: number; changed: number }
}

const errorsIn = (path: string) =>
  readFileSync(path, "utf8")
    .trim()
    .split("\r\n")
    .slice(1)
    .map((text) => Number(text.split(",")[0]))

test("a large file is imported over a SIGKILL, names its broken lines, and changes nothing the second time", async () => {
  const env = { BELFRY_SUBSCRIBERS_BULK_PER_MINUTE: "100000" }
  await using server = await startBelfry({ env })
  const file = join(server.home, "people.csv")
  await writePeople(file)
  const broken = FAULTS.length * Math.floor(PEOPLE / BROKEN_EVERY)

  await importHalf(server, file)
  const { code, counts, grown_mb } = await importAll(server, file)
  expect([code, counts.created + counts.updated, counts.failed]).toEqual([
    8,
    PEOPLE - broken,
    broken,
  ])
  expect(new Set(errorsIn(counts.errors)).size).toBe(broken)
  const first = stateOf(server)
  expect(first.people).toBe(PEOPLE - broken)
  if (!Number.isNaN(grown_mb)) expect(grown_mb).toBeLessThan(MOST_GROWN_MB)

  const again = await importAll(server, file)
  expect(again.counts).toMatchObject({ created: 0, updated: PEOPLE - broken, failed: broken })
  expect(errorsIn(again.counts.errors)).toHaveLength(broken)
  expect(stateOf(server)).toEqual(first)

  const asked = await server.request("/v1/subscribers/external/c50")
  const { data } = (await asked.json()) as { data: object }
  expect(data).toMatchObject({
    ...{ external_id: "c50", email: "c50@people.test", locale: "el", tags: ["all", "2"] },
    metadata: { note: NOTE },
  })
}, 7_200_000)
