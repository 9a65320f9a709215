import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { freePort } from "./ports"
import { NEVER_MS } from "./waits"

const PROGRAM = "/usr/sbin/postfix"
const INSTALLED = "/etc/postfix"

/** Why no Postfix can be started here, or undefined. */
export function noPostfix(): string | undefined {
  if (!existsSync(PROGRAM)) return "needs postfix (apt-get install postfix)"
  return userInfo().uid === 0 ? undefined : "Postfix starts as root only"
}

/** A Postfix on a port of 127.0.0.1. Leaving its scope stops it; its folder stays. */
export interface ScratchPostfix extends AsyncDisposable {
  port: number
}

/** The settings of main.cf beyond those for which it runs in `folder`, on the loopback, alone. */
export type PostfixSettings = Record<string, string>

/**
 * Starts Postfix with all it writes in `folder`, which may hold more. It is nobody's destination
 * and relays for nobody, as far as `settings` says nothing else. Resolves when it greets.
 */
export async function startPostfix(
  folder: string,
  settings: PostfixSettings,
): Promise<ScratchPostfix> {
  const port = await freePort()
  const config = configure(folder, port, settings)
  const stop = async () => void run(PROGRAM, "-c", config, "stop")
  run(PROGRAM, "-c", config, "start")
  try {
    await answers(port)
  } catch (error) {
    await stop()
    throw error
  }
  return { port, [Symbol.asyncDispose]: stop }
}

/** Runs a program to its end; its output. Throws with that where it fails. */
export function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync({ cmd: command, stdin: "ignore" })
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`)
  return stdout.toString().trim()
}

function configure(folder: string, port: number, own: PostfixSettings): string {
  const config = join(folder, "config")
  cpSync(INSTALLED, config, { recursive: true, filter: (path) => !path.endsWith("/main.cf") })
  const services = readFileSync(join(INSTALLED, "master.cf"), "utf8")
    .replace(/^smtp +inet .*$/m, `127.0.0.1:${port} inet n - n - - smtpd`)
    .replace(/^(\S+ +(?:unix|unix-dgram|fifo|pass|inet) +\S+ +\S+ +)y /gm, "$1n ") // no chroot
  const log_daemon = "postlog unix-dgram n - n - 1 postlogd\n"
  writeFileSync(
    join(config, "master.cf"),
    /^postlog /m.test(services) ? services : services + log_daemon,
  )
  mkdirSync(join(folder, "spool"))
  mkdirSync(join(folder, "data"))
  run("chown", "postfix", join(folder, "data"))
  const settings = {
    compatibility_level: "3.6",
    queue_directory: join(folder, "spool"),
    data_directory: join(folder, "data"),
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    mydestination: "",
    mynetworks: "192.0.2.0/24", // nobody: whoever sends here is a stranger
    alias_maps: "",
    smtpd_relay_restrictions: "reject_unauth_destination",
    ...own,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  writeFileSync(join(config, "main.cf"), lines.join(""))
  return config
}

async function answers(port: number) {
  const deadline = performance.now() + NEVER_MS
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
