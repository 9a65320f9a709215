import { expect, test } from "bun:test"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { unifiedDiff } from "../../cli/lib/template-diff"
import { missing } from "../harness/peers"
import { freshHome } from "./belfry"

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`)

test("equal texts have no difference", () => {
  expect(unifiedDiff("a.html", "x\n", "x\n")).toBe("")
})

test("a change stands between three lines of its surroundings", () => {
  const before = numbered(20)
  const after = before.with(9, "changed")
  expect(unifiedDiff("a.html", `${before.join("\n")}\n`, `${after.join("\n")}\n`)).toBe(
    [
      "--- server/a.html",
      "+++ files/a.html",
      "@@ -7,7 +7,7 @@",
      " line 7",
      " line 8",
      " line 9",
      "-line 10",
      "+changed",
      " line 11",
      " line 12",
      " line 13",
      "",
    ].join("\n"),
  )
})

test("a new file and a removed one are whole", () => {
  expect(unifiedDiff("a", "", "x\ny\n")).toContain("@@ -0,0 +1,2 @@\n+x\n+y\n")
  expect(unifiedDiff("a", "x\n", "")).toContain("@@ -1,1 +0,0 @@\n-x\n")
})

/** A small generator with a fixed seed. */
function random(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state % below
  }
}

function edited(lines: string[], pick: (below: number) => number): string[] {
  const copy = [...lines]
  for (let edits = pick(6); edits >= 0; edits--) {
    const at = pick(copy.length + 1)
    if (pick(2) === 0) copy.splice(at, pick(3))
    else copy.splice(at, 0, `new ${pick(5)}`)
  }
  return copy
}

test.skipIf(missing("patch"))("patch makes the one text from the other", () => {
  const folder = freshHome()
  const file = join(folder, "a")
  const pick = random(7)
  for (let round = 0; round < 40; round++) {
    const before = numbered(pick(40) + 1)
    const after = edited(before, pick)
    const [old, young] = [before, after].map((all) => all.map((line) => `${line}\n`).join(""))
    writeFileSync(file, old ?? "")
    const stdin = Buffer.from(unifiedDiff("a", old ?? "", young ?? ""))
    const done = Bun.spawnSync(["patch", "--silent", file], { cwd: folder, stdin })
    const result = young === "" ? "" : readFileSync(file, "utf8")
    expect([round, done.exitCode, result]).toEqual([round, 0, young ?? ""])
  }
})
