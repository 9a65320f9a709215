import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { configureProvider } from "../harness/configured-provider"
import { readLines } from "../harness/lines"
import { acceptHeld } from "./accept"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"
import { type Answers, post } from "./wrk"

const ACCEPTING = 64
const IN_FLIGHT = 20
/** Times the length of a measurement, as for mail. */
const WARM_UP = 3
const SDK_WARM = 3000
const SDK_MESSAGES = 3000
const READY_MS = 10_000
/** Longer than anybody needs between two texts. */
const SILENCE_MS = 30_000

const TEXT = {
  to: "+436601234567",
  from: "+15005550006",
  body: "Your order A-1029 has left us and will be with you tomorrow between nine and eleven. Track it: https://shop.example/t/A-1029",
}

export const texts: Bench = {
  name: "sms",
  title: "`POST /v1/sms` accepted, and accepted → at a local gateway, beside Twilio's own client",

  async run({ rounds, seconds }) {
    const mails = series("emails of 1 KB accepted, relay held, 64 connections", "/s")
    const accepted = series("texts accepted, gateway held, 64 connections", "/s")
    const sent = series("ours: accepted → at the gateway, 20 in flight", "/s")
    const drained = series("ours: stored texts → at the gateway, 20 in flight", "/s")
    const onNode = series("peer: `twilio` on Node, 20 in flight, nothing stored", "/s")
    const onOurs = series("the same on our runtime", "/s")
    await using gateway = await textGateway()

    for (let round = 0; round < rounds; round++) {
      mails.values.push((await acceptHeld(seconds)).per_second)
      accepted.values.push((await acceptTexts(seconds)).per_second)
      sent.values.push(await relayTexts(gateway, seconds))
      drained.values.push(await drainTexts(gateway, seconds))
      onNode.values.push(await byTwilio(gateway, "node"))
      onOurs.values.push(await byTwilio(gateway, process.execPath))
    }
    return {
      series: [mails, accepted, drained, sent, onNode, onOurs],
      verdicts: [
        atLeast("texts accepted, to emails", ratioOf(accepted, mails), 0.8),
        atLeast("stored ones sent, to `twilio` on Node", ratioOf(drained, onNode), 1.5),
      ],
      notes: [
        "Accepting: the relay and the gateway take connections and never answer. After each run the server was killed (`kill -9`), and its database held as many messages, contents, idempotency keys and queued events as there were answers.",
        "Sending: a text of one segment through the provider `twilio`, with 20 in flight, its outcome stored. Stored texts: scheduled for one moment, and measured from that moment, as the client has its texts at hand. The other figure is from the first text offered, over 20 connections, so it contains accepting, and nothing is demanded of it. Ours is warm (three times as long of the same load came before). The gateway had each text once.",
        `Twilio's client is warm, too: ${SDK_WARM.toLocaleString("en")} texts came before. It keeps nothing.`,
      ],
    }
  },
}

/** Settings under which a server sends its texts to this address. */
async function servedTexts({ path }: Scratch, gateway: string, in_flight: number) {
  const environment = {
    BELFRY_PROVIDERS_TWILIO_ENDPOINT: gateway,
    BELFRY_DELIVERY_CONCURRENCY: String(in_flight),
  }
  const key = await initialise(path, environment)
  await configureProvider(join(path, "data"), {
    provider: "twilio",
    credentials: { account_sid: `AC${"0".repeat(32)}`, auth_token: "0".repeat(32) },
    settings: { from: TEXT.from, allowed_countries: ["+43"] },
  })
  return serve(path, key, environment)
}

const send = (
  { path }: Scratch,
  server: { url: string; headers: Record<string, string> },
  scheduled_at: string | null = null,
) => {
  const body = join(path, "text.json")
  writeFileSync(body, JSON.stringify({ ...TEXT, scheduled_at }))
  const { url, headers } = server
  return (connections: number, seconds: number): Promise<Answers> =>
    post({ url: `${url}/v1/sms`, headers, body, connections, seconds })
}

async function acceptTexts(seconds: number): Promise<Answers> {
  using scratch = scratchFolder()
  const socket = { data() {} }
  using held = Bun.listen({ hostname: "127.0.0.1", port: 0, socket })
  await using server = await servedTexts(scratch, `http://127.0.0.1:${held.port}`, 1)
  const answers = await send(scratch, server)(ACCEPTING, seconds)
  await server.kill()
  using database = databaseOf(scratch.path)
  for (const table of ["messages", "message_contents", "idempotency"]) {
    requireEqual(table, answers.answered, countRows(database, table))
  }
  const queued = countRows(database, "events WHERE type = 'sms.queued'")
  requireEqual("events", answers.answered, queued)
  return answers
}

/** Between the last accepted text and the moment that all of them are scheduled for. */
const LEAD_MS = 3000

/** Texts that are scheduled for one moment, and measured from that moment. */
async function drainTexts(gateway: TextGateway, seconds: number): Promise<number> {
  using scratch = scratchFolder()
  await using server = await servedTexts(scratch, gateway.url, IN_FLIGHT)
  const { count: before } = await gateway.told()
  const warm = (await send(scratch, server)(IN_FLIGHT, WARM_UP * seconds)).answered
  await gateway.received(before + warm)
  const begun = Date.now() + seconds * 1000 + LEAD_MS
  const at = new Date(begun).toISOString()
  const { answered } = await send(scratch, server, at)(ACCEPTING, seconds)
  await Bun.sleep(Math.max(0, begun - Date.now()))
  const taken = ((await gateway.received(before + warm + answered)) - begun) / 1000
  await server.kill()
  requireEqual("texts at the gateway", warm + answered, (await gateway.told()).count - before)
  return answered / taken
}

async function relayTexts(gateway: TextGateway, seconds: number): Promise<number> {
  using scratch = scratchFolder()
  await using server = await servedTexts(scratch, gateway.url, IN_FLIGHT)
  const sending = send(scratch, server)
  const { count: before } = await gateway.told()
  const warm = (await sending(IN_FLIGHT, WARM_UP * seconds)).answered
  await gateway.received(before + warm)

  const begun = Date.now()
  const { answered } = await sending(IN_FLIGHT, seconds)
  const taken = ((await gateway.received(before + warm + answered)) - begun) / 1000
  await server.kill()
  using database = databaseOf(scratch.path)
  requireEqual("messages stored", warm + answered, countRows(database, "messages"))
  const told = countRows(database, "messages WHERE status = 'sent'")
  requireEqual("outcomes missing", 0, Math.max(0, warm + answered - told - 4 * IN_FLIGHT))
  requireEqual("texts at the gateway", warm + answered, (await gateway.told()).count - before)
  return answered / taken
}

interface TextGateway extends AsyncDisposable {
  url: string
  /** Texts that came so far, and when the last one did. */
  told(): Promise<{ count: number; at: number }>
  /** Resolves when so many came, with the moment of the last one; rejects when none came for a while. */
  received(count: number): Promise<number>
}

async function textGateway(): Promise<TextGateway> {
  const script = join(import.meta.dir, "text-gateway.ts")
  const child = Bun.spawn({ cmd: [process.execPath, script], stdout: "pipe", stderr: "inherit" })
  const url = await readLines(child.stdout).first(() => true, READY_MS)
  const told = async () => (await (await fetch(url)).json()) as { count: number; at: number }
  return {
    url,
    told,
    async received(wanted) {
      for (let seen = 0, moved = Date.now(); ; ) {
        const { count, at } = await told()
        if (count >= wanted) return at
        if (count > seen) moved = Date.now()
        seen = count
        if (Date.now() - moved > SILENCE_MS) throw new Error(`${count} of ${wanted} texts came`)
        await Bun.sleep(20)
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

/** Of a warm client, as ours is warm; on the given runtime. */
async function byTwilio(gateway: TextGateway, runtime: string): Promise<number> {
  const { count: before } = await gateway.told()
  const script = join(import.meta.dir, "twilio-sdk.mjs")
  const child = Bun.spawn({
    cmd: [runtime, script, gateway.url, String(SDK_WARM), String(SDK_MESSAGES)],
    stdin: Buffer.from(JSON.stringify(TEXT)),
    stdout: "pipe",
    stderr: "inherit",
  })
  const per_second = Number(await child.stdout.text())
  if ((await child.exited) !== 0) throw new Error("Twilio's client failed")
  requireEqual(
    "texts of the client",
    SDK_WARM + SDK_MESSAGES,
    (await gateway.told()).count - before,
  )
  return per_second
}
