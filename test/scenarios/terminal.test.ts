import { expect, test } from "bun:test"
import { readFileSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import { type Belfry, binary, makeHome, runBinary, startBelfry } from "../harness/binary"
import { note } from "../harness/peers"
import { reaches, send, until } from "./mails"
import { lean } from "./serve"

/** A command of the binary on a pseudo terminal of 120 columns. */
async function onTerminal(server: Belfry, words: string[], env: Record<string, string> = {}) {
  let screen = ""
  const decoder = new TextDecoder()
  const all = Promise.withResolvers<void>()
  const child = Bun.spawn([binary, ...words], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: server.home,
      XDG_CONFIG_HOME: `${server.home}/config`,
      TERM: "xterm-256color",
      ...env,
    },
    terminal: {
      cols: 120,
      rows: 40,
      data(_, bytes) {
        screen += decoder.decode(bytes, { stream: true })
      },
      exit: () => all.resolve(),
    },
  })
  const code = await child.exited
  await all.promise // what the terminal still held
  child.terminal?.close()
  return { code, screen: screen.replaceAll("\r\n", "\n") }
}

const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/

/** Hands a mail with terminal commands in its subject to the embedded mailbox. */
async function sendHostile(port: number) {
  const said: string[] = []
  const socket = connect(port, "127.0.0.1")
  socket.on("data", (chunk) => said.push(chunk.toString()))
  const answered = (count: number) =>
    until("an answer", () => said.join("").split("\n").length > count)
  await answered(1)
  const subject = "Hi \u001b[2J\u001b]0;owned\u0007\u009b31m there"
  const lines = [
    "HELO evil.test",
    "MAIL FROM:<eve@example.test>",
    "RCPT TO:<ann@mailbox.test>",
    "DATA",
    `From: Eve <eve@example.test>\r\nSubject: ${subject}\r\n\r\n\u001b[31mred\u0007\r\n.`,
    "QUIT",
  ]
  for (const [index, line] of lines.entries()) {
    socket.write(`${line}\r\n`)
    await answered(index + 2)
  }
  socket.destroy()
  expect(said.join("")).toContain("250 2.6.0")
}

test("on a terminal a list is a table, and in a pipe it is JSON", async () => {
  await using server = await startBelfry({ env: lean })
  const id = await send(server, { to: "Ann <ann@mailbox.test>", subject: "Your receipt" })
  await reaches(server, id, "delivered")

  const { code, screen } = await onTerminal(server, ["emails", "list"], { NO_COLOR: "1" })
  expect(code).toBe(0)
  expect(screen).not.toMatch(CONTROL)
  const [head = "", row = ""] = screen.split("\n")
  expect(head.split(/\s+/)).toEqual(expect.arrayContaining(["ID", "TO", "SUBJECT", "STATUS"]))
  for (const word of [id.slice(-8), "ann@mailbox.test", "Your receipt", "delivered"]) {
    expect(row).toContain(word)
  }
  expect(screen).toContain("→ belfry") // one next step
  expect((await onTerminal(server, ["emails", "list"])).screen).toContain("\u001b[") // in colour

  const piped = await server.cli("emails", "list")
  const [listed] = JSON.parse(piped.stdout) as { id: string }[]
  expect(listed?.id).toBe(id)
})

const no_curl = Bun.which("curl") === null
if (no_curl) note("the curl that `up` shows: needs curl")

test.skipIf(no_curl)("`up` shows a curl that, pasted, shows the way of its message", async () => {
  const home = makeHome()
  let screen = ""
  const decoder = new TextDecoder()
  const child = Bun.spawn([binary, "up", "--port", "0"], {
    env: { PATH: process.env.PATH ?? "", HOME: home, TERM: "xterm", NO_COLOR: "1", ...lean },
    terminal: {
      cols: 200,
      rows: 40,
      data(_, bytes) {
        screen += decoder.decode(bytes, { stream: true })
      },
    },
  })
  try {
    const curl = await until("the curl", () => /Try: +(curl[\s\S]+?'\{.+\}')/.exec(screen)?.[1])
    const pasted = Bun.spawnSync(["sh", "-c", curl.replaceAll("\r\n", "\n")])
    const { id } = JSON.parse(pasted.stdout.toString()) as { id: string }
    // One line, or several where a step took so long that `up` told of the one before.
    const lines = () => screen.split("\r\n").filter((line) => line.includes(` ${id.slice(-8)} `))
    const step = /\b(queued|sending|sent|delivered)\b/g
    const steps = (): string[] => lines().join().match(step) ?? []
    await until("the way of the message", () => steps().includes("delivered"))
    expect(steps()).toEqual(["queued", "sending", "sent", "delivered"])
    for (const line of lines()) expect(line).toContain("ann@mailbox.test")
    child.terminal?.write("\u0003") // Ctrl-C
    expect(await child.exited).toBe(0)
  } finally {
    child.kill("SIGKILL")
    await child.exited
    rmSync(home, { recursive: true, force: true })
  }
})

test("what strangers write cannot command the terminal", async () => {
  await using server = await startBelfry({ env: lean })
  await sendHostile(server.smtp.mailbox ?? 0)
  const { stdout } = await server.cli("mailbox", "list")
  const [mail] = JSON.parse(stdout) as { id: string; subject: string }[]
  expect(mail?.subject).toContain("there")
  for (const words of [
    ["mailbox", "list"],
    ["mailbox", "get", mail?.id ?? ""],
    ["mailbox", "wait", "--to", "ann@mailbox.test"],
  ]) {
    const { code, screen } = await onTerminal(server, words, { NO_COLOR: "1" })
    expect({ words, code }).toEqual({ words, code: 0 })
    expect(screen).toContain("there")
    expect(screen).not.toMatch(CONTROL)
  }
})

test("errors are the API's body on stderr, each with its exit code", async () => {
  await using server = await startBelfry({ env: lean })
  const nowhere = "http://127.0.0.1:1"
  const nobody = "0199a1c2-0000-7000-8000-000000000001"
  const send_words = ["emails", "send", "--from", "me@mailbox.test", "--subject", "Hi"]
  const cases: [string[], number, string][] = [
    [["emails", "get", nobody], 3, "not_found"],
    [["emails", "list", "--api-key", "svc_live_wrong"], 4, "unauthorized"],
    [
      [...send_words, "--to", "ann@mailbox.test", "--text", "x", "--header", "From: x"],
      7,
      "validation_error",
    ],
    [[...send_words, "--to", "nobody", "--text", "x"], 7, "invalid_email"],
    [["emails", "nonsense"], 2, "usage"],
    [["emails", "list", "--url", nowhere, "--api-key", "svc_live_x"], 69, "unreachable"],
    [["mailbox", "wait", "--to", "never@mailbox.test", "--timeout", "3s"], 1, "timeout"],
    [["mailbox", "clear"], 2, "unconfirmed"],
  ]
  for (const [words, exit, error_code] of cases) {
    const { code, stdout, stderr } = await server.cli(...words)
    expect({ words, code, stdout }).toEqual({ words, code: exit, stdout: "" })
    expect(stderr.trimEnd().split("\n")).toHaveLength(1)
    const { error } = JSON.parse(stderr)
    expect({ words, code: error.code }).toEqual({ words, code: error_code })
    expect(error.message).not.toBe("")
  }
  const shown = await onTerminal(server, ["emails", "get", nobody], { NO_COLOR: "1" })
  expect(shown.code).toBe(3)
  expect(shown.screen).toStartWith("✗ ")
})

test("every command has help with an example", async () => {
  const { code, stdout } = await runBinary(["--help"])
  expect(code).toBe(0)
  expect(stdout).toContain("Example")
  for (const words of [["up"], ["serve"], ["emails", "send"], ["mailbox", "wait"], ["migrate"]]) {
    const help = await runBinary([...words, "--help"])
    expect({ words, code: help.code, stderr: help.stderr }).toEqual({ words, code: 0, stderr: "" })
    expect(help.stdout).toContain(`$ belfry ${words.join(" ")}`)
  }
})

test.skipIf(!Bun.which("jq"))("the CI job of the README runs as it is printed", async () => {
  const readme = readFileSync(join(import.meta.dir, "../../README.md"), "utf8")
  const [, job = ""] = /## In a CI job\n\n```sh\n([\s\S]+?)```/.exec(readme) ?? []
  expect(job).toContain("mailbox wait")
  const home = makeHome()
  try {
    const built = job.replace("./install.sh\n", "").replace("$PWD/dist", dirname(binary))
    const child = Bun.spawn(["sh", "-euc", built], {
      cwd: join(home, "work"),
      env: { PATH: process.env.PATH ?? "", HOME: home, TMPDIR: join(home, "tmp"), ...lean },
      stdout: "pipe",
      stderr: "pipe",
    })
    const [out, err, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ])
    expect({ code, err }).toEqual({ code: 0, err: "" })
    expect(JSON.parse(out.trim().split("\n").at(-1) ?? "").subject).toBe("Receipt")
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
})

test("output that is lost is 74, in every form", async () => {
  await using server = await startBelfry({ env: lean })
  for (const words of ["emails list", "status --json", "--help", "--version"]) {
    const child = Bun.spawn(["sh", "-c", `${binary} ${words} > /dev/full`], {
      env: { PATH: process.env.PATH ?? "", XDG_CONFIG_HOME: join(server.home, "config") },
      stderr: "pipe",
    })
    const [err, code] = await Promise.all([child.stderr.text(), child.exited])
    expect({ words, code }).toEqual({ words, code: 74 })
    expect(err).toContain("ENOSPC")
  }
})
