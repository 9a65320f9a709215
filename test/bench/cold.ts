import { statSync } from "node:fs"
import { join } from "node:path"
import { binary } from "../harness/binary"
import { readLines } from "../harness/lines"
import { root } from "../harness/migrations"
import { atMost, type Bench, median, type Series, series } from "./bench"
import { MEGABYTE, residentMegabytes } from "./memory"
import { scratchFolder } from "./scratch"
import { initialise, serve } from "./serving"

const STARTS = 5
const IDLE_MS = 5000
const READY_MS = 10_000

export const cold: Bench = {
  name: "cold",
  title: "start, idle memory and size of the binary",

  async run({ rounds }) {
    using scratch = scratchFolder()
    const runtime = compileRuntime(scratch.path)
    const bare = measures("limit, the runtime alone")
    const ours = measures("ours")
    const first = series("ours: spawn to 200 of `/healthz`, empty folder", "ms")
    for (let round = 0; round < rounds; round++) {
      bare.version.values.push(versionMs(runtime))
      ours.version.values.push(versionMs(binary))
      await startBare(runtime, bare)
      first.values.push(await startOurs(ours))
    }
    bare.size.values.push(megabytes(runtime))
    ours.size.values.push(megabytes(binary))
    return {
      series: [...Object.values(bare), ...Object.values(ours), first],
      verdicts: [
        atMost("`--version`", median(ours.version.values), 80, "ms"),
        atMost("serving", median(ours.serving.values), 250, "ms"),
        atMost("idle memory", median(ours.idle.values), 90, "MB"),
        atMost("binary", median(ours.size.values), 130, "MB"),
      ],
      notes: [
        `MB is 1,000,000 bytes, of memory too; the binary has ${statSync(binary).size.toLocaleString("en")} bytes.`,
        `\`--version\` is the median of ${STARTS} starts a round. Serving is \`belfry serve\` on a folder that was used before. Idle memory is the resident set ${IDLE_MS / 1000} s after the start.`,
      ],
    }
  },
}

interface Measures extends Record<string, Series> {
  version: Series
  serving: Series
  idle: Series
  size: Series
}

const measures = (whose: string): Measures => ({
  version: series(`${whose}: \`--version\``, "ms"),
  serving: series(`${whose}: spawn to 200 of \`/healthz\``, "ms"),
  idle: series(`${whose}: idle memory`, "MB"),
  size: series(`${whose}: binary`, "MB"),
})

function versionMs(program: string): number {
  const times = Array.from({ length: STARTS }, () => {
    const begun = performance.now()
    const { exitCode } = Bun.spawnSync({ cmd: [program, "--version"], stdin: "ignore" })
    if (exitCode !== 0) throw new Error(`${program} --version: exit code ${exitCode}`)
    return performance.now() - begun
  })
  return median(times)
}

/** Returns what a first start takes, with migrations and keys to make. */
async function startOurs(ours: Measures): Promise<number> {
  using empty = scratchFolder()
  const begun = await serve(empty.path, "nobody")
  await begun.kill()

  using scratch = scratchFolder()
  const key = await initialise(scratch.path)
  const once = await serve(scratch.path, key)
  await once.kill()
  await using server = await serve(scratch.path, key)
  ours.serving.values.push(server.started_ms)
  await Bun.sleep(IDLE_MS)
  ours.idle.values.push(residentMegabytes(server.pid))
  return begun.started_ms
}

async function startBare(runtime: string, bare: Measures) {
  const begun = performance.now()
  const child = Bun.spawn({ cmd: [runtime], stdout: "pipe", stdin: "ignore" })
  try {
    const line = await readLines(child.stdout).first(() => true, READY_MS)
    await fetch((JSON.parse(line) as { url: string }).url)
    bare.serving.values.push(performance.now() - begun)
    await Bun.sleep(IDLE_MS)
    bare.idle.values.push(residentMegabytes(child.pid))
  } finally {
    child.kill()
    await child.exited
  }
}

/** With the flags of our own build. */
function compileRuntime(folder: string): string {
  const outfile = join(folder, "runtime")
  const flags = ["--compile", "--bytecode", "--format=esm", "--minify-whitespace"]
  const { exitCode } = Bun.spawnSync({
    cmd: [
      ...[process.execPath, "build", ...flags, "--minify-syntax"],
      ...[join(import.meta.dir, "bare-runtime.ts"), "--outfile", outfile],
    ],
    cwd: root,
  })
  if (exitCode !== 0) throw new Error("the bare runtime does not compile")
  return outfile
}

const megabytes = (path: string) => statSync(path).size / MEGABYTE
