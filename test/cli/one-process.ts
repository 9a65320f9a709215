/**
 * Runs command lines one after another in one process, for tests of many that need no process each. Each comes as a
 * message with its words, its environment and what stands on its stdin; the answer is how it ended.
 */
import { programFor } from "../../cli/command-line"
import { normalized } from "../../cli/lib/arguments"

export interface Line {
  words: string[]
  env: Record<string, string>
  stdin: string
}

type Write = typeof process.stderr.write

/** In place of a stream: it tells what it is given, and says that it is written. */
const writer = (tell: (text: string) => void) =>
  ((text: string | Uint8Array, ...rest: unknown[]) => {
    tell(typeof text === "string" ? text : new TextDecoder().decode(text))
    const done = rest.find((one) => typeof one === "function") as (() => void) | undefined
    done?.()
    return true
  }) as Write

let said = ""
process.stdout.write = writer(() => {})
process.stderr.write = writer((text) => {
  said += text
})

async function run({ words, env, stdin }: Line) {
  said = ""
  process.exitCode = 0
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  const given = new Blob([stdin])
  Object.assign(Bun.stdin, { text: () => given.text(), stream: () => given.stream() })
  try {
    const program = await programFor(words, () => {})
    await program.parseAsync(normalized(words, program), { from: "user" })
    return { exit: process.exitCode, err: said }
  } catch (error) {
    return { exit: 1, err: `${said}${error}` }
  }
}

process.on("message", async (line: Line) => process.send?.(await run(line)))
