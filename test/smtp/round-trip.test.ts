import { describe, expect, test } from "bun:test"
import { isAscii } from "node:buffer"
import { createHash } from "node:crypto"
import { smtp } from "../../src/emails/providers/smtp"
import { dotStuffed } from "../../src/lib/mail-text"
import { contentOf, readTree } from "../../src/lib/mail-tree"
import { domainKeys } from "../emails/published-keys"
import { byPythonDkim } from "../emails/verifiers"
import { deliverBy } from "../harness/delivery"
import { locate, missing } from "../harness/peers"
import { startSmtpSink } from "../harness/postfix-sink"
import { testService } from "../harness/service"
import { sizes } from "../harness/sizes"
import { plainLogin, SmtpDialogue } from "../harness/smtp-dialogue"
import { openSubmission } from "../harness/submission"
import { type DiverseMail, diverseMails } from "./diverse-mails"

const CONNECTIONS = 8

/** Submits all of them behind STARTTLS and AUTH, each to one recipient. */
async function submitAll(port: number, key: string, mails: DiverseMail[]) {
  const rest = [...mails]
  const client = async () => {
    using it = await SmtpDialogue.open(port)
    await it.say("EHLO me.test")
    await it.starttls()
    await it.talk("EHLO me.test", plainLogin("svc", key))
    for (let mail = rest.shift(); mail; mail = rest.shift()) {
      await it.talk("MAIL FROM:<b@client.test> BODY=8BITMIME", "RCPT TO:<ann@example.test>", "DATA")
      it.write(dotStuffed(mail.raw))
      const { text } = await it.reply()
      if (!text.startsWith("250 2.0.0 Ok: queued as ")) throw new Error(`${text}\n${mail.raw}`)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, client))
}

const OWN_FIELDS = /^(?:(?:DKIM-Signature|X-Svc-Email-Id): .*\r\n(?:[ \t].*\r\n)*)+/
const TRACE = /^Received: by mx\.belfry\.test with ESMTPSA id [0-9a-f-]{36};\r\n\t.*\r\n/

const PYTHON = `
import base64, email, hashlib, json, re, sys
def trimmed(content):
    return re.sub(rb"[ \\t]+(?=\\n|$)", b"", content.replace(b"\\r\\n", b"\\n")).strip()
def leaves(part):
    if part.get_content_maintype() == "multipart":
        for child in part.get_payload(): yield from leaves(child)
    elif part.get_content_type() == "message/rfc822": yield ["message/rfc822", None]
    else:
        content = part.get_payload(decode=True)
        yield [part.get_content_type(), hashlib.sha256(trimmed(content)).hexdigest()]
print(json.dumps([list(leaves(email.message_from_bytes(base64.b64decode(one)))) for one in json.load(sys.stdin)]))
`

/** The leaves of each mail as Python's own parser finds them, with the hash of their content. */
async function byPython(mails: Buffer[]): Promise<[string, string | null][][]> {
  const given = JSON.stringify(mails.map((raw) => raw.toString("base64")))
  const cmd = [locate("python3") ?? "python3", "-c", PYTHON]
  const child = Bun.spawn({ cmd, stdin: Buffer.from(given), stdout: "pipe", stderr: "inherit" })
  const answer = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("python failed")
  return JSON.parse(answer)
}

/** White space at the end of a line is no content of quoted-printable, which Python forgets. */
const trimmed = (content: Buffer) =>
  content
    .toString("latin1")
    .replaceAll("\r\n", "\n")
    .replace(/[ \t]+(?=\n|$)/g, "")
    .replace(/^[ \t\n\v\f\r]+|[ \t\n\v\f\r]+$/g, "")

const leavesOf = (raw: Buffer): [string, string | null][] =>
  readTree(raw).leaves.map((leaf) => {
    if (leaf.content_type === "message/rfc822") return ["message/rfc822", null]
    const bytes = Buffer.from(trimmed(contentOf(leaf)), "latin1")
    return [leaf.content_type, createHash("sha256").update(bytes).digest("hex")]
  })

/** Submits the mails, and relays them to smtp-sink: what it stored, by Message-ID. */
async function relayed(mails: DiverseMail[], ...options: string[]) {
  await using service = await testService()
  const project = await service.project()
  const keys = await domainKeys("example.test")
  await keys.publish(service, project.project_id)
  await using server = await openSubmission(service)
  await submitAll(server.port, project.key, mails)

  await using sink = await startSmtpSink(...options)
  const provider = smtp({ host: "127.0.0.1", port: sink.port, tls: "none" })
  await deliverBy(service.parts, provider)
  await provider.close()

  const arrived = new Map<string, Buffer>()
  for (const stored of sink.files()) {
    const raw = stored.slice(stored.indexOf("\nDKIM-Signature: ") + 1, -1)
    const mail = Buffer.from(raw.replaceAll("\n", "\r\n"), "latin1")
    const [message_id = ""] = /<[\d.]+@client\.test>/.exec(raw) ?? []
    arrived.set(message_id, mail)
  }
  expect(arrived.size).toBe(mails.length)
  const verdicts = await byPythonDkim([...arrived.values()], keys.records)
  expect(verdicts.filter((all) => all.join() !== "true,true")).toEqual([])
  return arrived
}

describe.skipIf(missing("smtp-sink", "python3", "dkimverify"))("mails of every shape", () => {
  test("arrive at Postfix as they were submitted, with signatures that hold", async () => {
    const mails = diverseMails(sizes.submissions)
    const arrived = await relayed(mails)
    for (const { message_id, kept } of mails) {
      const whole = arrived.get(message_id)?.toString("latin1") ?? ""
      const [own = ""] = OWN_FIELDS.exec(whole) ?? []
      const rest = whole.slice(own.length)
      expect(rest).toMatch(TRACE)
      const given = kept.toString("latin1")
      // DATA ends with a line end, so that a mail without one gets it.
      expect(rest.replace(TRACE, "")).toBe(given.endsWith("\r\n") ? given : `${given}\r\n`)
    }
  })

  test("arrive in seven bits where Postfix offers no 8BITMIME, and say the same", async () => {
    const mails = diverseMails(Math.ceil(sizes.submissions / 4), 3)
    expect(mails.some(({ kept }) => !isAscii(kept))).toBe(true)
    const arrived = await relayed(mails, "-8")
    for (const { message_id, kept } of mails) {
      const narrow = arrived.get(message_id) ?? Buffer.alloc(0)
      expect(isAscii(narrow)).toBe(true)
      expect(leavesOf(narrow)).toEqual(leavesOf(kept))
    }
  })

  test("are taken apart as Python takes them apart", async () => {
    const mails = diverseMails(sizes.submissions, 2).map(({ kept }) => kept)
    const seen = await byPython(mails)
    for (const [at, mail] of mails.entries()) expect(leavesOf(mail)).toEqual(seen[at] ?? [])
  })
})
