import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { leftover } from "../harness/leftovers"
import { program } from "../harness/program"

export interface Ended {
  exit: number
  out: string
  err: string
}

export interface Input {
  env?: Record<string, string>
  stdin?: string
  cwd?: string
}

/** A home of its own, so that no test sees the profiles of another, or of the person testing. */
export const freshHome = (): string => leftover(mkdtempSync(join(tmpdir(), "belfry-cli-")))

export function environment(more: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? "", HOME: freshHome(), ...more }
}

/** Runs one command line with pipes, as a script would. */
export async function belfry(words: string[], given: Input = {}): Promise<Ended> {
  const child = Bun.spawn([...program, ...words], {
    env: environment(given.env),
    stdin: given.stdin === undefined ? "ignore" : new Blob([given.stdin]),
    stdout: "pipe",
    stderr: "pipe",
    ...(given.cwd === undefined ? {} : { cwd: given.cwd }),
  })
  const [out, err, exit] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { exit, out, err }
}

interface Watched {
  env?: Record<string, string>
  until?: string
  type?: string
  seen?: () => void
  columns?: number
}

/** Runs it on a pseudo terminal. When `until` has been shown, `type` is typed and `seen` is told. */
export async function onTerminal(words: string[], given: Watched = {}): Promise<Ended> {
  let screen = ""
  let typed = false
  const decoder = new TextDecoder()
  const all = Promise.withResolvers<void>()
  const child = Bun.spawn([...program, ...words], {
    env: environment({ TERM: "xterm", ...given.env }),
    terminal: {
      cols: given.columns ?? 120,
      rows: 40,
      data(terminal, bytes) {
        screen += decoder.decode(bytes, { stream: true })
        if (typed || given.until === undefined || !screen.includes(given.until)) return
        typed = true
        terminal.write(given.type ?? "")
        given.seen?.()
      },
      exit: () => all.resolve(),
    },
  })
  const exit = await child.exited
  await all.promise // what the terminal still held
  return { exit, out: screen, err: screen }
}
