import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Belfry, startBelfry } from "../harness/binary"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { locate, missing, type Peer } from "../harness/peers"
import { freePort } from "../harness/ports"
import { postfixReceiver, type Receiver, withoutReceiver } from "../harness/postfix-receiver"
import { isVerified, startReceiver as startHooks } from "../harness/receiver"
import { startPostfix } from "../harness/scratch-postfix"
import { openScreen } from "../harness/screen"
import { get, until } from "./mails"
import { LARGE, openMonitor } from "./monitor"
import { lean } from "./serve"

/** Ours, whose zone names our server for its mail and for the return paths of what it sends. */
const OURS = "acme.test"
const SENDER = `shop@${OURS}`
/** A friend with a mailbox at a Postfix, and the domain of those who have none there any more. */
const FRIEND = "ann@friends.test"
const GONE = "bob@gone.test"
const REFUSAL = "550 5.1.1 User unknown in local recipient table"
const HOST = "mx.belfry.test"

const folder = mkdtempSync(join(tmpdir(), "belfry-round-"))
chmodSync(folder, 0o755)

const absent =
  noKnot || withoutReceiver() || missing("swaks", "smtp-sink", "mutt", "tmux") || undefined

/** Runs a program of Debian to its end; what it said. Rejects when it fails. */
async function run(peer: Peer, ...words: string[]): Promise<string> {
  const child = Bun.spawn({
    cmd: [locate(peer) ?? "", ...words],
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env.PATH ?? "", HOME: folder, LC_ALL: "C.UTF-8" },
  })
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ])
  if (code !== 0) throw new Error(`${peer} ended with ${code}:\n${out}${err}`)
  return out
}

/** A mail server that refuses every recipient for good, in the words of a Postfix. */
async function startRefusing() {
  const port = await freePort()
  const words = ["-u", "postfix", "-f", "RCPT", "-B", REFUSAL, `127.0.0.1:${port}`, "10"]
  const child = Bun.spawn({
    cmd: [locate("smtp-sink") ?? "", ...words],
    stdio: ["ignore", "ignore", "ignore"],
  })
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

interface Hook {
  type: string
  data: Record<string, unknown>
}

let stack: AsyncDisposableStack
let server: Belfry
let knot: Knot
let friends: Receiver
let hooks: ReturnType<typeof startHooks>
let secret: string

describe.skipIf(absent === true)("mail there and back, between real mail servers", () => {
  beforeAll(async () => {
    stack = new AsyncDisposableStack()
    const inbound = await freePort()
    const refusing = stack.use(await startRefusing())
    const to_us = `smtp:[127.0.0.1]:${inbound}`
    friends = stack.use(
      await postfixReceiver([FRIEND], {
        // It takes the mail for gone.test like a second MX, and is refused by the first.
        relay_domains: "gone.test",
        transport_maps: `inline:{ {gone.test=smtp:[127.0.0.1]:${refusing.port}} {.${OURS}=${to_us}} {${OURS}=${to_us}} }`,
        default_transport: "smtp",
        disable_dns_lookups: "yes",
      }),
    )
    const mx = ["@ MX 10 mx", "mx A 127.0.0.1", '@ TXT "v=spf1 ip4:127.0.0.1 -all"']
    knot = stack.use(
      await startKnot({
        "friends.test": [...mx, '_dmarc TXT "v=DMARC1; p=reject"'],
        "gone.test": mx,
        "belfry.test": ["mx A 127.0.0.1"],
        [OURS]: [],
      }),
    )
    const env = {
      ...lean,
      BELFRY_SMTP_INBOUND_LISTEN: `127.0.0.1:${inbound}`,
      BELFRY_DNS_SERVERS: knot.address,
      BELFRY_DOMAINS_HOST: HOST,
      BELFRY_DELIVERY_PROVIDER: "direct",
      BELFRY_DELIVERY_MX_PORT: String(friends.port),
      BELFRY_DELIVERY_ALLOW_PRIVATE: "127.0.0.0/8",
    }
    server = stack.use(await startBelfry({ env }))
    hooks = stack.use(startHooks())
    secret = await makeWebhook()
    await verify(OURS)
  })

  afterAll(async () => {
    await stack.disposeAsync()
    rmSync(folder, { recursive: true, force: true })
  })

  test("Postfix submits, the recipient's server bounces, and the monitor shows why", async () => {
    await using screen = await openMonitor(server, LARGE)
    await screen.shows("● live")
    const smarthost = await relayWithKey()
    await using _ = smarthost
    const to_smarthost = ["--server", "127.0.0.1", "--port", String(smarthost.port)]
    const mail = ["--from", SENDER, "--to", GONE, "--header", "Subject: Your receipt"]
    await run("swaks", ...to_smarthost, ...mail, "--body", "Thank you.")

    await screen.until("the bounce", (text) => /bob@gone\.test +Your receipt +bounced ✗/.test(text))
    await screen.press("Enter")
    await screen.shows("User unknown in local recipient table")

    const told = await heard("email.bounced")
    expect(told.data).toMatchObject({ recipient_email: GONE, bounce_type: "Permanent" })
    expect(JSON.stringify(told.data)).toContain("User unknown in local recipient table")
    // What the recipient's server sent is kept, in the thread of the message.
    const [dsn] = await get<Received[]>(server, "/v1/inbound-emails?kind=bounce")
    expect(dsn).toMatchObject({ replied_to_message_id: told.data.message_id, kind: "bounce" })
    await screen.press("Escape", "q")
    await screen.shows("exit 0")
  })

  test("swaks writes to us; the answer stands in one thread with it in mutt", async () => {
    const to = `support@${OURS}`
    const pdf = Buffer.from(Uint8Array.from({ length: 70_000 }, (_, at) => (at * 37) % 256))
    const file = join(folder, "offer.pdf")
    writeFileSync(file, pdf)
    const message_id = "<question.1@friends.test>"
    const letter = [
      ...["--from", FRIEND, "--to", to, "--header", "Subject: Where is it?"],
      ...["--header", `Message-Id: ${message_id}`, "--attach", `@${file}`],
      ...["--body", "Your code is 481516. Where is my parcel?"],
    ]
    const port = String(server.smtp.inbound)
    await run("swaks", "--server", "127.0.0.1", "--port", port, "--tls", ...letter)
    // Her own copy, as a mail program keeps what it sent.
    const copy = ["--server", "127.0.0.1", "--port", String(friends.port), ...letter]
    await run("swaks", ...copy.map((word) => (word === to ? FRIEND : word)))

    const waiting = ["inbound", "wait", "--to", to, "--since", "1h"]
    const code = await server.cli(...waiting, "--extract", "otp")
    expect(code).toMatchObject({ code: 0, stdout: "481516\n" })
    const found = await server.cli(...waiting, "--json=id")
    const { id } = JSON.parse(found.stdout) as { id: string }

    const told = await heard("email.received", id)
    const { inbound } = told.data as { inbound: Received }
    expect(inbound).toMatchObject({
      ...{ id, kind: "new", verified: true, spf_verdict: "pass", dmarc_verdict: "pass" },
      ...{ from: { email: FRIEND }, subject: "Where is it?", rfc_message_id: message_id },
    })
    const [attachment] = inbound.attachments
    expect(attachment).toMatchObject({ filename: "offer.pdf", size: pdf.length })
    const download = await fetch(attachment?.url ?? "")
    expect(sha256(await download.bytes())).toBe(sha256(pdf))
    expect(download.headers.get("content-disposition")).toStartWith("attachment")

    const reply = await server.cli("inbound", "reply", id, "--text", "It left this morning.")
    expect(reply).toMatchObject({ code: 0, stderr: "" })
    const mails = await friends.mails(FRIEND, 2)
    expect(mails.filter((mail) => mail.includes("It left this morning."))).toHaveLength(1)
    expect(await threadIn(friends.mailbox(FRIEND))).toMatch(/Where is it\?\n[^\n]*[└`][─-]+>/)
  })
})

interface Received {
  id: string
  replied_to_message_id: string | null
  attachments: { filename: string; size: number; url: string }[]
}

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

async function makeWebhook(): Promise<string> {
  const body = JSON.stringify({ url: hooks.url, events: ["email.bounced", "email.received"] })
  const response = await server.request("/v1/webhooks", { method: "POST", body })
  expect(response.status).toBe(201)
  return ((await response.json()) as { data: { secret: string } }).data.secret
}

/** The event of this type, about that mail, as a receiver was told it with a right signature. */
async function heard(type: string, id?: string): Promise<Hook> {
  const hook = await until(type, () =>
    hooks.received
      .filter((delivery) => isVerified(secret, delivery))
      .map(({ body }) => JSON.parse(body) as Hook)
      .find((event) => event.type === type && (!id || event.data.message_id === id)),
  )
  return hook
}

/** Adds the domain, serves the records that it wants, and waits until it is verified. */
async function verify(name: string) {
  expect((await server.cli("domains", "add", name, "--receiving")).code).toBe(0)
  const { stdout: zone } = await server.cli("domains", "records", name, "--format", "bind")
  await knot.serve(name, zone.split("\n"))
  await until(`${name} verified`, async () => {
    const { stdout } = await server.cli("domains", "check", name, "--json=status,dns_records")
    const seen = JSON.parse(stdout) as { status: string; dns_records: { status: string }[] }
    return seen.dns_records.every(({ status }) => status === "verified")
  })
}

/** A Postfix as somebody sets it up who sends all mail by our submission port. */
async function relayWithKey() {
  const spool = mkdtempSync(join(folder, "smarthost-"))
  chmodSync(spool, 0o755)
  return startPostfix(spool, {
    maillog_file: join(spool, "mail.log"),
    maillog_file_prefixes: spool,
    mynetworks: "127.0.0.0/8",
    smtpd_relay_restrictions: "permit_mynetworks, reject",
    relayhost: `[127.0.0.1]:${server.smtp.submission}`,
    smtp_sasl_auth_enable: "yes",
    smtp_sasl_password_maps: `static:svc:${server.api_key}`,
    smtp_sasl_security_options: "noanonymous",
    smtp_tls_security_level: "encrypt",
  })
}

/** What mutt shows of a mailbox whose mails it sorts by threads. */
async function threadIn(mailbox: string): Promise<string> {
  const config = join(folder, "muttrc")
  const lines = [
    "set sort=threads",
    'set index_format="%2C %s"',
    `set folder="${folder}"`,
    'set spoolfile=""',
    "set nomove",
    "set noconfirmcreate",
  ]
  writeFileSync(config, `${lines.join("\n")}\n`)
  const command = [locate("mutt") ?? "", "-n", "-F", config, "-R", "-f", mailbox]
  const env = { HOME: folder, LC_ALL: "C.UTF-8" }
  await using screen = await openScreen(command, { columns: 100, lines: 24, env })
  await screen.until("both mails", (text) => /^ +1 .*\n +2 /m.test(text))
  return screen.lines().join("\n")
}
