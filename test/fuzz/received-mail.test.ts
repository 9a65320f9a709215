import { expect, test } from "bun:test"
import { join } from "node:path"
import { BOMBS } from "../fixtures/reports/bombs"
import { root } from "../harness/migrations"
import { sizes } from "../harness/sizes"
import { PATIENCE_MS } from "./judging"

/** Of one mail of 20 MB, its copies as text and the unpacked report. */
const MOST_MEGABYTES = 250

/** What may stay after all of them. */
const MOST_KEPT_MEGABYTES = 50

/** The answers of a process of its own, whose memory nothing else uses. */
async function linesOf(script: string, ...args: string[]) {
  const cmd = [process.execPath, join(root, "test/fuzz", script), ...args]
  const child = Bun.spawn({ cmd, cwd: root, stdio: ["ignore", "pipe", "pipe"] })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect(await child.exited, errors).toBe(0)
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
}

test(
  "mails that were made to hurt are read within bounds",
  async () => {
    const read = await linesOf("read-bombs.ts")
    expect(read.map(({ name }) => name)).toEqual(Object.keys(BOMBS))
    expect(read.filter(({ grown }) => grown > MOST_MEGABYTES)).toEqual([])
    const kinds = Object.fromEntries(read.map(({ name, kind }) => [name, kind]))
    expect(kinds).toMatchObject({
      "10 GB in gzip": "auto_reply",
      "a report of 60,000 records": "dmarc_report",
      "a report of 200,000 records": "auto_reply",
      "100,000 recipients": "bounce",
    })
  },
  PATIENCE_MS,
)

test(
  "broken mails of every kind are read without a crash, and leave no memory behind",
  async () => {
    const [summary] = await linesOf("read-broken.ts", String(sizes.received))
    expect(summary.read).toBe(sizes.received)
    expect(summary.wrong).toEqual([])
    // The mutants are still mail: most keep their kind, so that the readers are reached.
    expect(Object.keys(summary.kinds).length).toBeGreaterThanOrEqual(6)
    expect(summary.kept).toBeLessThanOrEqual(MOST_KEPT_MEGABYTES)
  },
  PATIENCE_MS,
)

/** A pattern that looks back again and again takes hours for so much, and one that does not a second. */
const REPEATED_BYTES = String(sizes.repeated_bytes)

test(
  "a text that repeats one thing is read in one pass",
  async () => {
    const [summary] = await linesOf("read-repetitions.ts", REPEATED_BYTES)
    expect(summary.read).toBeGreaterThan(200)
  },
  PATIENCE_MS,
)
