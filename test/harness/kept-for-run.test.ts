import { expect, test } from "bun:test"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { leftover } from "./leftovers"

/** What one process gets that makes a folder with its own name in it; a run has its notes in `folder`. */
async function made(name: string, folder?: string): Promise<string> {
  const program = `import { keptForRun } from "${join(import.meta.dir, "kept-for-run.ts")}"
    import { mkdirSync, readdirSync, writeFileSync } from "node:fs"
    const path = await keptForRun("kept", async (draft) => {
      mkdirSync(draft)
      writeFileSync(draft + "/${name}", "")
      await Bun.sleep(300)
    })
    console.log(path && readdirSync(path).join())`
  const { BELFRY_TEST_NOTES: _, ...env } = process.env
  const child = Bun.spawn([process.execPath, "-e", program], {
    env: folder === undefined ? env : { ...env, BELFRY_TEST_NOTES: join(folder, "notes") },
    stderr: "inherit",
  })
  return (await child.stdout.text()).trim()
}

test("what one process of a run makes, the others get, also where two make it at once", async () => {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-kept-")))
  const [one, other] = await Promise.all([made("one", folder), made("other", folder)])
  expect(["one", "other"]).toContain(one)
  expect(other).toBe(one)
  expect(await made("third", folder)).toBe(one)
})

test("a plain run keeps nothing", async () => {
  expect(await made("one")).toBe("undefined")
})
