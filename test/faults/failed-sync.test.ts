import { describe, expect, test } from "bun:test"
import { readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { locate, missing } from "../harness/peers"
import { drained, get, type Mail, post } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const STORAGE = 74
/** Which sync of the process fails: some while it starts, some under load. */
const FAILING = [1, 2, 4, 7, 11, 20, 40]
const MOST_SENDS = 200

const failingSync = (number: number) => [
  locate("strace") ?? "strace",
  ...["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"],
  ...["-e", `inject=fsync,fdatasync:error=EIO:when=${number}`],
]

/** Undefined when it could not even start, which must have been for its storage. */
async function startOnBadDisk(home: string, number: number): Promise<Belfry | undefined> {
  try {
    return await startBelfry({ home, env: lean, wrap: failingSync(number) })
  } catch (error) {
    expect(String(error)).toContain(`exit code ${STORAGE}`)
    return undefined
  }
}

/** Ids of the 201s, in order, and how many requests were answered otherwise before the last 201. */
async function sendUntilGone(server: Belfry) {
  const ids: string[] = []
  let refusals = 0
  let late = 0
  for (let number = 0; number < MOST_SENDS; number++) {
    const response = await post(server, { subject: `n${number}` }).catch(() => undefined)
    if (!response) break
    const { id } = (await response.json()) as { id: string }
    if (response.status === 201) {
      ids.push(id)
      late += refusals
    } else {
      expect(response.status).toBe(503)
      refusals++
    }
  }
  return { ids, late }
}

describe.skipIf(missing("strace"))("an fsync that fails", () => {
  for (const number of FAILING) {
    test(`number ${number}: nothing is acknowledged any more, and it ends with ${STORAGE}`, async () => {
      const home = makeHome()
      try {
        const ill = await startOnBadDisk(home, number)
        const { ids, late } = ill ? await sendUntilGone(ill) : { ids: [], late: 0 }
        if (ill) {
          expect(await ill.exited).toBe(STORAGE)
          const told = ill.stderr.all.find((line) => line.startsWith('{"error"'))
          expect(JSON.parse(told ?? "{}").error.code).toBe("storage")
        }
        expect(late).toBe(0)

        await using well = await startBelfry({ home, env: lean })
        await drained(well)
        for (const id of ids) {
          expect((await get<Mail>(well, `/v1/emails/${id}`)).status).toBe("delivered")
        }
      } finally {
        rmSync(home, { recursive: true, force: true })
      }
    })
  }
})

test("a second process on the same folder is refused, and told who holds it", async () => {
  await using first = await startBelfry({ env: lean })
  const second = await first.cli("up", "--json", "--port", "0", "--data-dir", first.data_dir)
  expect(second.code).toBe(STORAGE)
  expect(second.stdout).toBe("")
  const { error } = JSON.parse(second.stderr)
  expect(error).toMatchObject({ code: "storage" })
  expect(error.message).toContain(String(first.pid))
  expect(error.message).toContain("in use")
  expect((await post(first)).status).toBe(201) // the first one does not notice
})

test("the folder is free again as soon as its holder is dead, however it died", async () => {
  const home = makeHome()
  try {
    const first = await startBelfry({ home, env: lean })
    const held = readFileSync(join(home, "belfry/belfry.db.pid"), "utf8").trim()
    expect(held).toBe(String(first.pid))
    first.kill("SIGKILL")
    await first.exited
    await using second = await startBelfry({ home, env: lean })
    expect((await post(second)).status).toBe(201)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})
