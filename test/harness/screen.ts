import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { locate } from "./peers"
import { NEVER_MS } from "./waits"

const POLL_MS = 40

export interface ScreenOptions {
  columns: number
  lines: number
  /** Of the program, beside PATH and what tmux sets. */
  env: Record<string, string>
}

/** A terminal that somebody could sit at: tmux draws it, keys are typed, the screen is read. */
export interface Screen extends AsyncDisposable {
  /** Names of tmux (`Enter`, `Escape`, `C-c`), or text as it is typed. */
  press(...keys: string[]): Promise<void>
  /** What is seen, one string a line. */
  lines(): string[]
  /** The same with its colours. */
  coloured(): string
  /** Resolves to the screen once `match` holds; rejects with the screen when it never does. */
  until(what: string, match: (text: string) => boolean): Promise<string>
  /** The same for one piece of text. */
  shows(text: string): Promise<string>
  resize(columns: number, lines: number): void
  /** Whether a program has the alternate screen, and whether the cursor is to be seen. */
  modes(): { alternate: boolean; cursor: boolean }
  kill(signal: NodeJS.Signals): void
}

/**
 * Runs a program on a terminal of its own tmux server. The line `before` stands on the screen first,
 * and `exit N` follows when the program ends, so that it shows whether the screen was given back.
 */
export async function openScreen(
  command: string[],
  { columns, lines, env }: ScreenOptions,
): Promise<Screen> {
  const folder = mkdtempSync(join(tmpdir(), "belfry-screen-"))
  const socket = join(folder, "tmux")
  const tmux = (...words: string[]): string => {
    const cmd = [locate("tmux") ?? "tmux", "-S", socket, "-f", "/dev/null", ...words]
    const run = Bun.spawnSync({
      cmd,
      env: { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8", ...env },
    })
    if (run.exitCode !== 0) throw new Error(`tmux ${words[0]}: ${run.stderr}`)
    return run.stdout.toString()
  }
  const script = 'echo before; "$@"; echo "exit $?"; exec cat'
  const size = ["-x", String(columns), "-y", String(lines)]
  tmux("new-session", "-d", ...size, "sh", "-c", script, "sh", ...command)
  const text = () => tmux("capture-pane", "-p")
  const until = (what: string, match: (text: string) => boolean) => seen(what, text, match)
  const shell = tmux("display", "-p", "#{pane_pid}").trim()

  return {
    async press(...keys) {
      for (const key of keys) {
        tmux("send-keys", key)
        await Bun.sleep(POLL_MS) // as apart as by a person: Esc and the next key are no escape
      }
    },
    lines: () => text().split("\n").slice(0, -1),
    coloured: () => tmux("capture-pane", "-e", "-p"),
    until,
    shows: (part) => until(`"${part}"`, (screen) => screen.includes(part)),
    resize: (x, y) => void tmux("resize-window", "-x", String(x), "-y", String(y)),
    modes() {
      const [alternate, cursor] = tmux("display", "-p", "#{alternate_on} #{cursor_flag}").split(" ")
      return { alternate: alternate === "1", cursor: cursor?.trim() === "1" }
    },
    kill: (signal) => process.kill(childOf(shell), signal),
    async [Symbol.asyncDispose]() {
      tmux("kill-server")
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The program itself: the shell around it is to live on. */
function childOf(shell: string): number {
  const { stdout } = Bun.spawnSync({ cmd: ["ps", "-o", "pid=", "--ppid", shell] })
  return Number(stdout.toString().trim().split("\n")[0])
}

async function seen(what: string, text: () => string, match: (text: string) => boolean) {
  const deadline = performance.now() + NEVER_MS
  let screen = text()
  while (!match(screen)) {
    if (performance.now() > deadline) throw new Error(`never saw ${what} on:\n${screen}`)
    await Bun.sleep(POLL_MS)
    screen = text()
  }
  return screen
}
