import { describe, expect, test } from "bun:test"
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { loadSettings } from "../../src/core/config"
import { openStore } from "../../src/store/open"
import { fillSome } from "../../src/subscribers/postings"
import * as diagnostics from "../../src/suppressions/fill-diagnostics"
import { makeHome, runBinary } from "../harness/binary"
import { leftover } from "../harness/leftovers"
import { quietLog } from "../harness/quiet"
import { sizes } from "../harness/sizes"
import { openedAnew, sealWebhooks, secretsOf } from "../operations/sealed-rows"
import { initialise, lean, startServe } from "../scenarios/serve"
import { cannotTrace, strace, tampered } from "./tampered"

quietLog()

const SEALED = 250
const cannot_trace = cannotTrace("a killed rotation")

/** Whatever writes for good: SIGKILL comes before it for the so manieth time. */
const killedAt = (step: number) => tampered({ calls: WRITING, does: "signal=SIGKILL", step })
const WRITING = "fsync,fdatasync,link,linkat,rename,renameat,renameat2,unlink,unlinkat"

/** A folder with many sealed values, that was in use. */
async function sealedFolder() {
  const home = leftover(makeHome())
  const api_key = await initialise(home, lean)
  const folder = join(home, "belfry")
  await inStore(folder, async (store) => {
    await sealWebhooks(store, secretsOf(folder), SEALED)
    // So that a server has nothing to write but what is asked of it.
    while (await fillSome(store));
    while (await diagnostics.fillSome(store));
  })
  return { home, folder, api_key }
}

async function inStore<Answer>(
  folder: string,
  act: (store: Awaited<ReturnType<typeof openStore>>) => Promise<Answer>,
): Promise<Answer> {
  const { values } = loadSettings({ environment: {}, flags: { data_dir: folder } })
  const store = await openStore(values, { begin: "never" })
  try {
    return await act(store)
  } finally {
    await store.close()
  }
}

const words = (folder: string) => ["admin", "rotate-master-key", "--json", "--data-dir", folder]

/** Ends the rotation with the binary. Answers the name of the new key. */
async function rotated(home: string, folder: string): Promise<string> {
  const done = await runBinary(words(folder), { home, env: lean })
  expect(done).toMatchObject({ code: 0 })
  expect(readdirSync(folder).filter((name) => DRAFT.test(name))).toEqual([])
  return (JSON.parse(done.stdout) as { to: string }).to
}

const DRAFT = /^master\.key\.next\../

/** Every master key that the folder has, as text. */
const keysIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith("master.key") && !DRAFT.test(name))
    .map((name) => readFileSync(join(folder, name), "utf8").trim())

/** All that was sealed opens, and no key that was ever in use is gone. */
async function requireWhole(folder: string, keys: Set<string>) {
  const { plain } = await inStore(folder, (store) => openedAnew(store, folder))
  expect(plain).toBe(SEALED)
  const there = keysIn(folder)
  expect([...keys].filter((key) => !there.includes(key))).toEqual([])
  for (const key of there) keys.add(key)
}

describe.skipIf(cannot_trace)("kill -9 at each step of a rotation of the master key", () => {
  test("of the command without a server: the next one ends it, and no key is lost", async () => {
    const { home, folder } = await sealedFolder()
    const keys = new Set(keysIn(folder))
    let kills = 0
    for (let step = 1; ; step += sizes.rotation_steps) {
      const wrap = [strace, ...killedAt(step)]
      const { code, stderr } = await runBinary(words(folder), { home, env: lean, wrap })
      if (code === 0) break
      expect({ code, stderr }).toMatchObject({ code: 137 })
      kills++
      await requireWhole(folder, keys)
      const to = await rotated(home, folder)
      const { key_ids } = await inStore(folder, (store) => openedAnew(store, folder))
      expect(key_ids).toEqual([to])
      await requireWhole(folder, keys)
    }
    expect(kills * sizes.rotation_steps).toBeGreaterThan(15)
  })

  test("of the server: the next start serves, and ends it when it is asked to", async () => {
    const { home, folder, api_key } = await sealedFolder()
    const keys = new Set(keysIn(folder))
    let kills = 0
    for (let step = 1; ; step += sizes.rotation_steps) {
      const server = await startServe({ home, api_key, env: lean })
      const tracer = spawn(strace, [...killedAt(step), "-p", String(server.pid)])
      while (!isTraced(server.pid)) await Bun.sleep(5)
      const { code } = await runBinary(words(folder), { home, env: lean })
      // Lets it go on, if it lives. To end strace in order may hang: it waits for a thread that has ended already.
      tracer.kill("SIGKILL")
      const is_alive = (await Promise.race([server.exited, Bun.sleep(0)])) === undefined
      if (code === 0 && is_alive) {
        await server[Symbol.asyncDispose]()
        break
      }
      expect(await server.exited).toBe(137)
      // A server that was killed by a write of its own was asked nothing.
      if (code !== 0) kills++
      await requireWhole(folder, keys)
      await using again = await startServe({ home, api_key, env: lean })
      const to = await rotated(home, folder)
      expect((await again.request("/v1/webhooks")).status).toBe(200)
      await again[Symbol.asyncDispose]()
      const { key_ids } = await inStore(folder, (store) => openedAnew(store, folder))
      expect(key_ids).toEqual([to])
      await requireWhole(folder, keys)
    }
    expect(kills * sizes.rotation_steps).toBeGreaterThan(10)
  })
})

const isTraced = (pid: number): boolean =>
  !/^TracerPid:\t0$/m.test(readFileSync(`/proc/${pid}/status`, "utf8"))
