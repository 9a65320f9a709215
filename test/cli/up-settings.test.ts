import { expect, test } from "bun:test"
import { createServer } from "node:net"
import { upSettings } from "../../cli/local/up"
import { belfry, freshHome } from "./belfry"

async function taken(): Promise<Disposable & { port: number }> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address ? address.port : 0
  return { port, [Symbol.dispose]: () => void server.close() }
}

test("up listens on loopback only, wherever its port comes from", async () => {
  const { values } = await upSettings({}, { port: "0" })
  expect(values["http.listen"]).toBe("127.0.0.1:0")
  expect(values["mailbox.listen"]).toBe("127.0.0.1:0")
})

test("a port by flag that is taken ends the start with 69, naming it", async () => {
  using other = await taken()
  const words = ["up", "--json", "--port", String(other.port), "--data-dir", freshHome()]
  const { exit, out, err } = await belfry(words)
  expect([exit, out]).toEqual([69, ""])
  const { details, message } = JSON.parse(err).error
  expect(details).toEqual({ address: `127.0.0.1:${other.port}`, asked_by: "--port" })
  if (process.platform === "linux") expect(message).toContain(`(process ${process.pid})`)
})

test("a port in the environment counts as asked for, and its host does not", async () => {
  using other = await taken()
  const env = { BELFRY_HTTP_LISTEN: `0.0.0.0:${other.port}` }
  const { exit, err } = await belfry(["up", "--json", "--data-dir", freshHome()], { env })
  expect(exit).toBe(69)
  expect(err).toContain(`127.0.0.1:${other.port}`)
})

test.each<[string, string[], number, string, string]>([
  ["the port of another server", [], 69, "port_taken", "is already in use"],
  ["an address of no machine", ["--listen", "999.1.1.1:80"], 69, "cannot_listen", "999.1.1.1:80"],
  [
    "a file as data folder",
    ["--data-dir", "/dev/null"],
    74,
    "storage",
    "data_dir: /dev/null is a file",
  ],
  ["a folder below a file", ["--data-dir", "/dev/null/x"], 74, "storage", "/dev/null is a file"],
  ["a file for backups", ["--set", "backup.dir=/dev/null"], 74, "storage", "backup.dir: /dev/null"],
])("serve refuses %s, and says so", async (_, words, code, name, said) => {
  const options = {
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: () => new Response(),
  }
  const other = Bun.serve(options) // as our own server does
  const usual = { "--listen": `127.0.0.1:${other.port}`, "--data-dir": freshHome() }
  const flags = Object.entries(usual).filter(([flag]) => !words.includes(flag))
  const { exit, out, err } = await belfry(["serve", "--json", ...flags.flat(), ...words])
  await other.stop(true)
  expect([exit, out]).toEqual([code, ""])
  const [last = ""] = err.trim().split("\n").slice(-1)
  expect(JSON.parse(last).error).toMatchObject({
    code: name,
    message: expect.stringContaining(said),
  })
})

test("the data folder is the flag's, made absolute", async () => {
  const { values } = await upSettings({}, { port: "0", dataDir: "somewhere" })
  expect(values.data_dir).toBe(`${process.cwd()}/somewhere`)
})

test("up logs little", async () => {
  const { values } = await upSettings({}, { port: "0" })
  expect(values["log.level"]).toBe("warn")
})
