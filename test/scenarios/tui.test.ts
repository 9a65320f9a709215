import { describe, expect, test } from "bun:test"
import { widthOf } from "../../cli/lib/cells"
import { startBelfry } from "../harness/binary"
import { missing } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { reaches, send } from "./mails"
import { LARGE, openLine, openMonitor, type Size, SMALL, sendMany } from "./monitor"
import { lean } from "./serve"

const no_tmux = missing("tmux")

/** So many messages a monitor keeps. */
const KEPT = 10_000

/** Every line is as wide as the terminal. A look in the midst of a drawing does not see it. */
const framed =
  ({ columns, lines }: Size) =>
  (text: string): boolean => {
    const drawn = text.split("\n").slice(0, lines)
    const corners = drawn[0]?.endsWith("┐") && drawn.at(-1)?.startsWith("└")
    return corners === true && drawn.every((line) => widthOf(line) === columns)
  }

describe.skipIf(no_tmux)("the monitor on a terminal", () => {
  test("messages are seen as they come, found, opened and sent again", async () => {
    await using server = await startBelfry({ env: lean })
    await using screen = await openMonitor(server, SMALL)
    await screen.shows("● live")
    await send(server, { to: "bounce@mailbox.test", subject: "Reset" })
    const id = await send(server, { to: "ann@mailbox.test", subject: "Your receipt 漢字 🎉" })
    await screen.until("both ends", (text) => /delivered/.test(text) && /bounced ✗/.test(text))
    await screen.until("a frame of 80", framed(SMALL))

    await screen.press("/", "status:delivered since:1h receipt", "Enter")
    const filtered = await screen.shows("1 of 2")
    expect(filtered).not.toContain("bounced")
    await screen.press("Enter")
    await screen.until("the timeline", (text) => text.includes(id) && text.includes("email.sent"))
    await screen.press("Right")
    await screen.shows("Message-ID:")
    await screen.press("Right")
    await screen.shows("hello")
    await screen.press("Right")
    await screen.shows("MIME-Version:")
    await screen.press("Right")
    await screen.shows("evt_")
    await screen.press("r")
    await screen.shows("y / n")
    await screen.press("y")
    await screen.shows("sent again as")
    await screen.press("Escape", "Escape")
    await screen.shows("3 messages")
    await screen.press("?")
    await screen.shows("Keys on all screens")
    await screen.press("Escape", "q")
    expect(await screen.shows("exit 0")).toStartWith("before")
  })

  test("paused it stands still, and following it goes with the newest", async () => {
    await using server = await startBelfry({ env: lean })
    await using screen = await openMonitor(server, SMALL)
    await screen.shows("● live")
    await sendMany(server, 30, "first")
    await screen.until("the last of them", (text) => /▸ .*first 29 /.test(text))
    await screen.press("Space")
    await screen.shows("paused, 0 new")
    await sendMany(server, 5, "second")
    const held = await screen.shows("paused, 5 new")
    expect(held).not.toContain("second")
    await screen.press("Space")
    await screen.until("the newest", (text) => /▸ .*second 4 /.test(text))
    await screen.press("j", "j")
    await screen.until("another row", (text) => /▸ .*second 2 /.test(text))
    await sendMany(server, 3, "third")
    await screen.shows("38 messages")
    await screen.until("the same row", (text) => /▸ .*second 2 /.test(text))
    await screen.press("f")
    await screen.until("the newest again", (text) => /▸ .*third 2 /.test(text))
  })

  test("on a large terminal list and message stand side by side; it follows every size", async () => {
    await using server = await startBelfry({ env: lean })
    const id = await send(server, { to: "ann@mailbox.test", subject: "Your receipt" })
    await reaches(server, id, "delivered")
    await using screen = await openMonitor(server, LARGE)
    await screen.shows("Your receipt")
    await screen.press("Enter")
    await screen.until("both", (text) => text.includes("SUBJECT") && text.includes("email.queued"))
    await screen.until("a frame of 160", framed(LARGE))
    screen.resize(80, 24)
    await screen.until("only the message", (text) => !text.includes("SUBJECT"))
    await screen.until("a frame of 80", framed(SMALL))
    screen.resize(40, 8)
    await screen.shows("too small")
    screen.resize(130, 40)
    await screen.until("a frame of 130", framed({ columns: 130, lines: 40 }))
    await screen.shows("SUBJECT")
  })

  test("colours are there, and are not there where nobody wants them", async () => {
    await using server = await startBelfry({ env: lean })
    await send(server, { to: "bounce@mailbox.test", subject: "Reset" })
    await send(server, { to: "ann@mailbox.test", subject: "chosen, and so inverse" })
    const shown = async (env: Record<string, string>) => {
      await using screen = await openMonitor(server, SMALL, env)
      await screen.shows("bounced ✗")
      await screen.until("the newest is chosen", (text) => /▸ .*chosen/.test(text))
      return screen.coloured()
    }
    expect(await shown({})).toContain("\u001b[31m")
    const plain = await shown({ NO_COLOR: "1" })
    expect(plain).not.toContain("\u001b")
    expect(plain).toContain("▸")
  })

  test("an interruption is told, and nothing of it is missed", async () => {
    await using server = await startBelfry({ env: lean })
    await using line = await openLine(server.url)
    const { home, api_key } = server
    await using screen = await openMonitor({ home, api_key, url: line.url }, SMALL)
    await screen.shows("● live")
    await send(server, { to: "ann@mailbox.test", subject: "before it" })
    await screen.shows("before it")
    line.cut()
    await screen.shows("○ retrying")
    await sendMany(server, 3, "meanwhile")
    line.mend()
    await screen.until("all of them", (text) =>
      ["● live", "meanwhile 0", "meanwhile 2", "4 messages"].every((part) => text.includes(part)),
    )
  })

  test(`${sizes.scrolled} messages are scrolled from end to end`, async () => {
    const [last, oldest] = [sizes.scrolled - 1, Math.max(0, sizes.scrolled - KEPT)]
    await using server = await startBelfry({ env: lean })
    await using screen = await openMonitor(server, LARGE)
    await screen.shows("● live")
    await sendMany(server, sizes.scrolled, "number")
    const isAt = (number: string | number) => (text: string) =>
      new RegExp(`▸ .*number ${number} `).test(text)
    await screen.until("the last of them", isAt(last))
    await screen.shows((last + 1 - oldest).toLocaleString("en"))
    await screen.press("G")
    await screen.until("the oldest that is kept", isAt(oldest))
    await screen.press("PageUp", "k")
    await screen.until("a page above it", isAt(`${(oldest + 40) / 10}\\d`))
    await screen.press("g")
    await screen.until("the newest", isAt(last))
  })
})
