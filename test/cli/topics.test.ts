import { expect, test } from "bun:test"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { sharedService } from "../harness/shared-service"
import { freshHome, onTerminal } from "./belfry"
import { belfry } from "./lines"

const service = await sharedService()
const { url } = service.listen()

/** A project with a topic and two subscribers, and a file with its members' ids and other lines. */
async function setUp(lines: string) {
  const project = await service.project()
  for (const external_id of ["ann", "jörg b"])
    await project.post("/v1/subscribers", { external_id })
  await project.post("/v1/topics", { name: "News" })
  const path = join(freshHome(), "ids.txt")
  writeFileSync(path, lines)
  return { project, path, env: { BELFRY_URL: url, BELFRY_API_KEY: project.key } }
}

test("a line that can be no id is not found, and the others join and leave", async () => {
  const [long, dark] = ["x".repeat(256), "a\u001b[31mb"]
  const { project, path, env } = await setUp(`\ufeffann\r\n${long}\n${dark}\n\njörg b\nnobody\n`)
  const joined = await belfry(["topics", "join", "news", "--file", path], { env })
  const not_found = [long, dark, "nobody"]
  expect([joined.exit, JSON.parse(joined.out)]).toEqual([3, { added: 2, already: 0, not_found }])
  expect((await project.get("/v1/topics/news")).body.data.subscriber_count).toBe(2)
  const words = ["topics", "join", "news", "--file", path, "--no-color"]
  const shown = await onTerminal(words, { env })
  expect(shown.out).toContain("there is no subscriber nobody")
  expect(shown.out).not.toContain("\u001b[31m")
  const left = await belfry(["topics", "leave", "news", "--file", path, "--yes"], { env })
  expect([left.exit, JSON.parse(left.out)]).toEqual([3, { removed: 2, not_found }])
})
