import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { locate } from "../harness/peers"
import { noPostfix, type PostfixSettings, startPostfix } from "../harness/scratch-postfix"
import { nanosecondsOfFamily } from "./processor"
import { scratchFolder } from "./scratch"
import type { Sink } from "./sink"

const SESSIONS = 20

export interface Accepted {
  per_second: number
  messages: number
}

/** Why there is no Postfix to measure, or undefined. */
export function withoutPostfix(): string | undefined {
  return locate("smtp-source") ? noPostfix() : "needs postfix (apt-get install postfix)"
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

/** A scratch Postfix that hands what it accepts to the sink, over as many connections as the load has. */
export interface PostfixRelay extends AsyncDisposable {
  /** Offers `messages` of `bytes`: from the first one offered to the last one that the sink has. */
  burst(messages: number, bytes: number): Promise<{ per_second: number; cost_us: number }>
}

/** Leaving its scope stops it. */
export async function postfixRelay(sink: Sink): Promise<PostfixRelay> {
  const scratch = scratchFolder()
  const postfix = await start(scratch.path, {
    relayhost: `[127.0.0.1]:${sink.port}`,
    smtp_tls_security_level: "none",
    default_destination_concurrency_limit: String(SESSIONS),
    initial_destination_concurrency: String(SESSIONS),
  })
  const master = Number(readFileSync(join(scratch.path, "spool", "pid", "master.pid"), "utf8"))
  return {
    async burst(messages, bytes) {
      const before = sink.messages()
      const spent = nanosecondsOfFamily(master)
      const begun = performance.now()
      await postfix.take(messages, bytes)
      const seconds = ((await sink.received(before + messages)) - begun) / 1000
      const cost_us = (nanosecondsOfFamily(master) - spent) / 1000 / messages
      if (sink.messages() !== before + messages) throw new Error("Postfix delivered one twice")
      return { per_second: messages / seconds, cost_us }
    },
    async [Symbol.asyncDispose]() {
      await postfix[Symbol.asyncDispose]()
      scratch[Symbol.dispose]()
    },
  }
}

interface Postfix extends AsyncDisposable {
  /** Offers the messages; resolves with the seconds it took until each was accepted. */
  take(messages: number, bytes: number): Promise<number>
}

async function start(folder: string, own: PostfixSettings): Promise<Postfix> {
  const postfix = await startPostfix(folder, {
    myhostname: "postfix.bench.test",
    mynetworks: "127.0.0.0/8",
    smtpd_relay_restrictions: "permit_mynetworks, reject",
    in_flow_delay: "0", // it would hold the load back while deliveries lag behind
    ...own,
  })
  const from = ["-f", "sender@bench.test", "-t", "user@bench.test"]
  return {
    async take(messages, bytes) {
      const begun = performance.now()
      const load = ["-s", SESSIONS, "-m", messages, "-l", bytes, "-d"].map(String)
      const cmd = [
        locate("smtp-source") ?? "smtp-source",
        ...load,
        ...from,
        `127.0.0.1:${postfix.port}`,
      ]
      const code = await Bun.spawn({ cmd, stdin: "ignore" }).exited
      if (code !== 0) throw new Error(`smtp-source ended with ${code}`)
      return (performance.now() - begun) / 1000
    },
    [Symbol.asyncDispose]: () => postfix[Symbol.asyncDispose](),
  }
}

function countFiles(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).length
}
