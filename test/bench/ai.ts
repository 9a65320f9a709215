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
      BELFRY_AI_GATEWAY_BASE_URL: await lane.hears(/^http/),
      BELFRY_AI_GATEWAY_API_KEY: GATEWAY_KEY,
      BELFRY_AI_GATEWAY_MODELS_STANDARD: "model-standard",
      BELFRY_AI_CALLS_PER_HOUR: "1000000",
    })
    const owner = await becomeOwner(
      server,
      readFileSync(join(scratch.path, "data", "setup-token"), "utf8").trim(),
    )
    const { key } = owner.made.api_key
    const body = readFileSync(oneMail(scratch.path, "shop@mailbox.test"))
    lane.says(`at ${server.url} ${key} ${owner.made.project.id}`)
    const told = {
      first_p50: series("first token, p50", "ms"),
      first_p99: series("first token, p99", "ms"),
      alone: series("accept alone, p99", "ms"),
      beside: series(`accept beside ${STREAMS} streams, p99`, "ms"),
    }
    await measure(server, key, body, seconds) // warm
    for (let round = 0; round < rounds; round++) {
      lane.says(`first ${FIRSTS}`)
      const delays = (JSON.parse(await lane.hears(/^\[/)) as number[]).sort((a, b) => a - b)
      told.first_p50.values.push(median(delays))
      told.first_p99.values.push(delays[Math.floor(0.99 * (FIRSTS - 1))] ?? Number.NaN)
      told.alone.values.push((await measure(server, key, body, seconds)).p99)
      lane.says(`open ${STREAMS}`)
      await lane.hears(/^open/)
      told.beside.values.push((await measure(server, key, body, seconds)).p99)
      lane.says("close")
      await lane.hears(/^closed/)
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
  const child = Bun.spawn({
    cmd: [process.execPath, join(root, "test/bench/ai-lane.ts")],
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  return {
    says: (line: string) => {
      child.stdin.write(`${line}\n`)
      child.stdin.flush()
    },
    /** The next line like this, which is not heard again. */
    async hears(like: RegExp): Promise<string> {
      const line = await lines.first((one) => like.test(one), WAIT_MS)
      lines.all.splice(lines.all.indexOf(line), 1)
      return line
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}
