import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { FakeApi, KEY } from "../cli/fake-api"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { missing } from "../harness/peers"
import { send } from "./mails"
import { openMonitor, SMALL } from "./monitor"
import { lean } from "./serve"

function emptyHome() {
  const path = makeHome()
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

describe.skipIf(missing("tmux"))("however the monitor ends", () => {
  test("the screen is given back: by a key, by Ctrl-C, by each signal", async () => {
    await using server = await startBelfry({ env: lean })
    for (const end of ["q", "C-c", "SIGTERM", "SIGHUP", "SIGINT"] as const) {
      await using screen = await openMonitor(server, SMALL)
      await screen.shows("● live")
      expect(screen.modes()).toEqual({ alternate: true, cursor: false })
      if (end.startsWith("SIG")) screen.kill(end as NodeJS.Signals)
      else await screen.press(end)
      const left = await screen.shows("exit ")
      expect([end, left.trimEnd()]).toEqual([end, `before\nexit ${end === "SIGINT" ? 130 : 0}`])
      expect(screen.modes()).toEqual({ alternate: false, cursor: true })
      await screen.press("typed again")
      await screen.shows("typed again") // the terminal echoes as before
    }
  })

  test("and by a server that answers nonsense, with the reason on the screen", async () => {
    using api = new FakeApi()
    api.data("GET /v1/emails", [])
    api.data("GET /v1/webhooks", [null])
    using home = emptyHome()
    const server = { home: home.path, url: api.url, api_key: KEY }
    await using screen = await openMonitor(server, SMALL)
    await screen.shows("1Messages")
    await screen.press("2")
    const left = await screen.shows("exit 1")
    expect(left).toStartWith("before")
    expect(left).toContain("✗ ")
    expect(screen.modes()).toEqual({ alternate: false, cursor: true })
  })

  test("nothing that a server says commands the terminal", async () => {
    using api = new FakeApi()
    const evil = "\u001b[2J\u001b]0;owned\u0007\u009b31mred\u202e"
    const id = "0199a1c2-0000-7000-8000-000000000001"
    const created_at = "2026-11-21T12:00:00.000Z"
    const to = { email: `a${evil}@b.test`, name: null }
    const text = { status_reason: evil, subject: `subject ${evil}`, provider: evil }
    const email = { id, status: "failed", to, attempts: 1, created_at, ...text }
    api.data("GET /v1/emails", [email])
    api.data(`GET /v1/emails/${id}`, { ...email, from: to, error: null, timeline: [] })
    api.data(`GET /v1/emails/${id}/attempts`, [])
    using home = emptyHome()
    const server = { home: home.path, url: api.url, api_key: KEY }
    await using screen = await openMonitor(server, SMALL, { NO_COLOR: "1" })
    await screen.shows("subject red")
    await screen.press("Enter")
    await screen.shows("provider  red")
    expect(screen.coloured()).not.toContain("\u001b")
    expect(screen.lines()).toHaveLength(SMALL.lines)
  })

  test("a dumb terminal gets plain lines, and no terminal a hint and exit 2", async () => {
    await using server = await startBelfry({ env: lean })
    await using screen = await openMonitor(server, { columns: 100, lines: 24 }, { TERM: "dumb" })
    await screen.shows("following")
    await send(server, { to: "ann@mailbox.test", subject: "Hi" })
    await screen.shows("email.delivered")
    expect(screen.modes().alternate).toBe(false)

    const piped = await runBinary(["tui", "--url", server.url, "--api-key", server.api_key])
    expect([piped.code, piped.stdout]).toEqual([2, ""])
    expect(JSON.parse(piped.stderr).error.message).toContain("terminal")
  })

  test("a wrong key is told like everywhere, and no screen is taken", async () => {
    await using server = await startBelfry({ env: lean })
    const { home, url } = server
    await using screen = await openMonitor({ home, url, api_key: "svc_live_wrong" }, SMALL)
    const left = await screen.shows("exit 4")
    expect(left).toStartWith("before\n✗ ")
  })
})
