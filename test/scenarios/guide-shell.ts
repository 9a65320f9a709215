import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { codeBlocks } from "../docs/code-blocks"
import { ask, binary, folders, makeHome } from "../harness/binary"
import { root } from "../harness/migrations"
import { openScreen, type Screen } from "../harness/screen"
import { NEVER_MS } from "../harness/waits"
import { lean } from "./serve"

/** The commands below a heading of a guide, in order, each as it is printed. */
export function commandsOf(path: string, heading: string): string[] {
  const blocks = codeBlocks(path).filter((one) => one.language === "sh" && one.heading === heading)
  const commands = blocks.flatMap(({ code }) => code.trimEnd().split(/(?<!\\)\n/))
  if (commands.length === 0) throw new Error(`${path} has no commands below "${heading}"`)
  return commands
}

/** `up`, started by a command that somebody typed. All of it is read off the screen. */
export interface TypedUp {
  url: string
  api_key: string
  open_url: string
  /** A request to its API as its first project. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** Presses Ctrl-C, and resolves when it has ended. */
  interrupt(): Promise<void>
}

/** Usual ports belong to tests of other things. */
const FREE_PORTS = { BELFRY_HTTP_LISTEN: "127.0.0.1:0", BELFRY_MAILBOX_LISTEN: "127.0.0.1:0" }

export interface GuideShellOptions {
  /** More environment, which a person would have set up before. */
  env?: Record<string, string>
  /** Typed before each command: how the shell finds `belfry`. */
  first?: string
}

/**
 * Somebody's shell in the folder of the sources, which has been built, in a home of its own. Leaving it ends what
 * runs. Needs tmux.
 */
export function guideShell({ env: more = {}, first = "true" }: GuideShellOptions = {}) {
  if (!existsSync(binary)) throw new Error(`${binary} is missing: run \`./install.sh build\``)
  const home = makeHome()
  const env = { ...folders(home), ...lean, ...FREE_PORTS, ...more }
  const cwd = join(home, "work")
  layOut(cwd)
  let terminal: Promise<Screen> | undefined
  let is_serving = false

  /** Runs a command to its end and returns what it wrote. Throws where it failed. */
  async function run(command: string): Promise<string> {
    const place = { cwd, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" } as const
    const child = Bun.spawn(["bash", "-c", `${first}\n${command}`], place)
    const late = setTimeout(() => child.kill("SIGKILL"), NEVER_MS)
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
    const code = await child.exited
    clearTimeout(late)
    if (code !== 0) throw new Error(`${command}\nended with ${code}:\n${err}`)
    return out
  }

  /** The terminal: an interactive shell, so that Ctrl-C ends what runs in it and not the shell. */
  async function openTerminal(): Promise<Screen> {
    const own = { ...env, PS1: `${PROMPT} ` }
    // Behind `env`, since tmux sets some of its own.
    const words = ["env", ...Object.entries(own).map(([name, value]) => `${name}=${value}`)]
    const bash = [...words, "bash", "--norc", "--noprofile", "-i"]
    const opened = await openScreen(bash, { columns: 250, lines: 45, env: {} })
    await opened.shows(PROMPT)
    for (const line of [`cd ${cwd}`, first]) await opened.press(line, "Enter")
    return opened
  }

  /** Types a command that starts `up` into the terminal, and reads what it prints. */
  async function start(command: string): Promise<TypedUp> {
    terminal ??= openTerminal()
    const screen = await terminal
    for (const line of ["clear", ...command.split("\n")]) await screen.press(line, "Enter")
    is_serving = true
    const shown = await screen.shows("Ctrl-C stops")
    const told = (name: string) => new RegExp(`^ *${name} +(\\S+)`, "m").exec(shown)?.[1] ?? ""
    const url = told("API").replace(/\/v1$/, "")
    const api_key = told("API key")
    return {
      ...{ url, api_key, open_url: told("Open") },
      request: (path, init) => ask({ url, api_key }, path, init),
      async interrupt() {
        await screen.press("C-c")
        await screen.until("the prompt", isAtPrompt)
        is_serving = false
      },
    }
  }

  /** A server does not end with its terminal, so that a test that failed must end it, too. */
  const leave = async () => {
    const screen = await terminal
    if (is_serving) await screen?.press("C-c")
    if (is_serving) await screen?.until("the prompt", isAtPrompt)
    await screen?.[Symbol.asyncDispose]()
    rmSync(home, { recursive: true, force: true })
  }
  return { run, start, [Symbol.asyncDispose]: leave }
}

const PROMPT = "typed>"
const isAtPrompt = (text: string) => text.trimEnd().endsWith(PROMPT)

/** What somebody has after `git clone` and a first build: `install.sh` finds nothing left to do. */
function layOut(folder: string): void {
  copyFileSync(join(root, "install.sh"), join(folder, "install.sh"))
  const files = ["package.json", "bun.lock"]
  for (const name of [...files, "tsconfig.json", "src", "cli", "migrations", "docs"])
    symlinkSync(join(root, name), join(folder, name))
  for (const name of ["dist", "node_modules"]) mkdirSync(join(folder, name))
  const texts = Buffer.concat(files.map((name) => readFileSync(join(root, name))))
  const { stdout } = Bun.spawnSync(["cksum"], { stdin: texts })
  writeFileSync(join(folder, "node_modules/.belfry-stamp"), stdout)
  symlinkSync(binary, join(folder, "dist/belfry"))
  writeFileSync(join(folder, "dist/.built"), "")
}
