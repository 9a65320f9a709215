import { describe, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { locate, missing, type Peer } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { NEVER_MS } from "../harness/waits"
import { pageLines, rowsOnScreen } from "./subjects"

const SUBJECTS = sizes.subjects
const COLUMNS = 100

/** A terminal that runs the drawing program. What it shows is read as text, one string a line. */
interface Drawn {
  lines: number
  read(): string[]
  /** What a character of a line is read as, where the terminal does not tell all of it. */
  narrow?(text: string): string
  end(): Promise<void>
}

const program = (folder: string, lines: number) => [
  ...[process.execPath, join(import.meta.dir, "draw-subjects.ts")],
  ...[folder, String(COLUMNS), String(lines)],
]

const env = { PATH: process.env.PATH ?? "", LC_ALL: "C.UTF-8", LANG: "C.UTF-8" }

function run(cmd: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync({ cmd, env })
  if (exitCode !== 0) throw new Error(`${cmd.join(" ")}: ${stdout}${stderr}`)
  return stdout.toString()
}

const linesOf = (text: string) => text.split("\n").map((line) => line.trimEnd())

function onTmux(folder: string): Drawn {
  const lines = 120
  const tmux = (...words: string[]) =>
    run([locate("tmux") ?? "tmux", "-S", join(folder, "tmux"), "-f", "/dev/null", ...words])
  const size = ["-x", String(COLUMNS), "-y", String(lines)]
  tmux("new-session", "-d", ...size, ...program(folder, lines))
  return {
    lines,
    read: () => linesOf(tmux("capture-pane", "-p")),
    end: async () => endTmux(folder),
  }
}

/** It is gone already where its only window has ended. */
function endTmux(folder: string) {
  Bun.spawnSync({
    cmd: [locate("tmux") ?? "tmux", "-S", join(folder, "tmux"), "kill-server"],
    env,
  })
}

/** GNU screen gives a window the size of its terminal: here that of a window of tmux. */
function onScreen(folder: string): Drawn {
  const lines = 120
  const outer = (...words: string[]) =>
    run([locate("tmux") ?? "tmux", "-S", join(folder, "tmux"), "-f", "/dev/null", ...words])
  /** Fails while the session begins, and then writes no copy. */
  const inner = (...words: string[]) =>
    Bun.spawnSync({
      cmd: ["screen", "-S", "drawing", "-p", "0", "-X", ...words],
      env: { ...env, SCREENDIR: folder },
    })
  const rc = join(folder, "screenrc")
  writeFileSync(rc, "startup_message off\ndefutf8 on\naltscreen on\n")
  const size = ["-x", String(COLUMNS), "-y", String(lines)]
  const words = ["screen", "-U", "-c", rc, "-S", "drawing", ...program(folder, lines)]
  outer("new-session", "-d", ...size, "env", `SCREENDIR=${folder}`, ...words)
  const copy = join(folder, "hardcopy")
  return {
    lines,
    // One byte a cell, the lowest of its character, and a line break behind each line.
    narrow: (text) => [...text].map((one) => String.fromCharCode(one.charCodeAt(0) & 255)).join(""),
    read() {
      rmSync(copy, { force: true })
      inner("hardcopy", copy)
      for (let n = 0; n < 20 && !existsSync(copy); n++) Bun.sleepSync(10)
      const text = existsSync(copy) ? readFileSync(copy, "latin1") : ""
      const stride = COLUMNS + 1
      return Array.from({ length: lines }, (_, at) =>
        text.slice(at * stride, (at + 1) * stride - 1),
      )
    },
    async end() {
      inner("quit")
      endTmux(folder)
    },
  }
}

/** xterm gives its screen to a printer command each time it is asked to, as text. */
async function onXterm(folder: string): Promise<Drawn> {
  const lines = 60
  const page = join(folder, "printed")
  const server = Bun.spawn({
    cmd: ["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1200x24", "-nolisten", "tcp"],
    env,
    stdout: "pipe",
    stderr: "ignore",
  })
  const reader = server.stdout.getReader()
  const number = new TextDecoder().decode((await reader.read()).value).trim()
  const resource = (name: string, value: string) => ["-xrm", `XTerm*${name}: ${value}`]
  const terminal = Bun.spawn({
    cmd: [
      ...["xterm", "-u8", "-geometry", `${COLUMNS}x${lines}`, "-fn", "fixed"],
      ...resource("printerCommand", `cat > ${page}.$$; mv ${page}.$$ ${page}`),
      ...resource("printerAutoClose", "true"),
      ...resource("printAttributes", "0"),
      ...["-e", ...program(folder, lines)],
    ],
    env: { ...env, DISPLAY: `:${number}` },
    stdout: "ignore",
    stderr: "ignore",
  })
  return {
    lines,
    read: () => (existsSync(page) ? linesOf(readFileSync(page, "utf8")) : []),
    async end() {
      terminal.kill()
      await terminal.exited
      server.kill()
      await server.exited
    },
  }
}

/** What must stand in its place whatever the texts are: the frame, the times, and all behind SUBJECT. */
function placesOf(page: number, { lines, narrow = (text) => text }: Drawn): RegExp[] {
  return pageLines(page, COLUMNS, lines).map((drawn, at) => {
    const line = narrow(Bun.stripANSI(drawn))
    const is_row = at > 2 && at < lines - 2
    if (!is_row) return new RegExp(`^${RegExp.escape(line)}$`)
    // Behind the time a mark may combine with the gap. STATUS, TRY and AGE take 30 cells, the border two.
    return new RegExp(
      `^${RegExp.escape(line.slice(0, 12))}.*${RegExp.escape(line.slice(-32))}$`,
      "su",
    )
  })
}

async function expectAllInPlace(open: (folder: string) => Drawn | Promise<Drawn>) {
  const folder = mkdtempSync(join(tmpdir(), "belfry-drawing-"))
  const terminal = await open(folder)
  try {
    const { lines } = terminal
    for (let page = 0; page * rowsOnScreen(lines) < SUBJECTS; page++) {
      writeFileSync(join(folder, "wanted"), String(page))
      const places = placesOf(page, terminal)
      const wrong = await settled(terminal, places)
      expect({ page, wrong }).toEqual({ page, wrong: [] })
    }
    writeFileSync(join(folder, "wanted"), "end")
  } finally {
    await terminal.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What is not in its place once the terminal has drawn the page; it is given time to do so. */
async function settled(terminal: Drawn, places: RegExp[]): Promise<string[]> {
  const deadline = performance.now() + NEVER_MS
  for (;;) {
    const seen = terminal.read()
    const wrong = places.flatMap((place, at) => {
      const line = seen[at] ?? ""
      return place.test(line) ? [] : [`${at}: ${JSON.stringify(line)}`]
    })
    if (wrong.length === 0 || performance.now() > deadline) return wrong
    await Bun.sleep(10)
  }
}

describe(`${SUBJECTS} random subjects leave everything in its place`, () => {
  const terminals: [string, Peer[], (folder: string) => Drawn | Promise<Drawn>][] = [
    ["tmux", ["tmux"], onTmux],
    ["screen", ["screen", "tmux"], onScreen],
    ["xterm", ["xterm", "Xvfb"], onXterm],
  ]
  for (const [name, peers, open] of terminals.slice(0, sizes.variants)) {
    test.skipIf(missing(...peers))(`on ${name}`, () => expectAllInPlace(open))
  }
})
