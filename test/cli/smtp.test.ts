import { afterAll, beforeAll, expect, spyOn, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTransport } from "nodemailer"
import { log } from "../../src/core/log"
import { selfSigned } from "../fakes/smtp-certificate"
import { missing } from "../harness/peers"
import { openTestMailServer } from "../smtp/open-mail-server"
import { belfry } from "./lines"

const KEY = "right" // what the test server takes for a password
const quiet = spyOn(log, "info").mockImplementation(() => {})
const folder = mkdtempSync(join(tmpdir(), "belfry-smtp-"))
let server: Awaited<ReturnType<typeof openTestMailServer>>

beforeAll(async () => {
  const implicit = { host: "127.0.0.1", port: 0 }
  server = await openTestMailServer({ implicit, pair: selfSigned("localhost") })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  quiet.mockRestore()
  rmSync(folder, { recursive: true })
})

const at = (port = server.server.port) => `127.0.0.1:${port}`
const env = { BELFRY_API_KEY: KEY, BELFRY_URL: "http://localhost:8080" }
const mail = ["--from", "me@example.test", "--to", "ann@example.test"]

async function tested(words: string[], given = {}) {
  const { exit, out, err } = await belfry(["smtp", "test", ...words], { env, ...given })
  return { exit, result: out && JSON.parse(out), err, out }
}

test("smtp test holds a whole dialogue, and shows no password", async () => {
  const { exit, result, out } = await tested([at(), ...mail, "--subject", "Grüße"])
  expect(exit).toBe(0)
  expect(result).toMatchObject({
    server: at(),
    outcome: "accepted",
    refused_at: null,
    reply: expect.stringContaining("queued as"),
    tls: { certificate: { subject: "CN=localhost", trusted: false } },
  })
  const phases = result.steps.map(({ phase }: { phase: string }) => phase)
  const before = ["greeting", "EHLO", "STARTTLS", "EHLO", "AUTH"]
  expect(phases).toEqual([...before, "MAIL", "RCPT", "DATA", "message", "QUIT"])
  expect(result.extensions).toContain("AUTH PLAIN LOGIN")
  expect(out).not.toContain(Buffer.from(`\0svc\0${KEY}`).toString("base64"))
  const received = Buffer.from(server.mails.at(-1)?.raw ?? []).toString()
  expect(received).toContain(`Subject: =?utf-8?B?${Buffer.from("Grüße").toString("base64")}?=`)
})

test("a person reads along, with times and the certificate", async () => {
  const { exit, out } = await belfry(["smtp", "test", at(), "--output", "table"], { env })
  expect(exit).toBe(0)
  expect(out).toContain("→ AUTH PLAIN ********")
  expect(out).toMatch(/← 235 2\.7\.0 .* \d+ ms/)
  expect(out).toContain("certificate of CN=localhost")
  expect(out).toContain("the server is ready")
})

test("port 465 and --tls implicit begin with TLS", async () => {
  const words = [at(server.server.implicit_port ?? 0), "--tls", "implicit", ...mail]
  const { exit, result } = await tested(words)
  expect([exit, result.outcome]).toEqual([0, "accepted"])
  const wrong = await tested([at(), "--tls", "implicit"])
  expect(wrong.exit).toBe(69)
})

test("each refusal has its exit code", async () => {
  const login = await tested([at(), "--password-stdin"], { stdin: "wrong\n" })
  expect([login.exit, login.result.refused_at]).toEqual([4, "AUTH"])
  const nobody = ["--from", "me@example.test", "--to", "nobody@example.test"]
  const recipient = await tested([at(), ...nobody])
  expect([recipient.exit, recipient.result.refused_at]).toEqual([1, "RCPT"])
  expect(recipient.result.reply).toStartWith("550 5.1.1 ")
  const anonymous = await tested([at(), "--no-login", ...mail])
  expect([anonymous.exit, anonymous.result.refused_at]).toEqual([4, "MAIL"])
  const gone = await tested(["127.0.0.1:1"])
  expect(gone.exit).toBe(69)
  const busy = createServer((socket) => socket.end("421 4.3.2 later\r\n"))
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve))
  const later = await tested([at((busy.address() as { port: number }).port)])
  busy.close()
  expect([later.exit, later.result.outcome]).toEqual([75, "deferred"])
})

test("a silent server is left after --timeout", async () => {
  const silent = createServer(() => {})
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
  const { port } = silent.address() as { port: number }
  const { exit, err } = await tested([at(port), "--timeout", "300ms"])
  silent.close()
  expect(exit).toBe(69)
  expect(err).toContain("does not answer")
})

test("what cannot be sent is refused before anything is", async () => {
  for (const words of [
    ["--from", "me@example.test"],
    ["--from", "me@example.test", "--to", "no address"],
    ["--from", "me@example.test", "--to", "a@b.test>\r\nQUIT"],
    ["--tls", "maybe"],
    ["not a server"],
    ["example.test:99999"],
  ]) {
    expect([words, (await tested(words)).exit]).toEqual([words, 2])
  }
})

test("a name that is not of this machine needs a certificate that is trusted", async () => {
  // Any name of this machine that is not called localhost would do; this one has no wire outside.
  const outside = await belfry(["smtp", "test", `[::ffff:127.0.0.1]:${server.server.port}`], {
    env,
  })
  const result = JSON.parse(outside.out)
  expect([outside.exit, result.outcome]).toEqual([1, "untrusted"])
  expect(result.steps.map(({ phase }: { phase: string }) => phase)).not.toContain("AUTH")
  const insecure = await belfry(
    ["smtp", "test", `[::ffff:127.0.0.1]:${server.server.port}`, "--insecure"],
    { env },
  )
  expect(insecure.exit).toBe(0)
})

const credentials = async (...words: string[]) => {
  const { exit, out } = await belfry(["smtp", "credentials", ...words], { env })
  expect(exit).toBe(0)
  return out
}

test("smtp credentials prints what every program needs, with the key", async () => {
  expect(JSON.parse(await credentials("mail.example.com"))).toEqual({
    host: "mail.example.com",
    port: 587,
    tls: "starttls",
    username: "svc",
    password: KEY,
  })
  const implicit = JSON.parse(await credentials("mail.example.com", "--tls", "implicit"))
  expect(implicit).toMatchObject({ port: 465, tls: "implicit" })
  const programs = "postfix msmtp wordpress django rails laravel node grafana gitea".split(" ")
  for (const program of programs) {
    const text = await credentials("mail.example.com", "--for", program, "--from", "me@example.com")
    expect([
      program,
      text.includes("mail.example.com"),
      text.includes(KEY),
      /587/.test(text),
    ]).toEqual([program, true, true, true])
    expect(text).not.toMatch(/undefined|\[object/)
    const { file } = JSON.parse(await credentials("--for", program, "--json"))
    expect(file).toBeString()
  }
  const unknown = await belfry(["smtp", "credentials", "--for", "outlook"], { env })
  expect(unknown.exit).toBe(2)
  expect(unknown.err).toContain("postfix")
})

test("nodemailer sends with the configuration as it is printed", async () => {
  const text = await credentials(at(), "--for", "node")
  const [, options = ""] = /createTransport\((\{[\s\S]*?\n\})\)/.exec(text) ?? []
  const transport = createTransport(new Function(`return ${options}`)())
  const sent = await transport.sendMail({
    from: "me@example.test",
    to: "ann@example.test",
    subject: "by nodemailer",
    text: "hi",
  })
  expect(sent.response).toContain("queued as")
})

test.skipIf(missing("msmtp"))("msmtp sends with the configuration as it is printed", async () => {
  const path = join(folder, "msmtprc")
  writeFileSync(path, await credentials(at(), "--for", "msmtp", "--from", "me@example.test"), {
    mode: 0o600,
  })
  const child = Bun.spawn(["msmtp", "-C", path, "ann@example.test"], {
    stdin: new Blob(["Subject: by msmtp\n\nhi\n"]),
    stderr: "pipe",
  })
  expect([await child.exited, await child.stderr.text()]).toEqual([0, ""])
  expect(server.mails.at(-1)).toMatchObject({ from: "me@example.test", to: ["ann@example.test"] })
})

test.skipIf(missing("postmap"))("Postfix reads the configuration as it is printed", async () => {
  const text = await credentials(at(2587), "--for", "postfix")
  writeFileSync(join(folder, "main.cf"), `${text}\ncompatibility_level = 3.6\n`)
  writeFileSync(join(folder, "master.cf"), "")
  const read = async (...words: string[]) => {
    const child = Bun.spawn([...words], {
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: `${process.env.PATH}:/usr/sbin` },
    })
    return [await child.stdout.text(), await child.stderr.text()].join("").trim()
  }
  const settings = await read("postconf", "-c", folder, "-n")
  expect(settings).toContain("relayhost = [127.0.0.1]:2587")
  expect(settings).not.toContain("warning")
  const [, map = ""] = /smtp_sasl_password_maps = (.*)/.exec(settings) ?? []
  expect(await read("postmap", "-c", folder, "-q", "[127.0.0.1]:2587", map)).toBe(`svc:${KEY}`)
})

test.skipIf(missing("php", "python3"))("PHP and Python read their configurations", async () => {
  const accepted = async (command: string[], text: string) => {
    const child = Bun.spawn(command, { stdin: new Blob([text]), stdout: "ignore", stderr: "pipe" })
    return [await child.exited, await child.stderr.text()]
  }
  for (const server of [at(), "mail.example.com", "mail.example.com:465"]) {
    const php = await credentials(server, "--for", "wordpress")
    expect(await accepted(["php", "-l"], php)).toEqual([0, ""])
    const python = "import ast, sys; ast.parse(sys.stdin.read())"
    const django = await credentials(server, "--for", "django")
    expect(await accepted(["python3", "-c", python], django)).toEqual([0, ""])
    const ini =
      "import configparser, sys; configparser.ConfigParser().read_string(sys.stdin.read())"
    const grafana = await credentials(server, "--for", "grafana")
    expect(await accepted(["python3", "-c", ini], grafana)).toEqual([0, ""])
  }
})

test.skipIf(missing("python3"))(
  "Python trusts the certificate that a server signed itself",
  async () => {
    const pair = selfSigned("localhost")
    const path = join(folder, "own.pem")
    writeFileSync(path, pair.cert)
    await using own = await openTestMailServer({ pair })
    const program = [
      "import smtplib, ssl, sys",
      "client = smtplib.SMTP('localhost', int(sys.argv[1]))",
      "client.starttls(context=ssl.create_default_context())",
      "client.login('svc', 'right')",
      "client.sendmail('me@example.test', ['ann@example.test'], 'Subject: x\\n\\nhi\\n')",
      "client.quit()",
    ].join("\n")
    const child = Bun.spawn(["python3", "-c", program, String(own.server.port)], {
      env: { PATH: process.env.PATH ?? "", SSL_CERT_FILE: path },
      stderr: "pipe",
    })
    expect([await child.exited, await child.stderr.text()]).toEqual([0, ""])
    expect(own.mails).toHaveLength(1)
  },
)
