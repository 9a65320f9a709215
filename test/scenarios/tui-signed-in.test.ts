import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { binary, makeHome, runBinary } from "../harness/binary"
import { readLines } from "../harness/lines"
import { missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { openScreen } from "../harness/screen"
import { SMALL } from "./monitor"

const PASSWORD = "Honest-Barn-41"

const own = (home: string) => ({ HOME: home, XDG_CONFIG_HOME: join(home, "config") })

/** `belfry up` on one port and one folder, as often as it is started. */
async function startUp(home: string, port: number) {
  const words = ["up", "--json", "--port", String(port), "--data-dir", join(home, "belfry")]
  const child = Bun.spawn([binary, ...words], {
    env: { PATH: process.env.PATH ?? "", ...own(home), BELFRY_MAILBOX_LISTEN: "127.0.0.1:0" },
    stdout: "pipe",
    stderr: "ignore",
  })
  const first = await readLines(child.stdout).first(() => true)
  return {
    ...(JSON.parse(first) as { url: string; setup_token: string | null }),
    async stop() {
      child.kill("SIGTERM")
      await child.exited
    },
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

describe.skipIf(missing("tmux"))("somebody who signed in under up", () => {
  test("keeps the sign-in, and the open monitor is live again after a restart", async () => {
    const home = makeHome()
    try {
      const port = await freePort()
      using first = await startUp(home, port)
      const proof = [`--setup-token=${first.setup_token}`, "--email", "ann@mailbox.test"]
      const setup = ["setup", first.url, ...proof, "--password-stdin"]
      expect((await runBinary(setup, { home, input: PASSWORD })).code).toBe(0)

      await using screen = await openScreen([binary, "tui"], { ...SMALL, env: own(home) })
      await screen.shows("● live")
      await first.stop()
      await screen.shows("retrying")
      using _second = await startUp(home, port)
      await screen.shows("● live")
      const mail = ["--from", "me@mailbox.test", "--to", "zoe@mailbox.test", "--text", "x"]
      const send = ["emails", "send", ...mail, "--subject", "After it"]
      expect((await runBinary(send, { home })).code).toBe(0)
      await screen.until("the mail", (text) => /zoe@mailbox\.test +After it +delivered/.test(text))
      const who = await runBinary(["whoami", "--json", "kind,user.email"], { home })
      expect(JSON.parse(who.stdout)).toEqual({ kind: "user", "user.email": "ann@mailbox.test" })
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })
})
