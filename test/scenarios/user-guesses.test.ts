import { describe, expect, test } from "bun:test"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { makeHome } from "../harness/binary"
import { note } from "../harness/peers"
import { freshDatabase, noPostgres } from "../harness/postgres"
import { sizes } from "../harness/sizes"
import { initialise, startServe } from "./serve"

const GUESSES = Math.min(sizes.guesses, 2000)
const WAVE = 50
const EMAIL = "ann@people.test"
const PASSWORD = "Quiet-River-42"

type Node = Awaited<ReturnType<typeof startServe>>

const has_postgres = !noPostgres()
if (!has_postgres) note("guesses at two nodes: start the tests by `bun run test`")

describe.skipIf(!has_postgres)("guesses at a password", () => {
  test(`${GUESSES} of them, at two nodes, from everywhere, over a restart: ten are judged`, async () => {
    await using database = await freshDatabase()
    const homes = [makeHome(), makeHome()] as const
    using _ = {
      [Symbol.dispose]: () => {
        for (const home of homes) rmSync(home, { recursive: true, force: true })
      },
    }
    const env = {
      DATABASE_URL: database.url,
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
      BELFRY_STORAGE_BLOBS_DIR: join(homes[0], "blobs"),
      BELFRY_HTTP_TRUSTED_PROXIES: "127.0.0.1",
    }
    const api_key = await initialise(homes[0], env)
    await using one = await startServe({ home: homes[0], api_key, env })
    let two = await startServe({ home: homes[1], api_key, env })
    try {
      const key = await publicKey(one)
      const { ask, statuses } = stranger(key)
      expect(await ask(two, "register", PASSWORD)).toBe(201)
      expect(await ask(one, "login", PASSWORD)).toBe(200)
      statuses.clear()
      for (let tried = 0; tried < GUESSES; tried += WAVE) {
        if (tried === WAVE * 2) {
          await two[Symbol.asyncDispose]()
          two = await startServe({ home: homes[1], api_key, env })
        }
        const wave = Array.from({ length: WAVE }, (_, at) =>
          ask(at % 2 === 0 ? one : two, "login", `Wrong-Horse-${tried + at}`),
        )
        await Promise.all(wave)
      }
      expect(Object.fromEntries(statuses)).toEqual({ 401: 10, 429: GUESSES - 10 })
      expect(await ask(one, "login", PASSWORD)).toBe(429)
    } finally {
      await two[Symbol.asyncDispose]()
    }
  })
})

async function publicKey(node: Node): Promise<string> {
  const body = JSON.stringify({ name: "Shop" })
  const response = await node.request("/v1/auth/applications", { method: "POST", body })
  expect(response.status).toBe(201)
  const { data } = (await response.json()) as { data: { public_keys: { live: string } } }
  return data.public_keys.live
}

/** Somebody whose every request comes from another address. */
function stranger(key: string) {
  const statuses = new Map<number, number>()
  let asked = 0
  const ask = async (node: Node, verb: "register" | "login", password: string) => {
    asked += 1
    const response = await fetch(`${node.url}/v1/auth/users/${verb}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-application-key": key,
        "x-forwarded-for": `10.0.${asked >> 8}.${asked & 255}`,
      },
      body: JSON.stringify({ email: EMAIL, password }),
    })
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    await response.arrayBuffer()
    return response.status
  }
  return { ask, statuses }
}
