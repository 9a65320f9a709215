import { describe, expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { codeBlocks } from "../docs/code-blocks"
import { type Belfry, binary, startBelfry } from "../harness/binary"
import { startBrowser } from "../harness/browser"
import { type Lines, readLines } from "../harness/lines"
import { missing } from "../harness/peers"
import { freePort } from "../harness/ports"
import { startRelay } from "../harness/relay"
import { until } from "./mails"
import { openMonitor, SMALL } from "./monitor"
import { lean } from "./serve"

/** Puts a message into the inbox of user-42. Resolves to its id. */
async function send(server: Belfry, title: string, ...words: string[]): Promise<string> {
  const sent = await server.cli("inbox", "send", "--to", "user-42", "--title", title, ...words)
  expect(sent).toMatchObject({ code: 0 })
  return (JSON.parse(sent.stdout) as { id: string }).id
}

async function start(): Promise<Belfry> {
  const server = await startBelfry({ env: lean })
  expect(await server.cli("subscribers", "upsert", "user-42")).toMatchObject({ code: 0 })
  return server
}

/** `inbox tail` of user-42 by an address, in a pipe. */
function tail(server: Belfry, url: string) {
  const child = Bun.spawn([binary, "inbox", "tail", "--external-id", "user-42"], {
    env: { PATH: process.env.PATH ?? "", HOME: server.home, BELFRY_URL: url, ...keyOf(server) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  })
  return {
    lines: readLines(child.stdout),
    exited: child.exited,
    interrupt: () => child.kill("SIGINT"),
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

const keyOf = ({ api_key }: Belfry) => ({ BELFRY_API_KEY: api_key })

interface Line {
  type: string
  seq?: number
  upto_seq?: number
  message?: { id: string; read_at: string | null }
  unread?: number
}

const linesIn = ({ all }: Lines) => all.map((line) => JSON.parse(line) as Line)

const seqsIn = (lines: Lines) =>
  linesIn(lines).flatMap(({ seq, upto_seq }) => seq ?? upto_seq ?? [])

test("inbox tail prints each change once over a line that breaks, and ends by Ctrl-C with 130", async () => {
  await using server = await start()
  await using relay = await startRelay(Number(new URL(server.url).port))
  using followed = tail(server, `http://127.0.0.1:${relay.port}`)
  const { lines } = followed
  await lines.first((line) => line.includes('"ready"'))
  const ids: string[] = []
  for (let n = 0; n < 4; n++) {
    const id = await send(server, `Message ${n}`)
    ids.push(id)
    if (n % 2 === 1) relay.cut()
    expect(await server.cli("inbox", "update", id, "--read")).toMatchObject({ code: 0 })
  }
  await server.cli("inbox", "rm", ids[0] ?? "", "--yes")
  await until("the removal", () => linesIn(lines).some(({ type }) => type === "message.deleted"))
  const seqs = seqsIn(lines)
  expect(seqs).toEqual(Array.from({ length: 9 }, (_, at) => (seqs[0] ?? 0) + at))
  const created = linesIn(lines).filter(({ type }) => type === "message.created")
  expect(created.map(({ message }) => message?.id)).toEqual(ids)
  expect(relay.connections).toBeGreaterThan(2)
  followed.interrupt()
  expect(await followed.exited).toBe(130)
}, 120_000)

test.skipIf(missing("tmux"))("the monitor shows how far a message is, as it happens", async () => {
  await using server = await start()
  await using screen = await openMonitor(server, SMALL)
  await screen.shows("● live")
  const id = await send(server, "Ben invites you", "--action", "accept=Accept")
  await screen.until("it", (text) => /user-42 +Ben invites .+unseen/.test(text))
  await server.cli("inbox", "update", id, "--read")
  await screen.until("that it is read", (text) => /user-42 +Ben invites .+ read /.test(text))
  await screen.press("Enter")
  await screen.until("its action", (text) => text.includes(id) && text.includes("– accept"))
})

const blockOf = (language: string) =>
  codeBlocks("docs/inbox.md").find((one) => one.language === language)?.code ?? ""

/** The site of the guide: its files as they are printed, but for the addresses. */
async function startSite(server: Belfry) {
  const port = await freePort()
  const folder = join(server.home, "work")
  writeFileSync(
    join(folder, "page.html"),
    blockOf("html").replace("http://localhost:8080", server.url),
  )
  writeFileSync(join(folder, "server.js"), blockOf("js").replace("port: 3000", `port: ${port}`))
  const child = Bun.spawn([process.execPath, "server.js"], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", BELFRY_URL: server.url, ...keyOf(server) },
    stdio: ["ignore", "inherit", "inherit"],
  })
  const url = `http://localhost:${port}/`
  await until("the site", () =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )
  return {
    url,
    [Symbol.dispose]: () => child.kill("SIGKILL"),
  }
}

/** The title of the newest message in the page. */
const TITLE = `document.querySelector("belfry-inbox").shadowRoot.querySelector(".title")`

describe.skipIf(missing("chromium-headless-shell"))("the page of the guide", () => {
  test("shows the bell, and what is sent: read there, it is read in the list", async () => {
    await using server = await start()
    using site = await startSite(server)
    await using browser = await startBrowser()
    await browser.visit(site.url, {}, async (page) => {
      await page.named("Notifications, unread: 0", "button")
      const id = await send(server, "Your invoice is ready", "--body", "It is due.")
      await page.click("Notifications, unread: 1", "button")
      await page.until(`${TITLE}?.textContent === "Your invoice is ready"`)
      await page.read(`${TITLE}.closest(".open").click()`)
      await page.named("Notifications, unread: 0", "button")
      const list = ["inbox", "list", "--external-id", "user-42", "--state", "read", "--quiet"]
      expect((await server.cli(...list)).stdout.trim()).toBe(id)
    })
  })
})
