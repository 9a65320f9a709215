import { describe, expect, test } from "bun:test"
import { spawnSync } from "node:child_process"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { type Belfry, makeHome, startBelfry } from "../harness/binary"
import { locate, missing, note } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { NEVER_MS } from "../harness/waits"
import { drained, get, type Mail, post } from "../scenarios/mails"
import { lean } from "../scenarios/serve"

const STORAGE = 74
/** Which sync of the database fails: some while it starts, some under load. */
const FAILING = [1, 2, 4, 7, 11, 20, 40]
const MOST_SENDS = 200
/** Copies the log after nearly every group, so that a checkpoint meets the failing sync. */
const COPIED_OFTEN = { BELFRY_STORAGE_WAL_AUTOCHECKPOINT: "10" }
const FAILING_CHECKPOINT = [3, 6, 11]
const some = (numbers: number[]) => numbers.filter((_, at) => at % sizes.failed_syncs === 0)

/** Files only: SQLite takes no notice of a folder's sync, whose loss would undo no commit. */
const failingSync = (home: string, number: number, ends: string[]) => [
  locate("strace") ?? "strace",
  ...ends.flatMap((end) => ["-P", join(home, `belfry/belfry.db${end}`)]),
  ...["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"],
  ...["-e", `inject=fsync,fdatasync:error=EIO:when=${number}`],
]

interface BadDisk {
  home: string
  number: number
  ends: string[]
  env: Record<string, string>
}

/** Undefined when it could not even start, which must have been for its storage. */
async function startOnBadDisk({ home, number, ends, env }: BadDisk): Promise<Belfry | undefined> {
  try {
    return await startBelfry({ home, env, wrap: failingSync(home, number, ends) })
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

async function expectEnd(disk: Omit<BadDisk, "home">) {
  const home = makeHome()
  try {
    await using ill = await startOnBadDisk({ home, ...disk })
    const { ids, late } = ill ? await sendUntilGone(ill) : { ids: [], late: 0 }
    if (ill) {
      expect(await Promise.race([ill.exited, Bun.sleep(NEVER_MS)])).toBe(STORAGE)
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
}

const cannot_trace = missing("strace") || spawnSync(locate("strace") ?? "", ["true"]).status !== 0
if (cannot_trace) note("a failing fsync: strace is missing, or may not trace here")

describe.skipIf(cannot_trace)("an fsync that fails", () => {
  for (const number of some(FAILING)) {
    test(`number ${number}: nothing is acknowledged any more, and it ends with ${STORAGE}`, () =>
      expectEnd({ number, ends: ["", "-wal", "-journal"], env: lean }))
  }

  for (const number of some(FAILING_CHECKPOINT)) {
    test(`number ${number} of the database's file, in a checkpoint: likewise`, () =>
      expectEnd({ number, ends: [""], env: { ...lean, ...COPIED_OFTEN } }))
  }
})
