import { expect, test } from "bun:test"
import { readdirSync } from "node:fs"
import { program } from "../harness/program"
import { sizes } from "../harness/sizes"
import { belfry, freshHome } from "./belfry"

const NAMES = [
  "start",
  "send",
  "text",
  "inbox",
  "push",
  "sign-up",
  "webhook",
  "template",
  "submission",
  "inbound",
  "backup",
  "stop",
  "restore",
  "release",
]

type Run = { ok: boolean; checks: { name: string; passed: boolean; error: string | null }[] }

test("every check passes beside any settings, and nothing is left behind", async () => {
  const TMPDIR = freshHome()
  const env = { TMPDIR, BELFRY_DATA_DIR: "/dev/null/nowhere", BELFRY_SMTP_SUBMISSION_ENABLED: "no" }
  const { exit, out, err } = await belfry(["smoke"], { env })
  const run = JSON.parse(out) as Run
  expect(run.checks.filter(({ passed }) => !passed)).toEqual([])
  expect(run.checks.map(({ name }) => name)).toEqual(NAMES)
  expect([exit, err, run.ok]).toEqual([0, "", true])
  expect(readdirSync(TMPDIR)).toEqual([])
  expect(out).not.toMatch(/svc_live_|whsec_/)
})

test.skipIf(!sizes.smoke_formats)("TAP has a plan and one line for each check", async () => {
  const { exit, out } = await belfry(["smoke", "--format", "tap"])
  const lines = out.split("\n").filter((line) => !line.startsWith("  "))
  const results = NAMES.map((name, at) => `ok ${at + 1} - ${name}`)
  const heads = lines.map((line) => line.split(": ")[0])
  expect(heads).toEqual(["TAP version 14", `1..${NAMES.length}`, ...results, ""])
  expect(exit).toBe(0)
})

test("a server that cannot start fails the run, and JUnit says why", async () => {
  // No room for the database in the scratch folder: the limit of file sizes is inherited.
  const limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "-", ...program]
  const words = ["smoke", "--format", "junit", "--timeout", "30s"]
  const child = Bun.spawn([...limited, ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: freshHome() },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
  })
  const xml = await child.stdout.text()
  expect(await child.exited).toBe(1)
  expect(xml).toContain('tests="1" failures="1"')
  expect(xml).toMatch(/<testcase classname="smoke" name="start: [^"]+" time="[\d.]+"><failure /)
  expect(xml).toContain("the server ended with 74")
})

test("an unknown format is refused before anything starts", async () => {
  const { exit, err } = await belfry(["smoke", "--format", "xml"])
  expect([exit, JSON.parse(err).error.message]).toEqual([
    2,
    '--format: "xml" is not one of lines, tap, junit',
  ])
})
