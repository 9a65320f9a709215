import { expect, test } from "bun:test"
import { join } from "node:path"
import { root } from "../harness/migrations"
import { sizes } from "../harness/sizes"

const MOST_KEPT_MEGABYTES = 50
/** At the sizes of a release. */
const PATIENCE_MS = 1_800_000

/** What a process says that holds both mail servers and all their clients. */
async function summaryOf(kind: "dialogues" | "mails") {
  const script = join(root, "test/fuzz/talk-to-servers.ts")
  const cmd = [process.execPath, script, kind, String(sizes.dialogues)]
  const { env } = process // with the engine of this process
  const child = Bun.spawn({ cmd, cwd: root, env, stdio: ["ignore", "pipe", "pipe"] })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect(await child.exited, errors).toBe(0)
  return JSON.parse(output.trim().split("\n").at(-1) ?? "")
}

/** No crash, no reply that is none, no fault of our own, no open connection, no memory that stays. */
function expectWell(summary: Record<string, unknown>) {
  expect(summary).toMatchObject({ done: sizes.dialogues, wrong: [], faults: [] })
  expect(summary).toMatchObject({ open_connections: 0, buffered_bytes: 0 })
  expect(summary.kept).toBeLessThanOrEqual(MOST_KEPT_MEGABYTES)
}

test(
  "made-up dialogues with both mail servers are all answered or closed",
  async () => {
    const summary = await summaryOf("dialogues")
    expectWell(summary)
    // They reach every phase, not only the first command.
    for (const code of [220, 221, 250, 354, 421, 500, 503, 530, 538, 550]) {
      expect(summary.replies[code]).toBeGreaterThan(0)
    }
  },
  PATIENCE_MS,
)

test(
  "broken mails that come by both mail servers are all answered, and read",
  async () => {
    const summary = await summaryOf("mails")
    expectWell(summary)
    expect(summary.replies[250]).toBeGreaterThan(2 * sizes.dialogues)
    expect(summary.replies[550]).toBeGreaterThan(0)
  },
  PATIENCE_MS,
)
