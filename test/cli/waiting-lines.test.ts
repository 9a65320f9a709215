import { expect, test } from "bun:test"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { WaitingLines } from "../../cli/local/up"
import { leftover } from "../harness/leftovers"

test("lines wait up to the limit, and there is room again when they are written", () => {
  const written: (() => void)[] = []
  const texts: string[] = []
  const lines = new WaitingLines(
    {
      write: (text, done) => {
        texts.push(text)
        written.push(done)
      },
    },
    10,
  )
  lines.add("1234")
  expect(lines.isFull).toBe(false)
  lines.add("\u00fc678") // five bytes, and the end of the line
  expect([lines.isFull, texts]).toEqual([true, ["1234\n", "\u00fc678\n"]])
  written.shift()?.()
  expect(lines.isFull).toBe(false)
})

const MODULE = join(import.meta.dir, "../../cli/local/up.ts")

/** Adds lines of 1 KB until the limit is reached; says on stderr how many that were, and again after a while. */
const SCRIPT = `
  import { writeSync } from "node:fs"
  import { WaitingLines } from ${JSON.stringify(MODULE)}
  const lines = new WaitingLines(process.stdout, 1_000_000)
  const fill = async () => {
    let added = 0
    for (; !lines.isFull && added < 5000; added++) {
      lines.add("x".repeat(1023))
      if (added % 50 === 0) await Bun.sleep(1)
    }
    return added
  }
  writeSync(2, (await fill()) + "\\n")
  while (lines.isFull) await Bun.sleep(5)
  writeSync(2, "room\\n")
  process.exit(0)
`

/** A reader that begins once it has a line on its own input. */
const PIPED = `"$0" -e "$1" | { read -r go <&3; cat > /dev/null; }`

test("standard output that nobody reads fills up, and has room when somebody reads", async () => {
  const gate = join(mkdtempSync(join(tmpdir(), "belfry-lines-")), "gate")
  leftover(dirname(gate))
  expect(Bun.spawnSync(["mkfifo", gate]).exitCode).toBe(0)
  const cmd = ["sh", "-c", `exec 3<>'${gate}'; ${PIPED}`, process.execPath, SCRIPT]
  const child = Bun.spawn(cmd, { stdout: "ignore", stderr: "pipe" })
  const said = child.stderr.getReader()
  const first = Number(new TextDecoder().decode((await said.read()).value))
  expect(first).toBeGreaterThanOrEqual(977) // the limit, and what the pipe itself takes
  expect(first).toBeLessThan(5000)
  writeFileSync(gate, "go\n")
  expect(new TextDecoder().decode((await said.read()).value)).toBe("room\n")
  expect(await child.exited).toBe(0)
})
