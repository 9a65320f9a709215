import { readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { Glob } from "bun"
import { opensStore } from "./store-users"
import { TEST_MS } from "./waits"

/** Files that run together in one `bun test`, with the limits they need. */
export interface Group {
  name: string
  files: string[]
  engine: "sqlite" | "postgres"
  /** They run the compiled binary, so it has to be up to date first. */
  needsBinary: boolean
  /** Each file has a global object of its own. */
  isAlone: boolean
  /** Their files stand on a real disk. */
  onDisk: boolean
  /** So many files at a time, each in a process of its own; on Postgres each with a server of its own. */
  processes: number
  testTimeoutMs: number
  groupTimeoutMs: number
}

const MINUTE = 60_000

/** What these test knows no database, though some of them open one: once is enough. */
const ENGINELESS =
  /^test\/(lib|core|cli|client|component|console|docs|contracts|fuzz|harness|matrix|pages|emails\/providers)\//
/** What these test is the database itself, or stands and falls with what it promises. */
const ON_BOTH = /^test\/(store|jobs|messages|webhooks|sign-in|identity)\//
/** The stories of features that have no file of their own name. */
const STORIES = new Set([
  "test/ai/advice-facts.test.ts",
  "test/ai/gated-calls.test.ts",
  "test/ai/gates.test.ts",
  "test/auth/anonymous.test.ts",
  "test/auth/code-sign-in.test.ts",
  "test/auth/end-users.test.ts",
  "test/auth/factors/passkeys.test.ts",
  "test/auth/factors/second-factors.test.ts",
  "test/auth/organizations/invitations.test.ts",
  "test/auth/organizations/memberships.test.ts",
  "test/auth/organizations/organization-model.test.ts",
  "test/auth/organizations/switch-organization.test.ts",
  "test/auth/sign-in.test.ts",
  "test/auth/social/account-sign-in.test.ts",
  "test/auth/social/game-center.test.ts",
  "test/auth/social/oauth-flows.test.ts",
  "test/auth/social/play-games.test.ts",
  "test/auth/user-sessions.test.ts",
  "test/domains/verification.test.ts",
  "test/events/feed.test.ts",
  "test/fan-out/publish.test.ts",
  "test/http/idempotency.test.ts",
  "test/inbound/process.test.ts",
  "test/inbox/inbox-tokens.test.ts",
  "test/inbox/ledger.test.ts",
  "test/inbox/send-inbox.test.ts",
  "test/operations/devices-of-people.test.ts",
  "test/operations/invariants.test.ts",
  "test/plans/stored-bytes.test.ts",
  "test/providers/routes.test.ts",
  "test/push/device-life.test.ts",
  "test/push/one-provider-refused.test.ts",
  "test/sms/stats.test.ts",
  "test/smtp/submission.test.ts",
  "test/tenancy/country-limit.test.ts",
  "test/tenancy/projects.test.ts",
])
/** What a file changes for its whole process, or measures of it: clock, settings, environment, globals, memory. */
const FOR_ALL =
  /\bclock\.read = |\buseSettings\(|\bspyOn\(|\bmock\.module\(|(globalThis|process\.env)[.\w]*(\[\w+\])? = |defineProperty\(globalThis|memoryUsage\(/
const ON_BINARY = /^test\/(scenarios|faults)\//
const NOT_TESTS = /^test\/(bench|fakes)\//

/**
 * Every test file below `root`, once or once an engine, in the order of running: what answers
 * fastest first. Groups of one stage run side by side. `wanted` are parts of paths; an empty list
 * wants all of them. On both engines run the areas of `ON_BOTH` and one story of each feature; the
 * others run on Postgres, too, where they are wanted by name or in a full run.
 */
export function stages(root: string, wanted: string[], full: boolean): Group[][] {
  const files = [...new Glob("test/**/*.test.ts").scanSync(root)]
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !NOT_TESTS.test(path))
    .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(bare(part))))
    .sort()

  const opens = opensStore(root)
  const all_on_both = full || wanted.length > 0
  const onPostgres = (path: string) => isForPostgres(path, opens) && (all_on_both || isOnBoth(path))
  const isAlone = (path: string) => FOR_ALL.test(readFileSync(join(root, path), "utf8"))
  const isShared = (path: string) => !isAlone(path)
  const architecture = within(files, "test/architecture.test.ts")
  const inside = files.filter((path) => !ON_BINARY.test(path) && !architecture.includes(path))
  const quick = {
    needsBinary: false,
    isAlone: false,
    onDisk: false,
    processes: 1,
    testTimeoutMs: TEST_MS.inside,
    groupTimeoutMs: 90 * MINUTE,
  }
  const slow = {
    engine: "sqlite" as const,
    needsBinary: true,
    isAlone: true,
    onDisk: false,
    processes: 1,
    testTimeoutMs: (full ? 2 : 1) * TEST_MS.on_binary,
    groupTimeoutMs: 90 * MINUTE,
  }
  const pair = { processes: 2 }
  /** They wait more than they work. */
  const waiting = { ...slow, processes: 4 }
  const on_sqlite = inside.filter(onSqlite)
  const on_postgres = inside.filter(onPostgres)
  const lite = { engine: "sqlite" as const, ...quick }
  const pg = { engine: "postgres" as const, ...quick }
  const alone = { isAlone: true }
  const all: Group[][] = [
    [{ name: "architecture", files: architecture, ...lite }],
    [
      { name: "on SQLite", files: on_sqlite.filter(isShared), ...lite, ...pair },
      { name: "on Postgres", files: on_postgres.filter(isShared), ...pg },
      { name: "alone on SQLite", files: on_sqlite.filter(isAlone), ...lite, ...alone },
      { name: "alone on Postgres", files: on_postgres.filter(isAlone), ...pg, ...alone },
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

/** A story has the name of its folder. */
function isOnBoth(path: string): boolean {
  const [, folder = ""] = path.split("/")
  const name = basename(path, ".test.ts")
  return ON_BOTH.test(path) || name.endsWith(".postgres") || name === folder || STORIES.has(path)
}
