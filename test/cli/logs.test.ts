import { expect, test } from "bun:test"
import { readLines } from "../harness/lines"
import { mail } from "../harness/mail"
import { program } from "../harness/program"
import { quietLog } from "../harness/quiet"
import { sharedService } from "../harness/shared-service"
import { environment, onTerminal } from "./belfry"
import { belfry } from "./lines"

quietLog()

const service = await sharedService()
const { url } = service.listen()
const { requests } = service.parts

async function projectWithCalls() {
  const project = await service.project()
  await project.post("/v1/emails", mail())
  await project.get("/v1/emails/none")
  await requests.flush()
  return { project, env: { BELFRY_URL: url, BELFRY_API_KEY: project.key } }
}

test("logs list shows requests newest first, and filters them", async () => {
  const { env } = await projectWithCalls()
  const list = async (...words: string[]) => {
    const { exit, out } = await belfry(["logs", "list", ...words], { env })
    return [exit, JSON.parse(out).map(({ status }: { status: number }) => status)]
  }
  expect(await list()).toEqual([0, [404, 201]])
  expect(await list("--status", "4xx")).toEqual([0, [404]])
  expect(await list("--path", "/v1/emails", "--limit", "1")).toEqual([0, [404]])
  const quiet = await belfry(["logs", "list", "--quiet"], { env })
  expect(quiet.out).toMatch(/^(req_\S+\n){2}$/)
  expect((await belfry(["logs", "list", "--status", "bad"], { env })).exit).toBe(7)
  const shown = await onTerminal(["logs", "list", "--no-color"], { env })
  expect(shown.out).toMatch(/GET +\/v1\/emails\/none +404 not_found/)
})

test("on a narrow terminal only what failed shows its request, lest every line be two", async () => {
  const { env } = await projectWithCalls()
  const words = ["logs", "tail", "--limit", "2", "--no-color"]
  const { out } = await onTerminal(words, { env, columns: 60 })
  const lines = out.trimEnd().split("\r\n")
  expect(lines.find((line) => line.includes("201"))).toMatch(/\d+ ms$/)
  expect(lines.find((line) => line.includes("404"))).toContain("req_")
})

test("logs tail shows the last ones, then each new one once and in order", async () => {
  const { project, env } = await projectWithCalls()
  const child = Bun.spawn([...program, "logs", "tail", "--limit", "42"], {
    env: environment(env),
    stdout: "pipe",
    stderr: "inherit",
  })
  const stdout = readLines(child.stdout)
  await stdout.first((line) => line.includes("/v1/emails/none"))
  for (let n = 0; n < 40; n++) {
    await project.get("/v1/emails", { "x-request-id": `req_number_${n}` })
    if (n % 10 === 9) {
      await requests.flush()
      await Bun.sleep(400)
    }
  }
  expect(await child.exited).toBe(0)
  await stdout.ended
  const ids = stdout.all.map((line) => JSON.parse(line).request_id as string)
  expect(ids.slice(2)).toEqual(Array.from({ length: 40 }, (_, n) => `req_number_${n}`))
})

test("logs tail --request-id finds one request, and ends with --timeout", async () => {
  const { project, env } = await projectWithCalls()
  await project.get("/v1/emails", { "x-request-id": "req_wanted_1" })
  await requests.flush()
  const words = ["logs", "tail", "--request-id", "req_wanted_1", "--timeout", "3s"]
  const { exit, out } = await belfry(words, { env })
  expect([exit, JSON.parse(out).request_id]).toEqual([0, "req_wanted_1"])
})
