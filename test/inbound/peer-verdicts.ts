import { join } from "node:path"
import type { MailVerdicts } from "../../src/inbound/verify-task"
import { DEBIAN_PYTHON } from "../harness/peers"
import type { SampleMail } from "./sample-mails"

export interface PeerVerdicts {
  dkim: { result: string; domain: string; why: string }[]
  arc: { result: string; why: string }
  spf: { result: string; why: string }
  dmarc: string
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
    cmd: [DEBIAN_PYTHON, join(import.meta.dir, "peer-verdicts.py")],
    stdin: Buffer.from(JSON.stringify(given)),
    stdout: "pipe",
    stderr: "inherit",
  })
  const answer = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error("the script of the Python verdicts failed")
  return JSON.parse(answer) as PeerVerdicts[]
}
