/** Loaded before every test file, by bunfig.toml: only then do its hooks run in every mode. */
import "./own-server"
import "./few-connections"
import "./quick-passwords"
import { afterAll, afterEach, setDefaultTimeout } from "bun:test"
import { removeLeftovers } from "./leftovers"
import { root } from "./migrations"
import { noPostgres, serverUrl, stopOwnServer } from "./postgres"
import { requireTold } from "./untold"
import { TEST_MS } from "./waits"

const POSTGRES = ".postgres.test.ts"

/** A plain `bun test PATH`: the test command sets this for its own runs. */
const is_plain = process.env.BELFRY_TEST_NOTES === undefined

if (is_plain) {
  const is_on_binary = /\/test\/(scenarios|faults)\//.test(Bun.main)
  setDefaultTimeout(is_on_binary ? TEST_MS.on_binary : TEST_MS.inside)
  if (is_on_binary && !process.env.BELFRY_TEST_BINARY) build()
  if (Bun.main.endsWith(POSTGRES)) await choosePostgres()
  else skipPostgresSuites()
}

/** In one process with others they would find themselves on SQLite. */
function skipPostgresSuites() {
  const why = "needs Postgres: name this file first, or use `bun run test`"
  const contents = `import { test } from "bun:test"\ntest.skip("${why}", () => {})`
  Bun.plugin({
    name: "suites of Postgres",
    setup: (build) =>
      void build.onLoad({ filter: /\.postgres\.test\.ts$/ }, () => ({ contents, loader: "ts" })),
  })
}

/** Does nothing where the binary is newer than its sources. */
function build() {
  const cmd = ["sh", "install.sh", "build"]
  const { exitCode } = Bun.spawnSync({ cmd, cwd: root, stdio: ["ignore", "inherit", "inherit"] })
  if (exitCode !== 0) throw new Error("the binary does not build: see the lines above")
}

/** Before the test file is imported, so that its stores are on Postgres. */
async function choosePostgres() {
  if (process.env.DATABASE_URL) return
  if (noPostgres()) process.exit(0)
  process.env.DATABASE_URL = await serverUrl()
}

afterEach(requireTold)
afterAll(async () => {
  removeLeftovers()
  requireTold() // of what was answered outside of any test
  await stopOwnServer()
})
