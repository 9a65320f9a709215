import { expect, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeHome, startBelfry } from "../harness/binary"
import { lean, startServe } from "./serve"

interface Line {
  level: string
  message: string
  applied?: string[]
  restart_needed?: string[]
  faults?: string[]
}

function scratch(text: string) {
  const home = makeHome()
  const path = join(home, "belfry.toml")
  writeFileSync(path, text)
  return {
    home,
    path,
    write: (next: string) => writeFileSync(path, next),
    [Symbol.dispose]: () => rmSync(home, { recursive: true, force: true }),
  }
}

const FIRST = '[log]\nlevel = "warn"\n'
const NEXT = `[log]
level = "info"
[http]
trusted_proxies = ["127.0.0.1"]
max_connections = 50
[ai.gateway]
kind = "openai"
models.fast = "llama3.2"
[plans.free]
emails_per_month = 7
`

test("SIGHUP applies what can change, and names what needs a restart", async () => {
  using file = scratch(FIRST)
  await using server = await startServe({ home: file.home, args: ["--config", file.path] })
  const told = async (what: string): Promise<Line> =>
    JSON.parse(await server.stderr.first((line) => line.includes(what)))
  const addressSeen = async () => {
    const answer = await server.request("/v1/emails", {
      headers: { "x-forwarded-for": "192.0.2.7", "x-request-id": crypto.randomUUID() },
    })
    const id = answer.headers.get("x-request-id")
    for (;;) {
      const found = await server.request(`/v1/request-log?request_id=${id}`)
      const { data } = (await found.json()) as { data: { ip: string }[] }
      if (data[0]) return data[0].ip
      await Bun.sleep(50) // it is written twice a second
    }
  }
  expect(await addressSeen()).toBe("127.0.0.1")

  const hasModel = async () => {
    const answer = await server.request("/v1/ai/entitlement")
    const { data } = (await answer.json()) as { data: { gateway_configured: boolean } }
    return data.gateway_configured
  }
  expect(await hasModel()).toBe(false)

  file.write(NEXT)
  server.kill("SIGHUP")
  expect(await told("only after a restart")).toMatchObject({
    level: "warn",
    applied: [
      ...["log.level", "http.trusted_proxies", "ai.gateway.kind", "ai.gateway.models.fast"],
      "plans.free.emails_per_month",
    ],
    restart_needed: ["http.max_connections"],
  })
  expect(await hasModel()).toBe(true)
  expect(await addressSeen()).toBe("192.0.2.7")

  file.write("[log]\nlevel = 'loud'\n")
  server.kill("SIGHUP")
  const refused = await told("nothing changed")
  expect(refused.level).toBe("error")
  expect(refused.faults?.join()).toContain("log.level")
  expect(await addressSeen()).toBe("192.0.2.7")

  server.kill("SIGTERM")
  expect(await server.exited).toBe(0)
  expect(server.stderr.all.some((line) => line.includes('"info"'))).toBe(true) // the new level
})

test("SIGHUP does not end `up`", async () => {
  await using server = await startBelfry({ env: lean })
  server.kill("SIGHUP")
  await server.stderr.first((line) => line.includes("SIGHUP came"))
  expect((await server.request("/healthz")).status).toBe(200)
})
