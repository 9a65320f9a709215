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
  expect(JSON.parse(err).error.details.address).toBe(`127.0.0.1:${other.port}`)
})

test("a port in the environment counts as asked for, and its host does not", async () => {
  using other = await taken()
  const env = { BELFRY_HTTP_LISTEN: `0.0.0.0:${other.port}` }
  const { exit, err } = await belfry(["up", "--json", "--data-dir", freshHome()], { env })
  expect(exit).toBe(69)
  expect(err).toContain(`127.0.0.1:${other.port}`)
})

test("the data folder is the flag's, made absolute", async () => {
  const { values } = await upSettings({}, { port: "0", dataDir: "somewhere" })
  expect(values.data_dir).toBe(`${process.cwd()}/somewhere`)
})

test("up logs little", async () => {
  const { values } = await upSettings({}, { port: "0" })
  expect(values["log.level"]).toBe("warn")
})
