import { readFileSync } from "node:fs"
import { join } from "node:path"
import { GATEWAY_KEY } from "../fakes/model-gateway"
import { readLines } from "../harness/lines"
import { root } from "../harness/migrations"
import { becomeOwner } from "../scenarios/page-owner"
import { atMost, type Bench, median, ratioOf, series } from "./bench"
import { measure } from "./fairness"
import { oneMail } from "./mail"
import { scratchFolder } from "./scratch"
import { serve } from "./serving"

const STREAMS = 100
const FIRSTS = 50
const WAIT_MS = 60_000

export const ai: Bench = {
  name: "ai",
  title: `the first token of an AI stream after the model's, and \`POST /v1/emails\` of 1 KB, 50 a second, beside ${STREAMS} streams`,

  async run({ rounds, seconds }) {
    using scratch = scratchFolder()
    await using lane = startLane()
    await using server = await serve(scratch.path, "", {
      BELFRY_AI_GATEWAY_KIND: "openai",
      BELFRY_AI_GATEWAY_BASE_URL: await lane.answer("gateway"),
      BELFRY_AI_GATEWAY_API_KEY: GATEWAY_KEY,
      BELFRY_AI_GATEWAY_MODELS_STANDARD: "model-standard",
      BELFRY_AI_CALLS_PER_HOUR: "1000000",
    })
    const token = readFileSync(join(scratch.path, "data", "setup-token"), "utf8").trim()
    const { api_key, project } = (await becomeOwner(server, token)).made
    const body = readFileSync(oneMail(scratch.path, "shop@mailbox.test"))
    const accepted = async () => (await measure(server, api_key.key, body, seconds)).p99
    await lane.answer(`at ${server.url} ${api_key.key} ${project.id}`)
    const told = {
      first_p50: series("first token, p50", "ms"),
      first_p99: series("first token, p99", "ms"),
      alone: series("accept alone, p99", "ms"),
      beside: series(`accept beside ${STREAMS} streams, p99`, "ms"),
    }
    await accepted() // warm
    for (let round = 0; round < rounds; round++) {
      const delays: number[] = JSON.parse(await lane.answer(`first ${FIRSTS}`))
      delays.sort((a, b) => a - b)
      told.first_p50.values.push(median(delays))
      told.first_p99.values.push(delays[Math.floor(0.99 * (FIRSTS - 1))] ?? Number.NaN)
      told.alone.values.push(await accepted())
      await lane.answer(`open ${STREAMS}`)
      told.beside.values.push(await accepted())
      await lane.answer("close")
    }
    return {
      series: Object.values(told),
      verdicts: [
        atMost("first token after the model's: p50", median(told.first_p50.values), 5, "ms"),
        atMost("accept beside the streams: p99", ratioOf(told.beside, told.alone), 1.5, "×"),
      ],
      notes: [
        "The gateway is a fake that says 20 tokens a second. It and the clients of the streams are one process, and share the machine with the server.",
      ],
    }
  },
}

function startLane() {
  const cmd = [process.execPath, join(root, "test/bench/ai-lane.ts")]
  const child = Bun.spawn({ cmd, stdin: "pipe", stdout: "pipe", stderr: "inherit" })
  const lines = readLines(child.stdout)
  return {
    /** What it prints once it has done this command. */
    async answer(command: string): Promise<string> {
      lines.all.length = 0
      child.stdin.write(`${command}\n`)
      child.stdin.flush()
      return await lines.first(() => true, WAIT_MS)
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
