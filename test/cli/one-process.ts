/**
 * Runs command lines one after another in one process, for tests of many that need no process each. Each comes as a
 * message with its words, its environment, its folder and what stands on its stdin; the answer is how it ended.
 */
import { run } from "../../cli/command-line"
import type { Ended } from "./belfry"

export interface Line {
  words: string[]
  env: Record<string, string>
  cwd: string
  stdin: string
}

/** A stream of stdin is read once in the life of a process, which then has to end. */
export interface LineEnded extends Ended {
  has_read: boolean
}

type Write = typeof process.stderr.write

void process.stdin.isTTY // the first look at it takes the stream of stdin

let said = { out: "", err: "" }

/** In place of a stream: it keeps what it is given, and says that it is written. */
function keeper(name: keyof typeof said): Write {
  const decoder = new TextDecoder()
  const write = (text: string | Uint8Array, ...rest: unknown[]) => {
    said[name] += typeof text === "string" ? text : decoder.decode(text, { stream: true })
    const done = rest.find((one) => typeof one === "function") as (() => void) | undefined
    done?.()
    return true
  }
  return write as Write
}

async function ended({ words, env, cwd, stdin }: Line): Promise<LineEnded> {
  said = { out: "", err: "" }
  process.exitCode = 0
  process.stdout.write = keeper("out")
  process.stderr.write = keeper("err")
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  const given = new Blob([stdin])
  let has_read = false
  const stream = () => {
    has_read = true
    return given.stream()
  }
  Object.assign(Bun.stdin, { text: () => given.text(), stream })
  const exit = Promise.withResolvers<number>()
  process.exit = ((code: number) => exit.resolve(code)) as typeof process.exit
  run(words).catch((error) => {
    said.err += error
    exit.resolve(-1)
  })
  const code = await exit.promise
  process.removeAllListeners("SIGINT")
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners("error")
  return { exit: code, ...said, has_read }
}

process.on("message", async (line: Line) => process.send?.(await ended(line)))
