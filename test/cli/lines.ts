import { join } from "node:path"
import type { Subprocess } from "bun"
import { type Ended, environment, type Input } from "./belfry"
import type { Line, LineEnded } from "./one-process"

let child: Subprocess | undefined
let answer: (ended: Ended) => void = () => {}
let before: Promise<unknown> = Promise.resolve()

/** Starts with the first line, and ends with this process. */
function started(): Subprocess {
  child ??= Bun.spawn([process.execPath, join(import.meta.dir, "one-process.ts")], {
    ipc: ({ has_read, ...ended }: LineEnded, used) => {
      if (has_read) {
        used.kill()
        child = undefined
      }
      answer(ended)
    },
    stdio: ["ignore", "inherit", "inherit"],
  })
  child.unref()
  return child
}

function send(line: Line): Promise<Ended> {
  const ended = Promise.withResolvers<Ended>()
  answer = ended.resolve
  started().send(line)
  return ended.promise
}

/**
 * As `belfry` of `belfry.ts`, in one process for all lines of these tests, one after another: for what a line asks and
 * says. What is about the process itself, or about a server of its own, takes a process.
 */
export function belfry(words: string[], given: Input = {}): Promise<Ended> {
  const { env, cwd = process.cwd(), stdin = "" } = given
  const next = before.then(() => send({ words, env: environment(env), cwd, stdin }))
  before = next.catch(() => {})
  return next
}
