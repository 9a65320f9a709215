import { createECDH, generateKeyPairSync, randomBytes } from "node:crypto"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { settings } from "../../src/core/config"
import type { DeviceRow } from "../../src/devices/tables"
import { projects } from "../../src/identity/tables"
import { accept } from "../../src/messages/pipeline"
import { apnsPayload } from "../../src/push/providers/apns"
import { webPushPayload } from "../../src/push/providers/webpush"
import type { BuiltFrom } from "../../src/push/push-content"
import { openStore } from "../../src/store/open"
import { selfSigned } from "../fakes/smtp-certificate"
import { configureProvider } from "../harness/configured-provider"
import { readLines } from "../harness/lines"
import { addDevice, pushLetter } from "../push/pushes"
import { atLeast, type Bench, ratioOf, requireEqual, series } from "./bench"
import { type Scratch, scratchFolder } from "./scratch"
import { countRows, databaseOf, initialise, serve } from "./serving"

const IN_FLIGHT = 50
/** Sent before the clock runs: what runs first is slow, here as there. */
const WARM = 10_000
const A_SECOND = 4000
const READY_MS = 10_000
const SILENCE_MS = 30_000
const GROUP = 500

const CONTENT = {
  title: "Your order has shipped",
  body: "It will be with you tomorrow between nine and eleven.",
  data: { order: "A-1029" },
  url: "https://shop.example.com/orders/A-1029",
}

export const push: Bench = {
  name: "push",
  title: "Stored push messages → at a local service, beside bare HTTP/2 and the package `web-push`",

  async run({ rounds, seconds }) {
    const apns = series("ours: stored messages → APNs over HTTP/2", "/s")
    const bare = series("limit: bare HTTP/2 `fetch` of the same request", "/s")
    const web = series("ours: stored messages → Web Push over HTTPS", "/s")
    const on_node = series("peer: `web-push` on Node, nothing stored", "/s")
    const on_ours = series("the same on our runtime", "/s")
    using scratch = scratchFolder()
    await using sink = await pushSink(scratch)
    const messages = A_SECOND * seconds

    for (let round = 0; round < rounds; round++) {
      apns.values.push(await drain(sink, messages, apnsLane(sink)))
      bare.values.push(await bareHttp2(sink, messages))
      web.values.push(await drain(sink, messages, webLane(sink)))
      on_node.values.push(await byWebPush(sink, messages, "node"))
      on_ours.values.push(await byWebPush(sink, messages, process.execPath))
    }
    return {
      series: [apns, bare, web, on_node, on_ours],
      verdicts: [
        atLeast("APNs, to bare HTTP/2", ratioOf(apns, bare), 0.25),
        atLeast("Web Push, to `web-push` on our runtime", ratioOf(web, on_ours), 1.2),
      ],
      notes: [
        "The package is faster on our runtime than on Node, so the faster one is the peer.",
        `Each figure is of ${messages.toLocaleString("en")} messages with ${IN_FLIGHT} in flight (half of \`delivery.concurrency\`, the share of one project), behind ${WARM.toLocaleString("en")} for nobody's clock. Ours are stored before the server starts, and the figure is of the time between the first and the last of them at the service. Their outcomes are stored, the service had each message once, and the peers keep nothing.`,
      ],
    }
  },
}

interface PushSink extends AsyncDisposable {
  apns: string
  web: string
  cert: string
  /** Resolves when so many came, with the messages a second behind the first `WARM`; rejects when none comes for a while. */
  rateOf(wanted: number): Promise<number>
}

async function pushSink({ path }: Scratch): Promise<PushSink> {
  const { key, cert } = selfSigned("push.test")
  const files = [join(path, "key.pem"), join(path, "cert.pem")] as const
  writeFileSync(files[0], key)
  writeFileSync(files[1], cert)
  const script = join(import.meta.dir, "push-sink.ts")
  const cmd = [process.execPath, script, ...files]
  const child = Bun.spawn({ cmd, stdout: "pipe", stderr: "inherit" })
  const line = await readLines(child.stdout).first(() => true, READY_MS)
  const { told, ...urls } = JSON.parse(line) as Record<"apns" | "web" | "told", string>
  const ask = async (method: "GET" | "DELETE") =>
    (await (await fetch(`${told}?first=${WARM}`, { method })).json()) as {
      count: number
      from: number
      last: number
    }
  return {
    ...urls,
    cert: files[1],
    async rateOf(wanted) {
      for (let seen = 0, moved = Date.now(); ; ) {
        const { count } = await ask("GET")
        if (count >= wanted) break
        if (count > seen) moved = Date.now()
        seen = count
        if (Date.now() - moved > SILENCE_MS) throw new Error(`${count} of ${wanted} pushes came`)
        await Bun.sleep(20)
      }
      const { count, from, last } = await ask("DELETE")
      requireEqual("push messages at the service", wanted, count)
      return ((wanted - WARM) / (last - from)) * 1000
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

interface PushLane {
  device: Partial<DeviceRow>
  environment: Record<string, string>
  configure(data_dir: string): Promise<void>
}

/** Stores messages in a new box, serves it, and returns how many a second leave it. */
async function drain(sink: PushSink, messages: number, lane: PushLane): Promise<number> {
  using scratch = scratchFolder()
  const environment = { ...lane.environment, BELFRY_DELIVERY_CONCURRENCY: String(2 * IN_FLIGHT) }
  const key = await initialise(scratch.path, environment)
  const data_dir = join(scratch.path, "data")
  await lane.configure(data_dir)
  await fill(data_dir, WARM + messages, lane.device)
  await using server = await serve(scratch.path, key, environment)
  const rate = await sink.rateOf(WARM + messages)
  await server.stop()
  using database = databaseOf(scratch.path)
  const sent = countRows(database, "messages WHERE status = 'sent'")
  requireEqual("outcomes stored", WARM + messages, sent)
  return rate
}

async function fill(data_dir: string, count: number, device: Partial<DeviceRow>) {
  const own = { data_dir, database_url: null, "storage.sqlite.path": null }
  const store = await openStore({ ...settings(), ...own })
  const [project] = await store.read.select().from(projects)
  if (!project) throw new Error("the box has no project")
  const { id: project_id, account_id } = project
  const row = await addDevice(store, project_id, device)
  for (let left = count; left > 0; left -= GROUP) {
    const letters = Array.from({ length: Math.min(GROUP, left) }, () =>
      pushLetter(row, { account_id }, CONTENT),
    )
    await store.tx((tx) => accept(tx, letters))
  }
  await store.close()
}

const TOKEN = "a1".repeat(32)

function apnsLane({ apns, cert }: PushSink): PushLane {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const private_key = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const ids = { key_id: "ABC123DEFG", team_id: "DEF123GHIJ", bundle_id: "com.example.app" }
  const kind = "push_provider" as const
  return {
    device: { platform: "ios", provider: "apns", token: TOKEN },
    environment: { BELFRY_PROVIDERS_APNS_ENDPOINT: apns, BELFRY_PROVIDERS_APNS_CA: cert },
    configure: (data_dir) =>
      configureProvider(data_dir, {
        ...{ kind, name: "apns", provider: "apns" },
        credentials: { ...ids, private_key, apns_environment: "production" },
      }),
  }
}

const BUILT: BuiltFrom = {
  push_id: "019a0000-0000-7000-8000-000000000001",
  ...{ ack_token: "A".repeat(22), badge: null, content: { ...CONTENT, priority: "high" } },
}

/** The same request, as long as ours. */
async function bareHttp2(sink: PushSink, messages: number): Promise<number> {
  const headers = {
    ...{ "apns-topic": "com.example.app", "apns-push-type": "alert", "apns-priority": "10" },
    ...{ "apns-expiration": "1796000000" },
    authorization: `bearer ${"a".repeat(190)}`,
  }
  const payload = JSON.parse(apnsPayload(BUILT))
  const url = `${sink.apns}/3/device/${TOKEN}`
  const script = join(import.meta.dir, "bare-http2.ts")
  const counts = [WARM, messages, IN_FLIGHT].map(String)
  const cmd = [process.execPath, script, url, sink.cert, ...counts]
  return measured(sink, messages, cmd, { headers, payload })
}

const SUBJECT = "mailto:ops@example.com"

/** A browser that nobody has: it gets what only it could read. */
function subscriber({ web }: PushSink) {
  const pair = createECDH("prime256v1")
  const p256dh = pair.generateKeys("base64url")
  const keys = { p256dh, auth: randomBytes(16).toString("base64url") }
  return { endpoint: `${web}/push/${"a".repeat(150)}`, keys }
}

function webLane(sink: PushSink): PushLane {
  const { endpoint: token, keys } = subscriber(sink)
  const kind = "push_provider" as const
  return {
    device: { platform: "web", provider: "webpush", token, keys },
    environment: {
      ...{ BELFRY_PROVIDERS_ALLOW_PRIVATE: "127.0.0.1/32", NODE_EXTRA_CA_CERTS: sink.cert },
    },
    configure: (data_dir) =>
      configureProvider(data_dir, {
        ...{ kind, name: "webpush", provider: "webpush", credentials: { subject: SUBJECT } },
      }),
  }
}

/** By the package alone, with the same payload. */
async function byWebPush(sink: PushSink, messages: number, runtime: string): Promise<number> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const { d = "", x = "", y = "" } = privateKey.export({ format: "jwk" })
  const point = [Buffer.of(4), Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]
  const publicKey = Buffer.concat(point).toString("base64url")
  const vapidDetails = { subject: SUBJECT, publicKey, privateKey: d }
  const options = { TTL: 2_419_200, urgency: "high", vapidDetails }
  const payload = webPushPayload(BUILT)
  const script = join(import.meta.dir, "web-push.mjs")
  const cmd = [runtime, script, ...[WARM, messages, IN_FLIGHT].map(String)]
  return measured(sink, messages, cmd, { subscription: subscriber(sink), payload, options })
}

/** Of a peer that prints how many a second it sent. */
async function measured(sink: PushSink, messages: number, cmd: string[], given: object) {
  const child = Bun.spawn({
    ...{ cmd, stdin: Buffer.from(JSON.stringify(given)), stdout: "pipe", stderr: "inherit" },
    env: { ...process.env, NODE_EXTRA_CA_CERTS: sink.cert },
  })
  const per_second = Number(await child.stdout.text())
  if ((await child.exited) !== 0) throw new Error(`${cmd.join(" ")} failed`)
  await sink.rateOf(WARM + messages)
  return per_second
}
