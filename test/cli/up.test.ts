import { expect, test } from "bun:test"
import { mkdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { readProfiles, saveProfile } from "../../cli/lib/profiles"
import { program } from "../harness/program"
import { belfry, environment, freshHome } from "./belfry"
import * as inProcess from "./lines"

interface Ready {
  url: string
  api_key: string
  project_id: string
  data_dir: string
  smtp: Record<string, number | null>
  setup_token: string
  open_url: string
}

/** `belfry up --json` in a home of its own; its first line, and the lines after it as they come. */
async function startUp(home: string, ...words: string[]) {
  const env = environment({ HOME: home })
  const port = words.includes("--port") ? [] : ["--port", "0"]
  const child = Bun.spawn([...program, "up", "--json", ...port, ...words], {
    env,
    stdout: "pipe",
    stderr: "inherit",
  })
  const lines = readLines(child.stdout)
  const first = await lines.next()
  const ready = JSON.parse(String(first.value)) as Ready
  const cli = (...rest: string[]) => inProcess.belfry(rest, { env })
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal)
    return await child.exited
  }
  const next = async () => JSON.parse(String((await lines.next()).value)) as Record<string, unknown>
  return { ready, cli, stop, next, [Symbol.asyncDispose]: async () => void (await stop("SIGKILL")) }
}

async function* readLines(stream: ReadableStream<Uint8Array>) {
  let unread = ""
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    const lines = (unread + decoder.decode(chunk, { stream: true })).split("\n")
    unread = lines.pop() ?? ""
    yield* lines
  }
}

test("from up to a delivered email, with no setting but the home", async () => {
  const home = freshHome()
  await using server = await startUp(home)
  const { ready, cli } = server
  expect(Object.keys(ready)).toEqual([
    "url",
    "api_key",
    "project_id",
    "data_dir",
    "smtp",
    "setup_token",
    "open_url",
  ])
  expect(ready.url).toMatch(/^http:\/\/(127\.0\.0\.1|localhost):\d+$/)
  expect(ready.data_dir).toBe(join(home, ".local/share/belfry-up"))
  const port = expect.any(Number)
  expect(ready.smtp).toEqual({ submission: port, inbound: port, mailbox: port })
  expect(statSync(join(home, ".config/belfry/profiles.json")).mode & 0o777).toBe(0o600)

  const words = ["emails", "send", "--from", "me@mailbox.test", "--to", "ann@mailbox.test"]
  const sent = await cli(
    ...words,
    "--subject",
    "Hi",
    "--text",
    "hello",
    "--wait",
    "--timeout",
    "9s",
  )
  expect([sent.exit, JSON.parse(sent.out).status]).toEqual([0, "delivered"])
  const { id } = JSON.parse(sent.out)

  const mail = await cli("mailbox", "wait", "--to", "ann@mailbox.test", "--timeout", "30s")
  expect(JSON.parse(mail.out)).toMatchObject({ email_id: id, subject: "Hi" })
  const statuses: unknown[] = []
  while (statuses.at(-1) !== "delivered") {
    const fact = await server.next()
    expect(fact).toMatchObject({ id, project_id: ready.project_id, channel: "email" })
    statuses.push(fact.status)
  }
  expect(statuses).toEqual(["queued", "sending", "sent", "delivered"])
  expect(await server.stop()).toBe(0)
})

/** What the page of a link posts, as a browser does. */
async function signInWith(link: string) {
  const { origin, hash } = new URL(link)
  const answer = await fetch(`${origin}/session/link`, {
    method: "POST",
    headers: { origin, "x-belfry-csrf": "1", "content-type": "application/json" },
    body: JSON.stringify({ code: hash.replace("#link=", "") }),
  })
  const { data } = (await answer.json()) as { data?: { access_token: string; project_id: string } }
  return { status: answer.status, data }
}

test("the link of up signs in once, and open prints another one while up runs", async () => {
  const home = freshHome()
  const first = await startUp(home)
  const { ready, cli } = first
  expect(ready.open_url).toStartWith(`${ready.url}/#link=belfry_link_`)
  const { status, data } = await signInWith(ready.open_url)
  expect([status, data?.project_id]).toEqual([200, ready.project_id])
  const headers = { authorization: `Bearer ${data?.access_token}` }
  const ask = () => fetch(`${ready.url}/v1/emails`, { headers }).then((answer) => answer.status)
  expect(await ask()).toBe(200)
  expect((await signInWith(ready.open_url)).status).toBe(401)

  const opened = await cli("open")
  const link = JSON.parse(opened.out)
  expect([opened.exit, link.expires_in]).toEqual([0, 600])
  expect((await signInWith(link.open_url)).status).toBe(200)
  const unused = JSON.parse((await cli("open", "--data-dir", ready.data_dir)).out)
  expect(await first.stop()).toBe(0)

  await using _second = await startUp(home, "--port", new URL(ready.url).port)
  expect([await ask(), (await signInWith(unused.open_url)).status]).toEqual([401, 401])
})

test("open says where no server runs, and that serve gives out no link", async () => {
  const home = freshHome()
  const env = environment({ HOME: home })
  const nowhere = await belfry(["open", "--data-dir", join(home, "none")], { env })
  expect([nowhere.exit, JSON.parse(nowhere.err).error.code]).toEqual([69, "unreachable"])
  const data_dir = join(home, "data")
  const words = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
  const set = ["--set", "mailbox.listen=127.0.0.1:0"]
  const child = Bun.spawn([...program, ...words, ...set], { env, stderr: "pipe" })
  for await (const line of readLines(child.stderr)) if (line.includes("no account yet")) break
  const refused = await belfry(["open", "--data-dir", data_dir], { env })
  expect([refused.exit, JSON.parse(refused.err).error.code]).toEqual([5, "conflict"])
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
})

test("a mail by SMTP goes the same way, and no port needs to be known", async () => {
  await using server = await startUp(freshHome())
  const addresses = ["--from", "me@mailbox.test", "--to", "kim@mailbox.test"]
  const sent = await server.cli("smtp", "test", ...addresses, "--subject", "By SMTP")
  const { outcome, reply, server: where } = JSON.parse(sent.out)
  expect([sent.exit, outcome]).toEqual([0, "accepted"])
  expect(where).toEndWith(`:${server.ready.smtp.submission}`)
  const [, id] = /^250 2\.0\.0 Ok: queued as ([0-9a-f-]{36})$/.exec(reply) ?? []
  const mail = await server.cli("mailbox", "wait", "--to", "kim@mailbox.test", "--timeout", "30s")
  expect(JSON.parse(mail.out)).toMatchObject({ email_id: id, subject: "By SMTP" })
})

test("a key made on the command line may do what it was made for, until it is revoked", async () => {
  await using server = await startUp(freshHome())
  const made = await server.cli("keys", "create", "--name", "CI {p}", "--scope", "email:read")
  const { id, key } = JSON.parse(made.out)
  const asKey = (...words: string[]) => server.cli(...words, "--api-key", key)
  expect((await asKey("emails", "list")).exit).toBe(0)
  const send = ["emails", "send", "--to", "a@mailbox.test", "--subject", "s", "--text", "t"]
  expect((await asKey(...send)).exit).toBe(4)
  expect((await server.cli("keys", "revoke", id, "--yes")).exit).toBe(0)
  expect((await asKey("emails", "list")).exit).toBe(4)
})

test("the same folder gives the same key, and --new-key another that ends the first", async () => {
  const home = freshHome()
  const keys: string[] = []
  for (const words of [[], [], ["--new-key"]]) {
    await using server = await startUp(home, ...words)
    keys.push(server.ready.api_key)
    if (words.length > 0) {
      const old = await server.cli("emails", "list", "--api-key", keys[0] ?? "")
      expect(old.exit).toBe(4)
      expect((await server.cli("emails", "list")).exit).toBe(0)
    }
    expect(await server.stop("SIGINT")).toBe(0)
  }
  expect(keys[1]).toBe(keys[0] ?? "")
  expect(keys[2]).not.toBe(keys[0])
})

test("a folder that another process holds is 74, and names the holder", async () => {
  const home = freshHome()
  await using _server = await startUp(home)
  const env = environment({ HOME: home })
  const second = await belfry(["up", "--json", "--port", "0"], { env })
  expect(second.exit).toBe(74)
  expect(second.err).toMatch(/pid|process \d+/)
})

test("a second up borrows the profile, and gives it back to the first while that runs", async () => {
  const home = freshHome()
  const path = join(home, ".config/belfry/profiles.json")
  const local = () => readProfiles(path).profiles.local?.url
  await using first = await startUp(home)
  await using second = await startUp(home, "--data-dir", join(home, "second"))
  await using third = await startUp(home, "--data-dir", join(home, "third"))
  expect(local()).toBe(third.ready.url)
  await second.stop()
  expect(local()).toBe(third.ready.url)
  await third.stop()
  expect(local()).toBe(first.ready.url)
  expect((await first.cli("emails", "list")).exit).toBe(0)
  await first.stop()
  expect(readProfiles(path)).toEqual({ current: null, profiles: {}, hidden: [] })
})

test("a profile of somewhere else named local comes back, and one that is dead does not", async () => {
  const home = freshHome()
  const path = join(home, ".config/belfry/profiles.json")
  const [remote, dead] = ["https://mail.example.test", "http://127.0.0.1:1"]
  saveProfile(path, "local", { url: remote, api_key: null })
  const killed = await startUp(home)
  await killed.stop("SIGKILL")
  saveProfile(path, "local", { url: dead, api_key: null })
  await using server = await startUp(home)
  await server.stop()
  expect(readProfiles(path).profiles.local?.url).toBe(remote)
})

test("up says that it could not keep its profile, and runs", async () => {
  const home = freshHome()
  const path = join(home, ".config/belfry/profiles.json")
  mkdirSync(path, { recursive: true })
  const child = Bun.spawn([...program, "up", "--port", "0"], {
    env: environment({ HOME: home }),
    stderr: "pipe",
  })
  const first = await readLines(child.stdout).next()
  expect(JSON.parse(String(first.value)).url).toStartWith("http://") // JSON, as in every pipe
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
  expect(await child.stderr.text()).toContain(`The profile \\"local\\" was not stored: ${path}`)
})

test("serve says when its domains' records would name what others cannot resolve", async () => {
  const data_dir = join(freshHome(), "data")
  const words = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
  const set = ["--set", "mailbox.listen=127.0.0.1:0", "--set", "domains.host=vm"]
  const child = Bun.spawn([...program, ...words, ...set], {
    env: environment(),
    stderr: "pipe",
  })
  const told: object[] = []
  for await (const line of readLines(child.stderr)) {
    told.push(JSON.parse(line))
    if (line.includes("no account yet")) break
  }
  const message = expect.stringContaining("set domains.host")
  expect(told).toContainEqual(expect.objectContaining({ level: "warn", message, host: "vm" }))
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
})

test("serve without an account says how to make one", async () => {
  const data_dir = join(freshHome(), "data")
  const words = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]
  const set = ["--set", "mailbox.listen=127.0.0.1:0"]
  const child = Bun.spawn([...program, ...words, ...set], {
    env: environment(),
    stderr: "pipe",
  })
  for await (const line of readLines(child.stderr)) {
    if (!line.includes("no account yet")) continue
    const init = `belfry init --data-dir ${data_dir} --set mailbox.listen=127.0.0.1:0`
    expect(JSON.parse(line)).toMatchObject({ level: "warn", next: init })
    break
  }
  child.kill("SIGTERM")
  expect(await child.exited).toBe(0)
})

const PASSWORD = "Correct-Horse-7"

/** Becomes the owner of a fresh `up`, and is signed in then. */
function becomeOwner(home: string, { ready }: Awaited<ReturnType<typeof startUp>>) {
  const token = ["--setup-token", ready.setup_token]
  const words = ["setup", ready.url, ...token, "--email", "ann@mailbox.test", "--password-stdin"]
  return belfry(words, { env: environment({ HOME: home }), stdin: PASSWORD })
}

test("the owner's sign-in outlives up, and counts again when up runs on the same folder", async () => {
  const home = freshHome()
  const local = () => readProfiles(join(home, ".config/belfry/profiles.json")).profiles.local
  await using first = await startUp(home)
  expect((await becomeOwner(home, first)).exit).toBe(0)
  await first.stop()
  expect(local()?.session?.email).toBe("ann@mailbox.test")
  const silent = await first.cli("whoami")
  expect([silent.exit, JSON.parse(silent.err).error.code]).toEqual([69, "unreachable"])

  await using second = await startUp(home) // on another port
  const who = await second.cli("whoami", "--json=user.email,url")
  expect(JSON.parse(who.out)).toEqual({ "user.email": "ann@mailbox.test", url: second.ready.url })
})

test("a sign-in does not follow to another data folder, and is back for its own", async () => {
  const home = freshHome()
  await using first = await startUp(home)
  expect((await becomeOwner(home, first)).exit).toBe(0)
  await first.stop()
  await using other = await startUp(home, "--data-dir", join(home, "other"))
  expect(JSON.parse((await other.cli("whoami")).out).kind).toBe("key")
  await using again = await startUp(home)
  expect(JSON.parse((await again.cli("whoami")).out).kind).toBe("user")
  await again.stop()
  expect(JSON.parse((await other.cli("whoami")).out).kind).toBe("key")
  await other.stop()
  await using third = await startUp(home)
  expect(JSON.parse((await third.cli("whoami")).out).kind).toBe("user")
})

test("a follower that is signed in comes back after up was started anew", async () => {
  const home = freshHome()
  await using first = await startUp(home)
  expect((await becomeOwner(home, first)).exit).toBe(0)
  const port = new URL(first.ready.url).port
  const words = ["events", "tail", "--limit", "2", "--timeout", "60s", "--json"]
  const tail = Bun.spawn([...program, ...words], {
    env: environment({ HOME: home }),
    stdout: "pipe",
    stderr: "pipe",
  })
  const lines = readLines(tail.stdout)
  const typeOf = async () => JSON.parse(String((await lines.next()).value)).type
  const told = typeOf()
  const trigger = ({ cli }: typeof first) => cli("trigger", "email.bounced")
  while (!(await Promise.race([told, trigger(first).then(() => undefined)]))) {}
  expect(await told).toBe("email.bounced")
  await first.stop()

  await using second = await startUp(home, "--port", port)
  const next = typeOf()
  while (!(await Promise.race([next, trigger(second).then(() => Bun.sleep(200))]))) {}
  expect(await next).toBe("email.bounced")
  expect(await tail.exited).toBe(0)
})
