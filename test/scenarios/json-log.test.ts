import { expect, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { binary, makeHome } from "../harness/binary"
import { reaches, send, until } from "./mails"
import { lean, startServe } from "./serve"

function lastingHome() {
  const home = makeHome()
  return { home, [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }) }
}

/** What a careless library may do, in every way that prints. Loaded before the server's own code. */
const CARELESS = `
const delay = setTimeout(() => {
  console.log("stray log %s", "one")
  console.error("stray error", { a: 1 })
  process.emitWarning("stray warning", "DeprecationWarning", "DEP0000")
  Promise.reject(new Error("stray rejection"))
  setTimeout(() => { throw new Error("stray exception") })
  setTimeout(() => console.warn("stray end"), 50)
}, 500)
delay.unref()
`

interface Line {
  level: string
  message: string
  [field: string]: unknown
}

test("under log.format=json every line is JSON, whatever prints it", async () => {
  using lasting = lastingHome()
  const careless = join(lasting.home, "careless.ts")
  writeFileSync(careless, CARELESS)
  const env = { BELFRY_LOG_FORMAT: "json", BUN_OPTIONS: `--preload ${careless}` }
  await using server = await startServe({ home: lasting.home, api_key: "nobody", env })
  await server.stderr.first((line) => line.includes("stray end"))
  server.kill("SIGHUP")
  await server.stderr.first((line) => line.includes("SIGHUP came"))
  server.kill("SIGTERM")
  expect(await server.exited).toBe(0)
  const lines = server.stderr.all.map((line) => JSON.parse(line) as Line)
  const stray = lines.filter((line) => JSON.stringify(line).includes("stray"))
  expect(stray.map(({ level, message }) => [level, message])).toEqual([
    ["info", "stray log one"],
    ["error", "stray error { a: 1 }"],
    ["warn", "stray warning"],
    ["error", "An error was not caught."],
    ["error", "An error was not caught."],
    ["warn", "stray end"],
  ])
  const setup = lines.find(({ setup_token }) => setup_token !== undefined)
  expect(setup?.setup_token).toMatch(/^belfry_setup_/)
  expect(setup?.next).toBe(`belfry setup ${server.url}`)
})

/** `belfry serve` on a pseudo terminal; what stands there when it has ended. */
async function onTerminal(home: string, words: string[], isEnough: (screen: string) => boolean) {
  let screen = ""
  const all = Promise.withResolvers<void>()
  const child = Bun.spawn([binary, "serve", "--data-dir", join(home, "belfry"), ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: home, BELFRY_LOG_FORMAT: "json", ...lean },
    terminal: {
      cols: 200,
      rows: 40,
      data(_, bytes) {
        screen += new TextDecoder().decode(bytes)
      },
      exit: () => all.resolve(),
    },
  })
  await until("it is on the screen", () => isEnough(screen) || child.exitCode !== null)
  child.kill("SIGTERM")
  await child.exited
  await all.promise // what the terminal still held
  child.terminal?.close()
  return screen.split(/\r?\n/).filter((line) => line !== "")
}

test("on a terminal, too: the greeting, the goodbye and the reason of an end", async () => {
  using lasting = lastingHome()
  const free = ["--listen", "127.0.0.1:0", "--set", "mailbox.listen=127.0.0.1:0"]
  const lines = await onTerminal(lasting.home, free, (text) => text.includes("setup_token"))
  expect(lines.map((line) => (JSON.parse(line) as Line).message)).toContain("stopped")

  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve))
  const { port } = taken.address() as { port: number }
  const refused = ["--listen", `127.0.0.1:${port}`, "--set", "mailbox.listen=127.0.0.1:0"]
  const [last = ""] = (await onTerminal(lasting.home, refused, () => false)).slice(-1)
  taken.close()
  expect(JSON.parse(last)).toMatchObject({ error: { code: "port_taken" } })
})

test("the mailbox takes a free port where nobody set one and the usual one is taken", async () => {
  using lasting = lastingHome()
  const usual = createServer()
  // Another program of this machine may hold it already, which is as good.
  await new Promise<void>((resolve) => {
    usual.once("error", () => resolve())
    usual.listen(1025, "127.0.0.1", () => resolve())
  })
  await using server = await startServe({
    home: lasting.home,
    env: { BELFRY_MAILBOX_LISTEN: "" },
  })
  const line = await server.stderr.first((text) => text.includes("uses a free one"))
  const told = JSON.parse(line) as Line
  expect(told).toMatchObject({ level: "warn", usual: "127.0.0.1:1025" })
  expect(told.port).toBeGreaterThan(1025)
  await reaches(server, await send(server), "delivered")
  usual.close()
})
