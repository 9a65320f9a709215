import { expect, test } from "bun:test"
import { rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { makeHome, runBinary, startBelfry } from "../harness/binary"
import { lean } from "./serve"

const USAGE = 2
const UNREACHABLE = 69
const IO = 74

function home(files: Record<string, string> = {}) {
  const path = makeHome()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, "work", name), text)
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const errorOf = (stderr: string) => JSON.parse(stderr).error as { code: string; message: string }

const starts = [
  ["up", "--json", "--port", "0"],
  ["serve", "--json", "--listen", "127.0.0.1:0"],
]

for (const words of starts) {
  test(`${words[0]}: an unknown key of the file stops the start, naming the nearest`, async () => {
    using at = home({ "belfry.toml": '[http]\nlissten = "127.0.0.1:0"\n' })
    const ended = await runBinary([...words, "--config", "belfry.toml"], { home: at.path })
    expect(ended).toMatchObject({ code: USAGE, stdout: "" })
    expect(errorOf(ended.stderr).code).toBe("invalid_configuration")
    expect(errorOf(ended.stderr).message).toContain("http.lissten")
    expect(errorOf(ended.stderr).message).toContain("http.listen")
  })

  test(`${words[0]}: an unknown variable stops the start, naming the nearest`, async () => {
    const env = { BELFRY_DELIVERY_PROVIDR: "smtp", BELFRY_LOG_LEVEL: "loud" }
    const ended = await runBinary(words, { env })
    expect(ended).toMatchObject({ code: USAGE, stdout: "" })
    const { message } = errorOf(ended.stderr)
    expect(message).toContain("BELFRY_DELIVERY_PROVIDR")
    expect(message).toContain("BELFRY_DELIVERY_PROVIDER")
    expect(message).toContain("log.level") // every fault at once
  })
}

test("settings that contradict each other stop the start", async () => {
  const smtp = await runBinary(["up", "--json"], { env: { BELFRY_DELIVERY_PROVIDER: "smtp" } })
  expect(smtp).toMatchObject({ code: USAGE, stdout: "" })
  expect(errorOf(smtp.stderr).message).toContain("providers.smtp.host")
  const mailbox = await runBinary(["up", "--json"], { env: { BELFRY_MAILBOX_ENABLED: "false" } })
  expect(mailbox).toMatchObject({ code: USAGE, stdout: "" })
  expect(errorOf(mailbox.stderr).message).toContain("mailbox.enabled")
})

test("flags win over the environment, that over the file, that over the default", async () => {
  using at = home({ "belfry.toml": '[log]\nlevel = "error"\n[delivery]\nconcurrency = 3\n' })
  const explain = async (key: string, env: Record<string, string> = {}) => {
    const words = ["config", "explain", key, "--config", "belfry.toml"]
    const { stdout } = await runBinary(words, { home: at.path, env })
    return JSON.parse(stdout) as { value: unknown; source: string; default: unknown; about: string }
  }
  expect(await explain("log.level")).toMatchObject({ value: "error", default: "info" })
  const env = { BELFRY_LOG_LEVEL: "debug" }
  const told = await explain("log.level", env)
  expect(told.value).toBe("debug")
  expect(told.source).toContain("BELFRY_LOG_LEVEL")
  expect(told.about).not.toBe("")
  expect((await explain("delivery.concurrency", env)).source).toContain("belfry.toml")
  expect(await explain("delivery.lease")).toMatchObject({ value: "30s", source: "default" })

  const unknown = await runBinary(["config", "explain", "log.lvel"])
  expect(unknown.code).toBe(USAGE)
  expect(errorOf(unknown.stderr).message).toContain("log.level")
})

test("a stray .env or bunfig.toml beside the binary sets nothing", async () => {
  using at = home({
    ".env": "BELFRY_LOG_LEVEL=error\nBELFRY_NONSENSE=1\n",
    "bunfig.toml": 'preload = ["./evil.ts"]\n',
  })
  const words = ["config", "explain", "log.level"]
  const { code, stdout } = await runBinary(words, { home: at.path })
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ value: "info", source: "default" })
})

test("a secret comes from a file, and is never shown", async () => {
  using at = home({ password: "canary-77aa\n" })
  const env = { BELFRY_PROVIDERS_SMTP_PASSWORD_FILE: "password" }
  const shown = await runBinary(["config", "show"], { home: at.path, env })
  expect(shown.code).toBe(0)
  expect(shown.stdout).toContain("providers.smtp.password")
  expect(shown.stdout).not.toContain("canary-77aa")
})

/** Somebody else on a port of the loopback. */
async function occupied() {
  const server = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  const { port } = server.address() as { port: number }
  return { port, [Symbol.dispose]: () => void server.close() }
}

test("a port by flag that is taken ends the start with 69, naming it", async () => {
  using other = await occupied()
  const up = await runBinary(["up", "--json", "--port", String(other.port)], { env: lean })
  expect(up).toMatchObject({ code: UNREACHABLE, stdout: "" })
  expect(errorOf(up.stderr).message).toContain(`127.0.0.1:${other.port}`)

  const words = ["serve", "--listen", `127.0.0.1:${other.port}`]
  const serve = await runBinary(words, { env: { ...lean, BELFRY_MAILBOX_LISTEN: "127.0.0.1:0" } })
  expect(serve.code).toBe(UNREACHABLE)
  expect(serve.stderr).toContain(String(other.port))
})

test("--port 0 takes a free one, so two run side by side", async () => {
  await using one = await startBelfry({ env: lean })
  await using two = await startBelfry({ env: lean })
  expect(one.url).not.toBe(two.url)
  expect(one.smtp.mailbox).not.toBe(two.smtp.mailbox)
  expect((await one.request("/readyz")).status).toBe(200)
  expect((await two.request("/readyz")).status).toBe(200)
})

test("a data folder that cannot be made is told with exit 74", async () => {
  using at = home({ file: "no folder" })
  const words = ["up", "--json", "--port", "0", "--data-dir", "file/below"]
  const ended = await runBinary(words, { home: at.path, env: lean })
  expect(ended).toMatchObject({ code: IO, stdout: "" })
})
