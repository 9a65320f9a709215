import { authenticate } from "mailauth"
import { DEBIAN_PYTHON } from "../harness/peers"

/** Where the mail comes from, as SPF sees it. */
const CLIENT = { ip: "192.0.2.10", helo: "mail.example.test", mta: "mx.example.net" }

const SCRIPT = `
import base64, dkim, json, sys
given = json.load(sys.stdin)
def record(name, timeout=5):
    found = given["records"].get(name.decode().rstrip("."))
    return found.encode() if found else None
answers = []
for message in given["messages"]:
    raw = base64.b64decode(message)
    verifier = dkim.DKIM(raw)
    count = sum(1 for name, value in verifier.headers if name.lower() == b"dkim-signature")
    words = []
    for index in range(count):
        try:
            words.append(bool(dkim.DKIM(raw).verify(idx=index, dnsfunc=record)))
        except Exception as error:
            words.append(repr(error))
    answers.append(words)
print(json.dumps(answers))
`

/** What python3-dkim says of each signature of each message: true, false or why it could not say. */
export async function byPythonDkim(
  messages: Uint8Array[],
  records: Record<string, string>,
): Promise<(boolean | string)[][]> {
  const given = { records, messages: messages.map((raw) => Buffer.from(raw).toString("base64")) }
  const child = Bun.spawn({
    cmd: [DEBIAN_PYTHON, "-c", SCRIPT],
    stdin: Buffer.from(JSON.stringify(given)),
    stdout: "pipe",
    stderr: "inherit",
  })
  const answer = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("python3-dkim failed")
  return JSON.parse(answer) as (boolean | string)[][]
}

export interface Verdicts {
  /** One result a signature. */
  dkim: string[]
  spf: string
  dmarc: string
  /** The domains that DMARC found aligned. */
  aligned: { dkim: unknown; spf: unknown }
}

/** What mailauth says of a message that comes from `sender`'s own server. */
export async function byMailauth(
  raw: Uint8Array,
  sender: string,
  records: Record<string, string>,
): Promise<Verdicts> {
  const resolver = async (name: string, type: string) => {
    const found = type === "TXT" ? records[name.replace(/\.$/, "")] : undefined
    if (!found) throw Object.assign(new Error(`no ${type} of ${name}`), { code: "ENODATA" })
    return [found.match(/.{1,255}/g) ?? []] // as a server cuts it
  }
  const { dkim, spf, dmarc } = await authenticate(Buffer.from(raw), {
    ...CLIENT,
    sender,
    resolver,
    disableArc: true,
    disableBimi: true,
  })
  if (!spf || !dmarc) throw new Error("mailauth checked neither SPF nor DMARC")
  return {
    dkim: dkim.results.map(({ status }) => status.result),
    spf: spf.status.result,
    dmarc: dmarc.status.result,
    aligned: { dkim: dmarc.alignment.dkim.result, spf: dmarc.alignment.spf.result },
  }
}
