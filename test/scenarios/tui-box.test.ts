import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { binary, makeHome, runBinary } from "../harness/binary"
import { readLines } from "../harness/lines"
import { missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { openScreen } from "../harness/screen"
import { openMonitor, SMALL } from "./monitor"

const PASSWORD = "Honest-Barn-41"

const own = (home: string) => ({ HOME: home, XDG_CONFIG_HOME: join(home, "config") })

/** A server on the folder of this home. */
async function startOn(home: string, port: number, ...words: string[]) {
  const data_dir = ["--data-dir", join(home, "belfry")]
  const child = Bun.spawn([binary, ...words, "--json", ...data_dir], {
    env: {
      PATH: process.env.PATH ?? "",
      ...own(home),
      BELFRY_HTTP_LISTEN: `127.0.0.1:${port}`,
      BELFRY_MAILBOX_LISTEN: "127.0.0.1:0",
      BELFRY_SMTP_SUBMISSION_LISTEN: "127.0.0.1:0",
      BELFRY_SMTP_INBOUND_LISTEN: "127.0.0.1:0",
    },
    stdout: "pipe",
    stderr: "ignore",
  })
  const first = await readLines(child.stdout).first((line) => line.startsWith("{"))
  return {
    ...(JSON.parse(first) as { url: string; setup_token: string | null; api_key: string }),
    async stop() {
      child.kill("SIGTERM")
      await child.exited
    },
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

describe.skipIf(missing("tmux"))("the box on a terminal", () => {
  test("an operator sees the disk, makes a backup, and drops what was held", async () => {
    const home = makeHome()
    try {
      const port = await freePort()
      using first = await startOn(home, port, "up", "--port", String(port))
      const proof = [`--setup-token=${first.setup_token}`, "--email", "ann@mailbox.test"]
      const setup = ["setup", first.url, ...proof, "--password-stdin"]
      expect((await runBinary(setup, { home, input: PASSWORD })).code).toBe(0)
      const mail = ["--from", "me@mailbox.test", "--to", "zoe@mailbox.test", "--text", "x"]
      const later = [...mail, "--subject", "Later", "--schedule-at", "in 2 hours"]
      expect((await runBinary(["emails", "send", ...later], { home })).code).toBe(0)

      await using screen = await openScreen([binary, "tui"], { ...SMALL, env: own(home) })
      await screen.shows("● live")
      await screen.press("7")
      await screen.until("the checks", (text) => /disk +[✓!] .* free/.test(text))
      await screen.shows("nothing is held since a restore")
      await screen.shows("no backup yet")
      await screen.press("b")
      await screen.shows("Make a backup now?")
      await screen.press("y")
      await screen.until("the backup", (text) => /[0-9a-f-]{36} +[\d.]+ [KM]B +✓/.test(text))

      const { url, api_key } = first
      await using other = await openMonitor({ home: makeHome(), url, api_key }, SMALL)
      await other.shows("● live")
      await other.press("7")
      await other.until("readiness", (text) => /database +✓ ok/.test(text))
      await other.shows("belfry login")

      await first.stop()
      using _held = await startOn(home, port, "serve", "--hold")
      await screen.until("what is held", (text) => /held +1 wait since a restore/.test(text))
      await screen.press("r")
      await screen.shows("Send all 1 held")
      await screen.press("n")
      await screen.press("D")
      await screen.shows("Drop 1 message, 0 deliveries and 0 jobs?")
      await screen.press("y")
      await screen.shows("nothing is held since a restore")
      await screen.shows("dropped: 1 message, 0 deliveries and 0 jobs")
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})
