import { createPrivateKey, sign } from "node:crypto"
import { join } from "node:path"
import { openssl } from "../../src/core/rsa"
import { atLeast, type Bench, ratioOf, series } from "./bench"
import { textOf } from "./mail"
import { postfixRelays, withoutPostfix } from "./postfix"
import { relayed } from "./relayed"
import { rsaKey } from "./signing-domain"
import { countingSink, type Sink } from "./sink"

const BYTES = 4096
const POSTFIX_MESSAGES = 4000
const NODEMAILER_WARM = 3000
const NODEMAILER_MESSAGES = 2000

export const deliver: Bench = {
  name: "deliver",
  title: "accepted → at `smtp-sink`, 4 KB, 20 connections, unsigned and with DKIM RSA-2048",

  async run({ rounds, seconds }) {
    const absent = withoutPostfix()
    if (absent) throw new Error(absent) // its sink is what everybody delivers to
    const plain = series("ours, unsigned", "/s")
    const accepted = series("ours, unsigned: accepted meanwhile", "/s")
    const postfix = series("peer: Postfix, `smtp-source` → `smtp-sink`", "/s")
    const signs = series("limit: RSA-2048 signatures of the runtime, one at a time", "/s")
    const faster = series("limit: the same by the system's OpenSSL, which ours uses", "/s")
    const signed = series("ours, DKIM RSA-2048", "/s")
    const acceptedSigned = series("ours, DKIM RSA-2048: accepted meanwhile", "/s")
    const nodemailer = series(
      "peer: nodemailer pool with DKIM on our runtime, nothing stored",
      "/s",
    )
    const onNode = series("the same on Node", "/s")
    await using sink = await countingSink()

    for (let round = 0; round < rounds; round++) {
      const ours = await relayed(sink, { bytes: BYTES, seconds, signed: false })
      plain.values.push(ours.per_second)
      accepted.values.push(ours.accepted_per_second)
      postfix.values.push(
        (await postfixRelays(POSTFIX_MESSAGES, { bytes: BYTES, sink })).per_second,
      )
      signs.values.push(await signatures(seconds))
      faster.values.push(opensslSignatures(seconds))
      const load = { bytes: BYTES, seconds, signed: true }
      const withKey = await relayed(sink, load)
      signed.values.push(withKey.per_second)
      acceptedSigned.values.push(withKey.accepted_per_second)
      nodemailer.values.push(await byNodemailer(sink, process.execPath))
      onNode.values.push(await byNodemailer(sink, "node"))
    }
    return {
      series: [plain, accepted, postfix, signs, faster, signed, acceptedSigned, nodemailer, onNode],
      verdicts: [
        atLeast("unsigned, to Postfix", ratioOf(plain, postfix), 5),
        atLeast("signed, to one core's signatures", ratioOf(signed, signs), 0.6),
        atLeast("signed, to nodemailer with DKIM on Node", ratioOf(signed, onNode), 2),
        atLeast("signed, to nodemailer with DKIM on our runtime", ratioOf(signed, nodemailer), 2),
      ],
      notes: [
        "Every message is a plain text of 4 KB, so all send the same bytes; of html alone ours would make a text part, too. From the first message offered until the sink has the last one. Ours is warm (three times as long of the same load came before), posted one by one over 20 connections, stored durably, delivered over 20; Postfix gets the same number of sessions and delivers over as many.",
        "The sink had each message once; every message with an outcome was signed, or none; the server was killed (`kill -9`) before its rows were counted, and no more outcomes were missing than were on the wire.",
        `nodemailer is warm, too: ${NODEMAILER_WARM.toLocaleString("en")} messages came before. Its own runtime is Node; ours makes it faster, so both are judged.`,
      ],
    }
  },
}

async function signatures(seconds: number): Promise<number> {
  const key = createPrivateKey(rsaKey())
  const data = Buffer.alloc(600, "a")
  const once = () =>
    new Promise<void>((resolve, reject) =>
      sign("sha256", data, key, (error) => (error ? reject(error) : resolve())),
    )
  const begun = performance.now()
  let count = 0
  for (; performance.now() - begun < seconds * 1000; count++) await once()
  return count / ((performance.now() - begun) / 1000)
}

/** 0 where the system has none: then ours signs by the runtime, too. */
function opensslSignatures(seconds: number): number {
  const own = openssl()
  if (!own) return 0
  const key = createPrivateKey(rsaKey())
  const data = Buffer.alloc(600, "a")
  const begun = performance.now()
  let count = 0
  for (; performance.now() - begun < seconds * 1000; count++) own(data, key)
  return count / ((performance.now() - begun) / 1000)
}

/** Of a warm pool, as ours is warm; on the given runtime. */
async function byNodemailer(sink: Sink, runtime: string): Promise<number> {
  const before = sink.messages()
  const script = join(import.meta.dir, "nodemailer-pool.mjs")
  const words = [sink.port, NODEMAILER_WARM, NODEMAILER_MESSAGES].map(String)
  const child = Bun.spawn({
    cmd: [runtime, script, ...words],
    stdin: Buffer.from(JSON.stringify({ privateKey: rsaKey(), text: textOf(BYTES) })),
    stdout: "pipe",
    stderr: "inherit",
  })
  const per_second = Number(await child.stdout.text())
  if ((await child.exited) !== 0) throw new Error("nodemailer failed")
  await sink.received(before + NODEMAILER_WARM + NODEMAILER_MESSAGES)
  return per_second
}
