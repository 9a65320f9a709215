import { expect, test } from "bun:test"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../harness/migrations"
import { testService } from "../harness/service"

const GENERATOR = "node_modules/openapi-typescript/bin/cli.js"
const CALLS = join(import.meta.dir, "client/calls.ts")

/** A development tool, by this Bun. Resolves to what it said, with its exit code. */
async function tool(...args: string[]) {
  const cmd = [process.execPath, ...args]
  const run = Bun.spawn({ cmd, cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" })
  const [said, complained] = await Promise.all([run.stdout.text(), run.stderr.text()])
  return { code: await run.exited, text: said + complained }
}

test("a client made of the description is checked by its types, and its calls work", async () => {
  await using service = await testService()
  const project = await service.project()
  const { url } = service.listen()
  const folder = mkdtempSync(join(tmpdir(), "belfry-client-"))
  try {
    const document = join(folder, "openapi.json")
    await Bun.write(document, await fetch(`${url}/v1/openapi.json`))
    const types = join(folder, "api.d.ts")
    const own = ["--preload", "./test/harness/typescript-5.ts", GENERATOR]
    expect(await tool(...own, document, "-o", types)).toMatchObject({ code: 0 })

    const tsconfig = join(folder, "tsconfig.json")
    const compilerOptions = { paths: { "belfry-api": [types] }, types: [] }
    const settings = {
      extends: join(root, "tsconfig.json"),
      include: [],
      files: [CALLS, types],
      compilerOptions,
    }
    await Bun.write(tsconfig, JSON.stringify(settings))
    const checked = await tool(
      "node_modules/typescript/bin/tsc",
      "-p",
      tsconfig,
      "--pretty",
      "false",
    )
    expect(checked).toEqual({ code: 0, text: "" })

    const { calls } = await import(CALLS)
    const { seen, told } = await calls(url, project.key)
    expect(seen.length).toBeGreaterThanOrEqual(20)
    expect(told).toMatchObject({
      up: "ok",
      id: true,
      tags: ["receipt"],
      to: "ann@example.com",
      found: [expect.any(String)],
      total: 1,
      story: ["email.queued"],
      text: "Thank you.",
      cancelled: "cancelled",
      batch: 1,
      records: ["verification", "spf", "dkim", "dmarc"],
      secret: "whsec_",
      paused: "paused",
      key: "svc_live_",
      gone: "revoked",
      used: 2,
      reply_to: "support@example.com",
      feed: ["email.queued", "email.failed", "email.queued"],
      types: true,
      refused: "not_found",
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
