import { describe, expect, test } from "bun:test"
import { createHash } from "node:crypto"
import PostalMime from "postal-mime"
import { startBelfry } from "../harness/binary"
import { locate, missing } from "../harness/peers"
import { startSmtpSink } from "../harness/postfix-sink"
import { type Caught, get, reaches, send, until } from "./mails"
import { lean, relaySettings } from "./serve"

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

const attachment = Uint8Array.from({ length: 70_000 }, (_, number) => (number * 31) % 251)

/** A message with something of everything that is easily broken on the way. */
const letter = {
  from: "Zoë Müller <me@example.test>",
  to: "Ann <ann@example.test>",
  cc: ["bob@example.test"],
  bcc: "hidden@example.test",
  reply_to: ['"Antworten, bitte" <answers@example.test>', "more@example.test"],
  subject: "Grüße, 你好 and a subject that is long enough to be folded over two lines of header 🎉",
  text: `.first line begins with a dot\r\n..two\nlone feed ✓\n${"long ".repeat(400)}\n.`,
  html: "<p>Grüße ✓</p>\n<p>.dot</p>",
  ...{ track_opens: false, track_clicks: false },
  headers: { "X-Canary": "kept", References: "<a@example.test> <b@example.test>" },
  attachments: [
    {
      filename: "Bericht März.bin",
      content: Buffer.from(attachment).toString("base64"),
      content_type: "application/octet-stream",
    },
  ],
}

/** What any parser must find in it. */
const expected = {
  subject: letter.subject,
  from: ["Zoë Müller", "me@example.test"],
  to: ["Ann", "ann@example.test"],
  cc: "bob@example.test",
  reply_to: ["Antworten, bitte", "answers@example.test", "more@example.test"],
  canary: "kept",
  text: letter.text.replaceAll("\r\n", "\n"),
  html: letter.html,
  filename: "Bericht März.bin",
  sha256: sha256(attachment),
}

const unix = (text: string | undefined) => (text ?? "").replaceAll("\r\n", "\n").replace(/\n$/, "")

async function byPostalMime(raw: string | Uint8Array) {
  const mail = await PostalMime.parse(raw)
  const [file] = mail.attachments
  const content = file?.content ?? new Uint8Array()
  return {
    subject: mail.subject,
    from: [mail.from?.name, mail.from?.address],
    to: [mail.to?.[0]?.name, mail.to?.[0]?.address],
    cc: mail.cc?.[0]?.address,
    reply_to: [mail.replyTo?.[0]?.name, ...(mail.replyTo ?? []).map(({ address }) => address)],
    canary: mail.headers.find(({ key }) => key === "x-canary")?.value,
    text: unix(mail.text),
    html: unix(mail.html),
    filename: file?.filename,
    sha256: sha256(typeof content === "string" ? Buffer.from(content) : new Uint8Array(content)),
  }
}

const PYTHON = `
import email, email.policy, hashlib, json, sys
mail = email.message_from_binary_file(sys.stdin.buffer, policy=email.policy.default)
one = lambda name: mail[name].addresses[0]
part = lambda kind: mail.get_body((kind,)).get_content().replace("\\r\\n", "\\n").removesuffix("\\n")
file = next(mail.iter_attachments())
defects = [str(d) for p in mail.walk() for d in p.defects]
print(json.dumps({"defects": defects, "mail": {
  "subject": mail["subject"], "canary": mail["x-canary"],
  "from": [one("from").display_name, one("from").addr_spec],
  "to": [one("to").display_name, one("to").addr_spec],
  "cc": one("cc").addr_spec, 
  "reply_to": [one("reply-to").display_name] + [a.addr_spec for a in mail["reply-to"].addresses],
  "text": part("plain"), "html": part("html"), "filename": file.get_filename(),
  "sha256": hashlib.sha256(file.get_content()).hexdigest()}}))
`

async function byPython(raw: Uint8Array) {
  const child = Bun.spawn([locate("python3") ?? "python3", "-c", PYTHON], {
    stdin: raw,
    stdout: "pipe",
    stderr: "inherit",
  })
  return JSON.parse(await child.stdout.text())
}

/** The rules of RFC 5322 and 5321 that no parser complains of. */
function expectClean(raw: Buffer, rfc_message_id: string) {
  const text = raw.toString("latin1")
  expect(text.replaceAll("\r\n", "")).not.toMatch(/[\r\n\0]/)
  const head = text.slice(0, text.indexOf("\r\n\r\n"))
  expect(head).toContain(`Message-ID: ${rfc_message_id}`)
  expect(head).not.toContain("hidden@example.test")
  const names = head.split("\r\n").filter((line) => !/^[ \t]/.test(line))
  const lower = names.map((line) => line.split(":")[0]?.toLowerCase())
  expect(new Set(lower).size).toBe(lower.length) // each header once
  expect(Math.max(...text.split("\r\n").map((line) => line.length))).toBeLessThanOrEqual(998)
}

describe.skipIf(missing("smtp-sink", "python3"))("Postfix's smtp-sink as the relay", () => {
  test("gets the very bytes that the API shows, and two parsers agree on them", async () => {
    await using sink = await startSmtpSink()
    await using server = await startBelfry({ env: relaySettings(sink.port) })
    const id = await send(server, letter)
    await reaches(server, id, "sent")
    const { rfc_message_id } = await get<{ rfc_message_id: string }>(server, `/v1/emails/${id}`)
    const response = await server.request(`/v1/emails/${id}/raw`)
    expect(response.headers.get("content-type")).toStartWith("message/rfc822")
    const raw = Buffer.from(await response.arrayBuffer())

    expectClean(raw, rfc_message_id)
    expect(await byPostalMime(raw)).toEqual(expected)
    expect(await byPython(raw)).toEqual({ defects: [], mail: expected })

    const [stored = ""] = await until("a file of the sink", () => {
      const files = sink.files()
      return files.some((file) => file.includes(rfc_message_id)) && files
    })
    const sent = raw.toString("latin1").replaceAll("\r\n", "\n")
    expect(stored.endsWith(`\n${sent}\n`)).toBe(true) // the sink adds an empty line
    const recipients = [...stored.matchAll(/^X-Rcpt-Args: <([^>]+)>/gm)].map(([, to]) => to)
    expect(recipients).toEqual(["ann@example.test", "bob@example.test", "hidden@example.test"])
    expect(stored).toMatch(/^X-Mail-Args: <me@example.test>/m)
  })
})

describe.skipIf(missing("swaks"))("swaks", () => {
  test("sends to the embedded mailbox, and the project reads it", async () => {
    await using server = await startBelfry({ env: lean })
    const swaks = async (...words: string[]) => {
      const address = ["--server", "127.0.0.1", "--port", String(server.smtp.mailbox)]
      const command = [locate("swaks") ?? "", ...address, "--from", "eve@example.test", ...words]
      const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" })
      const [out, code] = await Promise.all([child.stdout.text(), child.exited])
      return { out, code }
    }
    const words = ["--to", "ann@mailbox.test", "--header", "Subject: From outside"]
    const sent = await swaks(
      ...words,
      "--body",
      "line one\n.line two",
      "--attach",
      "@/etc/hostname",
    )
    expect(sent).toMatchObject({ code: 0, out: expect.stringContaining("250 2.6.0") })

    const [listed] = await get<Caught[]>(server, "/v1/mailbox?to=ann@mailbox.test")
    const subject = "From outside"
    expect(listed).toMatchObject({ email_id: null, from: "eve@example.test", subject })
    const mail = await get<Caught & { attachments: { filename: string }[] }>(
      server,
      `/v1/mailbox/${listed?.id}`,
    )
    expect(mail.text).toBe("line one\n.line two")
    expect(mail.attachments.map(({ filename }) => filename)).toEqual(["hostname"])

    const refused = await swaks("--to", "bounce@mailbox.test")
    expect(refused.out).toContain("550 5.1.1")
    expect(refused.code).not.toBe(0)
    expect(await get<Caught[]>(server, "/v1/mailbox")).toHaveLength(1)
  })
})

describe.skipIf(missing("smtp-source"))("Postfix's smtp-source", () => {
  test("sends many at once over many connections, and none is lost", async () => {
    await using server = await startBelfry({ env: lean })
    const load = ["-s", "10", "-m", "200", "-l", "2000", "-f", "eve@example.test"]
    const to = ["-t", "load@mailbox.test", `127.0.0.1:${server.smtp.mailbox}`]
    const child = Bun.spawn([locate("smtp-source") ?? "", ...load, ...to], {
      stdio: ["ignore", "inherit", "inherit"],
    })
    expect(await child.exited).toBe(0)
    const response = await server.request("/v1/mailbox?to=load@mailbox.test&per_page=1")
    const { meta } = (await response.json()) as { meta: { total: number } }
    expect(meta.total).toBe(200)
  })
})
