import { Glob } from "bun"

/** Files that run together in one `bun test`, with the limits they need. */
export interface Group {
  name: string
  files: string[]
  engine: "sqlite" | "postgres"
  /** They run the compiled binary, so it has to be up to date first. */
  needsBinary: boolean
  /** Their files stand on a real disk. */
  onDisk: boolean
  /** So many files at a time, each in a process of its own. */
  processes: number
  testTimeoutMs: number
  groupTimeoutMs: number
}

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** Nothing in these knows a database: once is enough. */
const ENGINELESS = /^test\/(lib|core|cli|client|docs|contracts|harness|emails\/providers)\//
/** Nor in these, whose neighbours do. */
const ENGINELESS_FILES = [
  /^test\/smtp\/(mail-data|mail-server|mail-server-limits|submitted-mail)\.test\.ts$/,
  /^test\/inbound\/(verdicts(-hostile|-peers)?|dmarc|sender-policy|dns-asker)\.test\.ts$/,
  /^test\/inbound\/(bounce-subtype|header-rows|mail-authors|spam-score)\.test\.ts$/,
  /^test\/fuzz\/received-mail\.test\.ts$/,
]
const ON_BINARY = /^test\/(scenarios|faults)\//
const NOT_TESTS = /^test\/(bench|fakes)\//

/**
 * Every test file below `root`, once or once an engine, in the order of running: what answers
 * fastest first. Groups of one stage run side by side. `wanted` are parts of paths; an empty list
 * wants all of them.
 */
export function stages(root: string, wanted: string[], full: boolean): Group[][] {
  const files = [...new Glob("test/**/*.test.ts").scanSync(root)]
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !NOT_TESTS.test(path))
    .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(bare(part))))
    .sort()

  const architecture = within(files, "test/architecture.test.ts")
  const inside = files.filter((path) => !ON_BINARY.test(path) && !architecture.includes(path))
  const quick = {
    needsBinary: false,
    onDisk: false,
    processes: 1,
    testTimeoutMs: 40 * SECOND,
    groupTimeoutMs: (full ? 90 : 30) * MINUTE,
  }
  const slow = {
    engine: "sqlite" as const,
    needsBinary: true,
    onDisk: false,
    processes: 1,
    testTimeoutMs: (full ? 20 : 3) * MINUTE,
    groupTimeoutMs: (full ? 90 : 30) * MINUTE,
  }
  const pair = { processes: 2 } // about as many as to end when Postgres does, which has one
  const waiting = { ...slow, processes: 3 } // they wait more than they work
  const all: Group[][] = [
    [{ name: "architecture", files: architecture, engine: "sqlite", ...quick }],
    [
      { name: "on SQLite", files: inside.filter(onSqlite), engine: "sqlite", ...quick, ...pair },
      { name: "on Postgres", files: inside.filter(onPostgres), engine: "postgres", ...quick },
    ],
    [
      { name: "scenarios on the binary", files: within(files, "test/scenarios/"), ...waiting },
      { name: "faults on the binary", files: within(files, "test/faults/"), ...slow, onDisk: true },
    ],
  ]
  return all
    .map((stage) => stage.filter((group) => group.files.length > 0))
    .filter((stage) => stage.length > 0)
}

const bare = (path: string) => path.replace(/^\.\//, "")

const within = (files: string[], place: string) => files.filter((path) => path.startsWith(place))

const onSqlite = (path: string) => !path.endsWith(".postgres.test.ts")

const onPostgres = (path: string) =>
  !path.endsWith(".sqlite.test.ts") && (!isEngineless(path) || path.endsWith(".postgres.test.ts"))

const isEngineless = (path: string) =>
  [ENGINELESS, ...ENGINELESS_FILES].some((form) => form.test(path))
