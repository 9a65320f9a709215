import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { locate } from "../harness/peers"
import { freePort } from "../harness/ports"
import { scratchFolder } from "./scratch"
import type { Sink } from "./sink"

const INSTALLED = "/etc/postfix"
const READY_MS = 10_000
const SESSIONS = 20

export interface Accepted {
  per_second: number
  messages: number
}

/** Why there is no Postfix to measure, or undefined. */
export function withoutPostfix(): string | undefined {
  if (!existsSync("/usr/sbin/postfix") || !locate("smtp-source")) return "postfix is not installed"
  if (userInfo().uid !== 0) return "Postfix starts as root only"
  return undefined
}

/**
 * Has a scratch Postfix accept `messages` of 1 KB as fast as it can, in sessions that are kept, and
 * put them on hold: nothing is delivered, only accepted. Rejects when a file is missing afterwards.
 */
export async function postfixAccepts(messages: number): Promise<Accepted> {
  using scratch = scratchFolder()
  const hold = { smtpd_end_of_data_restrictions: "check_client_access static:HOLD" }
  await using postfix = await start(scratch.path, hold)
  const seconds = await postfix.take(messages, 1024)
  const kept = countFiles(join(scratch.path, "spool", "hold"))
  if (kept !== messages) throw new Error(`Postfix kept ${kept} of ${messages} messages`)
  return { per_second: messages / seconds, messages }
}

/**
 * Has a scratch Postfix accept `messages` of `bytes` and hand them to the sink, over as many
 * connections as the load has: from the first one offered to the last one that the sink has.
 */
export async function postfixRelays(
  messages: number,
  { bytes, sink }: { bytes: number; sink: Sink },
): Promise<Accepted> {
  using scratch = scratchFolder()
  await using postfix = await start(scratch.path, {
    relayhost: `[127.0.0.1]:${sink.port}`,
    smtp_tls_security_level: "none",
    default_destination_concurrency_limit: String(SESSIONS),
    initial_destination_concurrency: String(SESSIONS),
  })
  const before = sink.messages()
  const begun = performance.now()
  await postfix.take(messages, bytes)
  const seconds = ((await sink.received(before + messages)) - begun) / 1000
  if (sink.messages() !== before + messages) throw new Error("Postfix delivered one twice")
  return { per_second: messages / seconds, messages }
}

interface Postfix extends AsyncDisposable {
  /** Offers the messages; resolves with the seconds it took until each was accepted. */
  take(messages: number, bytes: number): Promise<number>
}

async function start(folder: string, own: Record<string, string>): Promise<Postfix> {
  const port = await freePort()
  const config = configure(folder, port, own)
  run("/usr/sbin/postfix", "-c", config, "start")
  const stop = async () => run("/usr/sbin/postfix", "-c", config, "stop")
  try {
    await answers(port)
  } catch (error) {
    await stop()
    throw error
  }
  const from = ["-f", "sender@bench.test", "-t", "user@bench.test"]
  return {
    async take(messages, bytes) {
      const begun = performance.now()
      const load = ["-s", SESSIONS, "-m", messages, "-l", bytes, "-d"].map(String)
      const cmd = [locate("smtp-source") ?? "smtp-source", ...load, ...from, `127.0.0.1:${port}`]
      const code = await Bun.spawn({ cmd, stdin: "ignore" }).exited
      if (code !== 0) throw new Error(`smtp-source ended with ${code}`)
      return (performance.now() - begun) / 1000
    },
    [Symbol.asyncDispose]: stop,
  }
}

function configure(folder: string, port: number, own: Record<string, string>): string {
  const config = join(folder, "config")
  cpSync(INSTALLED, config, { recursive: true, filter: (path) => !path.endsWith("/main.cf") })
  const installed = readFileSync(join(INSTALLED, "master.cf"), "utf8")
  const services = installed
    .replace(/^smtp +inet .*$/m, `127.0.0.1:${port} inet n - n - - smtpd`)
    .replace(/^(\S+ +(?:unix|unix-dgram|fifo|pass|inet) +\S+ +\S+ +)y /gm, "$1n ") // no chroot
  writeFileSync(join(config, "master.cf"), services)
  mkdirSync(join(folder, "spool"))
  mkdirSync(join(folder, "data"))
  run("chown", "postfix", join(folder, "data"))
  const settings = {
    compatibility_level: "3.6",
    queue_directory: join(folder, "spool"),
    data_directory: join(folder, "data"),
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    myhostname: "postfix.bench.test",
    mydestination: "",
    mynetworks: "127.0.0.0/8",
    alias_maps: "",
    smtpd_relay_restrictions: "permit_mynetworks, reject",
    in_flow_delay: "0", // it would hold the load back while deliveries lag behind
    ...own,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(join(config, "main.cf"), lines.join(""))
  return config
}

async function answers(port: number) {
  const deadline = performance.now() + READY_MS
  while (performance.now() < deadline) {
    const greeted = Promise.withResolvers<boolean>()
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: () => greeted.resolve(true),
        close: () => greeted.resolve(false),
        error: () => greeted.resolve(false),
      },
    }).catch(() => undefined)
    if (socket && (await greeted.promise)) return void socket.end()
    await Bun.sleep(50)
  }
  throw new Error("the scratch Postfix does not answer")
}

function countFiles(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}

function run(...command: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync({ cmd: command, stdin: "ignore" })
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`)
}
