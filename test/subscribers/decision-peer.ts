import { join } from "node:path"
import { DEBIAN_PYTHON } from "../harness/peers"

/** What the second implementation, in Python, answers to each case, in their order. */
export async function askPython<Answer>(
  what: "decide" | "quiet",
  cases: readonly unknown[],
): Promise<Answer[]> {
  const child = Bun.spawn({
    cmd: [DEBIAN_PYTHON, join(import.meta.dir, "decision-peer.py"), what],
    stdin: Buffer.from(cases.map((one) => JSON.stringify(one)).join("\n")),
    stdout: "pipe",
    stderr: "inherit",
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("the decision in Python failed")
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer)
}
