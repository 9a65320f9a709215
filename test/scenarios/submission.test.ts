import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTransport } from "nodemailer"
import { type Belfry, startBelfry } from "../harness/binary"
import { readLines } from "../harness/lines"
import { locate, missing, type Peer } from "../harness/peers"
import { freePort } from "../harness/ports"
import { withoutReceiver } from "../harness/postfix-receiver"
import { startPostfix } from "../harness/scratch-postfix"
import { sizes } from "../harness/sizes"
import { type Caught, get, reaches, until } from "./mails"
import { lean } from "./serve"

const FROM = "bell@mailbox.test"
const LARGE = Buffer.from(Uint8Array.from({ length: 6_700_000 }, (_, at) => (at * 31) % 251))

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

const folder = mkdtempSync(join(tmpdir(), "belfry-clients-"))
chmodSync(folder, 0o755)
const large = join(folder, "large.bin")
writeFileSync(large, LARGE)
/** A table of Windows: s-nail ends its lines with CR CR LF. */
const TABLE = "name;city\r\n.\r\nAnn;Bell\r\n"
const table = join(folder, "table.csv")
writeFileSync(table, TABLE)

let server: Belfry
const ports = { starttls: 0, implicit: 0 }

beforeAll(async () => {
  ports.implicit = await freePort()
  const env = {
    ...lean,
    BELFRY_SMTP_SUBMISSION_IMPLICIT_LISTEN: `127.0.0.1:${ports.implicit}`,
    BELFRY_SMTP_SUBMISSION_PER_IP: "100",
  }
  server = await startBelfry({ env })
  ports.starttls = server.smtp.submission ?? 0
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

type Way = keyof typeof ports
const WAYS: Way[] = ["starttls", "implicit"]
/** Of each client; nodemailer takes both in every run. */
const SOME_WAYS = WAYS.slice(0, sizes.variants)

interface Ended {
  code: number
  out: string
}

/** Runs a program of Debian to its end. */
async function run(peer: Peer, words: string[], input: string | Uint8Array = ""): Promise<Ended> {
  const child = Bun.spawn({
    cmd: [locate(peer) ?? "", ...words],
    stdin: typeof input === "string" ? Buffer.from(input) : input,
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env.PATH ?? "", HOME: folder, LC_ALL: "C.UTF-8" },
  })
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  return { code, out: out + err }
}

interface Listed {
  id: string
  rfc_message_id: string
  batch_id: string
}

interface Read extends Listed {
  subject: string
  text: string | null
  source: string
  attachments: { id: string; filename: string; size: number; sha256: string }[]
}

/** The mails to an address once the last of them was delivered: as the API shows them, and their bytes. */
async function arrived(to: string, count = 1) {
  const path = `/v1/emails?to=${encodeURIComponent(to)}`
  const listed = await until(`${count} mails to ${to}`, async () => {
    const found = await get<Listed[]>(server, path)
    return found.length === count && found
  })
  return Promise.all(
    listed.map(async ({ id }) => {
      await reaches(server, id, "delivered")
      const response = await server.request(`/v1/emails/${id}/raw`)
      const raw = Buffer.from(await response.arrayBuffer()).toString("latin1")
      return { ...(await get<Read>(server, `/v1/emails/${id}`)), raw }
    }),
  )
}

let number = 0
/** A recipient of a test's own, by which its mail is found. */
const somebody = () => `ann.${++number}@mailbox.test`

describe.skipIf(missing("swaks"))("swaks", () => {
  const words = (way: Way, to: string) => [
    ...["--server", "127.0.0.1", "--port", String(ports[way])],
    way === "starttls" ? "--tls" : "--tls-on-connect",
    ...["--auth-user", "svc", "--auth-password", server.api_key, "--from", FROM, "--to", to],
  ]

  test.each(SOME_WAYS)("by %s, with 8-bit text and an attachment of 9 MB", async (way) => {
    const to = somebody()
    const text = ["--header", "Subject: Grüße", "--body", "Grüße ✓\n.dot", "--attach", `@${large}`]
    const { code, out } = await run("swaks", [...words(way, to), "--auth", "PLAIN", ...text])
    expect(out).toMatch(/250 2\.0\.0 Ok: queued as [0-9a-f-]{36}/)
    expect(code).toBe(0)
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "Grüße", source: "smtp" })
    expect(mail?.text?.trim()).toBe("Grüße ✓\n.dot")
    expect(mail?.attachments).toMatchObject([{ size: LARGE.length, sha256: sha256(LARGE) }])
    const one = mail?.attachments[0]?.id
    const file = await server.request(`/v1/emails/${mail?.id}/attachments/${one}`)
    expect(sha256(new Uint8Array(await file.arrayBuffer()))).toBe(sha256(LARGE))
  })

  test("by AUTH LOGIN to several recipients, and it is told of what is refused", async () => {
    const [ann, ben] = [somebody(), somebody()]
    const login = [...words("starttls", `${ann},${ben}`), "--auth", "LOGIN"]
    expect((await run("swaks", login)).out).toMatch(/queued as [0-9a-f-]{36} [0-9a-f-]{36}/)
    const [[one], [other]] = await Promise.all([arrived(ann), arrived(ben)])
    expect(one?.batch_id).toBe(other?.batch_id ?? "")
    // They share a Message-ID, and still each mail in the mailbox knows its message.
    const caught = await get<Caught[]>(server, `/v1/mailbox?to=${ben}`)
    expect(caught.map(({ email_id }) => email_id)).toEqual([other?.id ?? null])
    const wrong = words("starttls", ann).map((word) => (word === server.api_key ? "no" : word))
    expect((await run("swaks", wrong)).out).toContain("535 5.7.8 unauthorized: ")
    const plain = words("starttls", ann).filter((word) => word !== "--tls")
    expect((await run("swaks", plain)).code).not.toBe(0)
    const stranger = words("starttls", ann).map((word) => (word === FROM ? "a@b.test" : word))
    expect((await run("swaks", stranger)).out).toContain("550 5.7.1 domain_not_verified: ")
  })
})

describe.skipIf(missing("msmtp"))("msmtp", () => {
  test.each(SOME_WAYS)("by %s", async (way) => {
    const to = somebody()
    const config = join(folder, `msmtp-${way}`)
    const lines = [
      "defaults",
      "auth on",
      "tls on",
      `tls_starttls ${way === "starttls" ? "on" : "off"}`,
      "tls_certcheck off",
      "account default",
      "host 127.0.0.1",
      `port ${ports[way]}`,
      `from ${FROM}`,
      "user svc",
      `password ${server.api_key}`,
    ]
    writeFileSync(config, `${lines.join("\n")}\n`, { mode: 0o600 })
    const mail = `From: Bell <${FROM}>\nTo: ${to}\nBcc: hidden@mailbox.test\nSubject: Ding\n\n.dot\nGrüße\n`
    const { code, out } = await run("msmtp", ["-C", config, "--", to], mail)
    expect({ code, out }).toEqual({ code: 0, out: "" })
    const [seen] = await arrived(to)
    expect(seen).toMatchObject({ subject: "Ding", text: ".dot\nGrüße\n" })
    expect(seen?.raw).not.toContain("hidden@")
  })
})

const PYTHON = `
import email.policy, smtplib, ssl, sys
from email.message import EmailMessage
way, port, key, sender, to, large, wide = sys.argv[1:]
context = ssl._create_unverified_context()
policy = email.policy.SMTPUTF8 if wide else email.policy.SMTP.clone(cte_type="8bit")
mail = EmailMessage(policy=policy)
mail["From"], mail["To"], mail["Subject"] = "Glöckchen <%s>" % sender, to, "Grüße ✓"
mail.set_content("Grüße ✓\\n.dot\\n", cte="8bit")
mail.add_alternative("<p>Grüße ✓</p>", subtype="html", cte="8bit")
if large: mail.add_attachment(open(large, "rb").read(), maintype="application", subtype="pdf", filename="März.pdf")
if way == "implicit": client = smtplib.SMTP_SSL("127.0.0.1", int(port), context=context)
else:
    client = smtplib.SMTP("127.0.0.1", int(port))
    client.starttls(context=context)
client.login("svc", key)
client.send_message(mail, sender, [to], mail_options=[] if wide else ["BODY=8BITMIME"])
client.quit()
`

describe.skipIf(missing("python3"))("Python's smtplib", () => {
  const send = (way: Way, to: string, options: { file?: string; wide?: boolean } = {}) => {
    const { file = "", wide = false } = options
    const words = [way, String(ports[way]), server.api_key, FROM, to, file, wide ? "wide" : ""]
    return run("python3", ["-c", PYTHON, ...words])
  }

  test.each(SOME_WAYS)("by %s, with 8-bit parts and an attachment of 9 MB", async (way) => {
    const to = somebody()
    expect(await send(way, to, { file: large })).toEqual({ code: 0, out: "" })
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "Grüße ✓", text: "Grüße ✓\n.dot\n" })
    expect(mail?.attachments).toMatchObject([{ filename: "März.pdf", sha256: sha256(LARGE) }])
    expect(mail?.raw).toContain("Content-Transfer-Encoding: 8bit\r\n\r\nGr\xc3\xbc\xc3\x9fe")
  })

  test("with SMTPUTF8, to an address outside ASCII", async () => {
    const to = `jörg.${++number}@mailbox.test`
    expect(await send("starttls", to, { wide: true })).toEqual({ code: 0, out: "" })
    const [mail] = await arrived(to)
    expect(mail?.subject).toBe("Grüße ✓")
    const head = Buffer.from(mail?.raw.split("\r\n\r\n")[0] ?? "", "latin1").toString()
    expect(head).toContain("Subject: Grüße ✓")
    expect(head).toContain("with UTF8SMTPSA")
  })
})

describe.skipIf(missing("openssl"))("openssl s_client", () => {
  test.each(SOME_WAYS)("by %s, line by line", async (way) => {
    const to = somebody()
    const address = ["-connect", `127.0.0.1:${ports[way]}`]
    const starttls = way === "starttls" ? ["-starttls", "smtp"] : []
    const child = Bun.spawn({
      cmd: [locate("openssl") ?? "", "s_client", "-quiet", "-crlf", ...starttls, ...address],
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    })
    const lines = readLines(child.stdout)
    const say = async (text: string, reply: RegExp) => {
      const seen = lines.all.length
      child.stdin.write(`${text}\n`)
      await child.stdin.flush()
      return until(`${reply}`, () => lines.all.slice(seen).find((line) => reply.test(line)))
    }
    const login = Buffer.from(`\0svc\0${server.api_key}`).toString("base64")
    // Behind STARTTLS it has read the greeting itself.
    if (way === "implicit") await lines.first((line) => line.startsWith("220 "))
    await say("EHLO me.test", /^250 /)
    await say(`AUTH PLAIN ${login}`, /^235 /)
    await say(`MAIL FROM:<${FROM}>`, /^250 /)
    await say(`RCPT TO:<${to}>`, /^250 /)
    await say("DATA", /^354 /)
    await say(`From: ${FROM}\nSubject: by hand\n\n..dot\n.`, /^250 2\.0\.0 Ok: queued as /)
    await say("QUIT", /^221 /)
    child.kill()
    await child.exited
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "by hand", text: ".dot\n" })
  })
})

describe.skipIf(missing("s-nail"))("s-nail", () => {
  test.each(SOME_WAYS)("by %s, with an attachment", async (way) => {
    const to = somebody()
    const scheme = way === "starttls" ? "smtp" : "smtps"
    const mta = `${scheme}://svc:${server.api_key}@127.0.0.1:${ports[way]}`
    const settings = [
      "v15-compat",
      `mta=${mta}`,
      "smtp-use-starttls",
      "smtp-auth=plain",
      "tls-verify=ignore",
      `from=Bell <${FROM}>`,
      "sendwait",
      "ttycharset=utf-8",
    ]
    const options = ["-:/", ...settings.flatMap((one) => ["-S", one]), "-s", "Grüße ✓"]
    const { out, code } = await run(
      "s-nail",
      [...options, "-a", large, "-a", table, to],
      "Läuten\n",
    )
    expect({ code, out }).toMatchObject({ code: 0 })
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "Grüße ✓", text: "Läuten\n" })
    const files = [LARGE, Buffer.from(TABLE)]
    expect(mail?.attachments).toMatchObject(files.map((bytes) => ({ sha256: sha256(bytes) })))
  })
})

describe("nodemailer", () => {
  const send = async (way: Way, mail: object) => {
    const transport = createTransport({
      ...{ host: "127.0.0.1", port: ports[way], secure: way === "implicit", requireTLS: true },
      ...{ auth: { user: "svc", pass: server.api_key }, tls: { rejectUnauthorized: false } },
    })
    const { response } = await transport.sendMail({ from: FROM, ...mail })
    transport.close()
    return response
  }

  test.each(WAYS)("by %s, with an attachment of 9 MB", async (way) => {
    const to = somebody()
    const attachments = [{ filename: "large.bin", content: LARGE }]
    await send(way, { to, subject: "Grüße", text: "Läuten", html: "<b>Läuten</b>", attachments })
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "Grüße", attachments: [{ sha256: sha256(LARGE) }] })
  })

  test("with SMTPUTF8, to an address outside ASCII", async () => {
    const to = `jörg.${++number}@mailbox.test`
    await send("starttls", { to, subject: "Grüße", text: "Läuten" })
    const [mail] = await arrived(to)
    expect(mail).toMatchObject({ subject: "Grüße", source: "smtp" })
    expect(Buffer.from(mail?.raw ?? "", "latin1").toString()).toContain(`To: ${to}\r\n`)
  })
})

describe.skipIf(withoutReceiver() || missing("swaks"))("Postfix as a client with SASL", () => {
  test.each(SOME_WAYS)("by %s hands on what it was given, to many recipients", async (way) => {
    const spool = mkdtempSync(join(tmpdir(), "belfry-smarthost-"))
    chmodSync(spool, 0o755)
    using _ = { [Symbol.dispose]: () => rmSync(spool, { recursive: true, force: true }) }
    await using postfix = await startPostfix(spool, {
      maillog_file: join(spool, "mail.log"),
      maillog_file_prefixes: spool,
      mynetworks: "127.0.0.0/8",
      smtpd_relay_restrictions: "permit_mynetworks, reject",
      relayhost: `[127.0.0.1]:${ports[way]}`,
      smtp_sasl_auth_enable: "yes",
      smtp_sasl_password_maps: `static:svc:${server.api_key}`,
      smtp_sasl_security_options: "noanonymous",
      smtp_tls_security_level: "encrypt",
      smtp_tls_wrappermode: way === "implicit" ? "yes" : "no",
    })
    const swaks = (to: string[], ...words: string[]) => {
      const address = ["--server", "127.0.0.1", "--port", String(postfix.port), "--from", FROM]
      return run("swaks", [...address, "--to", to.join(","), ...words])
    }
    const alone = somebody()
    const text = ["--header", "Subject: relayed", "--body", "Grüße\n.dot", "--attach", `@${large}`]
    expect((await swaks([alone], ...text)).out).toMatch(/250 2\.0\.0 Ok: queued/)
    const [mail] = await arrived(alone)
    expect(mail?.text?.trim()).toBe("Grüße\n.dot")
    expect(mail?.raw).toMatch(/Received: by .* with ESMTPSA id .*;\r\n\t.*\r\nReceived: from /)
    expect(mail?.attachments).toMatchObject([{ sha256: sha256(LARGE) }])

    const many = Array.from({ length: 70 }, somebody)
    await swaks(many, "--header", "Message-ID: <many@client.test>")
    const mails = (await Promise.all(many.map((one) => arrived(one)))).flat()
    expect(new Set(mails.map(({ rfc_message_id }) => rfc_message_id)).size).toBe(1)
    // Postfix names 50 recipients at a time.
    expect(new Set(mails.map(({ batch_id }) => batch_id)).size).toBe(2)
  })
})
