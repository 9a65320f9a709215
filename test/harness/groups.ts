import { Glob } from "bun"
import { opensStore } from "./store-users"

/** Files that run together in one `bun test`, with the limits they need. */
export interface Group {
  name: string
  files: string[]
  engine: "sqlite" | "postgres"
  /** They run the compiled binary, so it has to be up to date first. */
  needsBinary: boolean
  /** Their files stand on a real disk. */
  onDisk: boolean
  /** So many files at a time, each in a process of its own; on Postgres each with a server of its own. */
  processes: number
  testTimeoutMs: number
  groupTimeoutMs: number
}

const SECOND = 1_000
const MINUTE = 60 * SECOND

/** What these test knows no database, though some of them open one: once is enough. */
const ENGINELESS = /^test\/(lib|core|cli|client|docs|contracts|harness|emails\/providers)\//
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

  const opens = opensStore(root)
  const onPostgres = (path: string) => isForPostgres(path, opens)
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
  const pair = { processes: 2 }
  /** They wait more than they work. */
  const waiting = { ...slow, processes: 4 }
  const all: Group[][] = [
    [{ name: "architecture", files: architecture, engine: "sqlite", ...quick }],
    [
      { name: "on SQLite", files: inside.filter(onSqlite), engine: "sqlite", ...quick, ...pair },
      {
        name: "on Postgres",
        files: inside.filter(onPostgres),
        engine: "postgres",
        ...quick,
        ...pair,
      },
    ],
    [
      { name: "scenarios on the binary", files: within(files, "test/scenarios/"), ...waiting },
      {
        ...{ name: "faults on the binary", files: within(files, "test/faults/") },
        ...{ ...slow, processes: 3, onDisk: true },
      },
    ],
  ]
  return all
    .map((stage) => stage.filter((group) => group.files.length > 0))
    .filter((stage) => stage.length > 0)
}

const bare = (path: string) => path.replace(/^\.\//, "")

const within = (files: string[], place: string) => files.filter((path) => path.startsWith(place))

const onSqlite = (path: string) => !path.endsWith(".postgres.test.ts")

function isForPostgres(path: string, opens: (path: string) => boolean): boolean {
  if (path.endsWith(".postgres.test.ts")) return true
  return !path.endsWith(".sqlite.test.ts") && !ENGINELESS.test(path) && opens(path)
}
