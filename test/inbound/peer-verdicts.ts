import { join } from "node:path"
import type { MailVerdicts } from "../../src/inbound/verdicts"
import type { SampleMail } from "./sample-mails"

/** Debian's own: the packages belong to no other Python. */
const PYTHON = "/usr/bin/python3"

export interface PeerVerdicts {
  dkim: { result: string; domain: string; why: string }[]
  arc: { result: string; why: string }
  spf: { result: string; why: string }
  dmarc: string
}

/** Whether the programs of `pythonVerdicts` are here, and if not, why. */
export async function pythonFault(): Promise<string | undefined> {
  const program = "import authheaders, authres, dkim, nacl, publicsuffix2, spf"
  try {
    const child = Bun.spawn({ cmd: [PYTHON, "-W", "ignore", "-c", program], stderr: "ignore" })
    if ((await child.exited) === 0) return undefined
  } catch {}
  return "needs python3-spf, python3-authheaders, python3-dkim and python3-nacl"
}

/**
 * What python3-dkim, python3-spf and python3-authheaders say, each with the DNS of its mail. DMARC
 * starts from our results where signatures are judged differently, and else from theirs.
 */
export async function pythonVerdicts(
  mails: SampleMail[],
  own: MailVerdicts[],
): Promise<PeerVerdicts[]> {
  const given = mails.map(({ raw, zone, arrival }, at) => ({
    raw: raw.toString("base64"),
    zone,
    ...arrival,
    own: own[at]?.detail.dkim.map(({ result, domain }) => ({ result, domain })),
  }))
  const child = Bun.spawn({
    cmd: [PYTHON, join(import.meta.dir, "peer-verdicts.py")],
    stdin: Buffer.from(JSON.stringify(given)),
    stdout: "pipe",
    stderr: "inherit",
  })
  const answer = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("the script of the Python verdicts failed")
  return JSON.parse(answer) as PeerVerdicts[]
}
