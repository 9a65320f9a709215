import { expect, test } from "bun:test"
import { copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isReplaced, programOf, serverOf, stopProcess } from "../../cli/local/server-process"
import { leftover } from "../harness/leftovers"

test("a process knows that another program took the path that it was started from", async () => {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-replaced-")))
  const [program, next] = [join(folder, "program"), join(folder, "next")]
  for (const path of [program, next]) copyFileSync("/bin/sleep", path)
  const child = Bun.spawn([program, "60"])
  try {
    const running = `/proc/${child.pid}/exe`
    const path = programOf(child.pid) ?? ""
    expect([path, isReplaced(path, running)]).toEqual([program, false])
    renameSync(next, program)
    expect([programOf(child.pid), isReplaced(program, running)]).toEqual([program, true])
    expect(isReplaced(`${program} (deleted)`, running)).toBe(true)
    rmSync(program)
    expect(isReplaced(program, running)).toBe(false)
    expect(isReplaced()).toBe(false)
  } finally {
    child.kill("SIGKILL")
    await child.exited
  }
})

test("the server of a folder is found by any path to it, also where it was started with a relative one", async () => {
  const parent = leftover(mkdtempSync(join(tmpdir(), "belfry-server-")))
  const folder = join(parent, "data")
  mkdirSync(folder)
  symlinkSync(folder, join(parent, "link"))
  const listen =
    "require('node:net').createServer().listen(process.argv[1], () => console.log('on'))"
  for (const path of [join(folder, "admin.sock"), "link/admin.sock", "./data/admin.sock"]) {
    const child = Bun.spawn([process.execPath, "-e", listen, path], { cwd: parent, stdout: "pipe" })
    try {
      await child.stdout.getReader().read()
      for (const name of ["data", "link", "data/../link/"])
        expect([path, name, serverOf(join(parent, name))?.pid]).toEqual([path, name, child.pid])
      expect(serverOf(parent)).toBeUndefined()
      expect(serverOf(join(parent, "missing"))).toBeUndefined()
    } finally {
      child.kill("SIGKILL")
      await child.exited
      rmSync(join(folder, "admin.sock"), { force: true })
    }
  }
})

test("a server is started again without what only its first start was asked to do", async () => {
  const folder = leftover(mkdtempSync(join(tmpdir(), "belfry-words-")))
  const socket = join(folder, "admin.sock")
  const listen = `require('node:net').createServer().listen("${socket}", () => console.log('on'))`
  const asked = ["serve", "--hold", "--new", "--data-dir", folder, "--new-key", "--json"]
  const child = Bun.spawn([process.execPath, "-e", listen, ...asked], { stdout: "pipe" })
  try {
    await child.stdout.getReader().read()
    const words = ["-e", listen, "serve", "--data-dir", folder, "--json"]
    expect(serverOf(folder)).toMatchObject({ pid: child.pid, words })
  } finally {
    child.kill("SIGKILL")
    await child.exited
  }
})

test("a process that does not stop is killed in time, also where the clock is set back", async () => {
  const stubborn = "process.on('SIGTERM', () => {}); console.log('on'); setInterval(() => {}, 1000)"
  const child = Bun.spawn([process.execPath, "-e", stubborn], { stdout: "pipe" })
  const { now } = Date
  try {
    await child.stdout.getReader().read()
    const stopped = stopProcess(child.pid, 100)
    Date.now = () => now() - 3_600_000
    const ended = await Promise.race([stopped.then(() => "killed"), Bun.sleep(5000)])
    expect(ended).toBe("killed")
  } finally {
    Date.now = now
    child.kill("SIGKILL")
    await child.exited
  }
})
