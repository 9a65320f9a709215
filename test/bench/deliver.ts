import { createPrivateKey, sign } from "node:crypto"
import { join } from "node:path"
import { openssl } from "../../src/core/rsa"
import { atLeast, type Bench, ratioOf, series } from "./bench"
import { textOf } from "./mail"
import { postfixRelay, withoutPostfix } from "./postfix"
import { relayingServer } from "./relayed"
import { rsaKey } from "./signing-domain"
import { countingSink, type Sink } from "./sink"

const BYTES = 4096
/** Messages for each second of a measurement. */
const POSTFIX_MESSAGES = 800
const NODEMAILER_WARM = 600
const NODEMAILER_MESSAGES = 400

export const deliver: Bench = {
  name: "deliver",
  title: "accepted → at `smtp-sink`, 4 KB, 20 connections, unsigned and with DKIM RSA-2048",

  async run({ rounds, seconds }) {
    const absent = withoutPostfix()
    if (absent) throw new Error(absent) // its sink is what everybody delivers to
    const plain = series("ours, unsigned", "/s")
    const accepted = series("ours, unsigned: accepted meanwhile", "/s")
    const cost = series("ours, unsigned: processor time a message", "µs")
    const postfix = series("peer: Postfix, `smtp-source` → `smtp-sink`", "/s")
    const postfixCost = series("peer: Postfix: processor time a message", "µs")
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
    await using ours = await relayingServer(sink, seconds, { bytes: BYTES, signed: false })
    await using withKey = await relayingServer(sink, seconds, { bytes: BYTES, signed: true })
    await using relay = await postfixRelay(sink)
    await relay.burst(POSTFIX_MESSAGES * seconds, BYTES)

    for (let round = 0; round < rounds; round++) {
      const own = await ours.burst(seconds)
      plain.values.push(own.per_second)
      accepted.values.push(own.accepted_per_second)
      cost.values.push(own.cost_us)
      const theirs = await relay.burst(POSTFIX_MESSAGES * seconds, BYTES)
      postfix.values.push(theirs.per_second)
      postfixCost.values.push(theirs.cost_us)
      signs.values.push(await signatures(seconds))
      faster.values.push(opensslSignatures(seconds))
      const own_signed = await withKey.burst(seconds)
      signed.values.push(own_signed.per_second)
      acceptedSigned.values.push(own_signed.accepted_per_second)
      nodemailer.values.push(await byNodemailer(sink, seconds, process.execPath))
      onNode.values.push(await byNodemailer(sink, seconds, "node"))
    }
    await ours.end()
    await withKey.end()
    return {
      series: [
        ...[plain, accepted, cost, postfix, postfixCost, signs, faster],
        ...[signed, acceptedSigned, nodemailer, onNode],
      ],
      verdicts: [
        atLeast("unsigned, to Postfix", ratioOf(plain, postfix), 3),
        atLeast("processor time of Postfix, to ours unsigned", ratioOf(postfixCost, cost), 3.5),
        atLeast("signed, to one core's signatures", ratioOf(signed, signs), 0.6),
        atLeast("signed, to nodemailer with DKIM on Node", ratioOf(signed, onNode), 2),
        atLeast("signed, to nodemailer with DKIM on our runtime", ratioOf(signed, nodemailer), 2),
      ],
      notes: [
        "Every message is a plain text of 4 KB, so all send the same bytes; of html alone ours would make a text part, too. From the first message offered until the sink has the last one. Ours is posted one by one over 20 connections, stored durably, delivered over 20; Postfix gets the same number of sessions and delivers over as many.",
        `Ours and Postfix stay up, and bursts are sent to them in turn. Both are warm: three times as long of the same load came before to ours, ${(POSTFIX_MESSAGES * seconds).toLocaleString("en")} messages to Postfix. Processor time is that of all threads and processes of each, also of those that ended.`,
        "The sink had each message once; every message with an outcome was signed, or none; in the end the server was killed (`kill -9`) before its rows were counted, and no more outcomes were missing than were on the wire.",
        `nodemailer is warm, too: ${(NODEMAILER_WARM * seconds).toLocaleString("en")} messages came before. Its own runtime is Node; ours makes it faster, so both are judged.`,
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
async function byNodemailer(sink: Sink, seconds: number, runtime: string): Promise<number> {
  const before = sink.messages()
  const script = join(import.meta.dir, "nodemailer-pool.mjs")
  const [warm, messages] = [NODEMAILER_WARM * seconds, NODEMAILER_MESSAGES * seconds]
  const words = [sink.port, warm, messages].map(String)
  const child = Bun.spawn({
    cmd: [runtime, script, ...words],
    stdin: Buffer.from(JSON.stringify({ privateKey: rsaKey(), text: textOf(BYTES) })),
    stdout: "pipe",
    stderr: "inherit",
  })
  const per_second = Number(await child.stdout.text())
  if ((await child.exited) !== 0) throw new Error("nodemailer failed")
  await sink.received(before + warm + messages)
  return per_second
}
