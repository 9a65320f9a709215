import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import { selfSigned } from "../fakes/smtp-certificate"
import { note } from "./peers"
import { freePort } from "./ports"

const PROGRAM = "/usr/sbin/postfix"
const INSTALLED = "/etc/postfix"
const READY_MS = 20_000

/** For `describe.skipIf(withoutReceiver())`; told in the runner's summary. */
export function withoutReceiver(): boolean {
  const reason = !existsSync(PROGRAM)
    ? "needs postfix (apt-get install postfix)"
    : userInfo().uid !== 0
      ? "Postfix starts as root only"
      : undefined
  if (reason) note(reason)
  return reason !== undefined
}

export interface Receiver extends AsyncDisposable {
  /** Of 127.0.0.1, with STARTTLS. */
  port: number
  /** Of its certificate, which is good for `mx.<the first domain>`. */
  certificate: string
  /** The mails that lie in the mailbox of an address, as they were stored. Waits for `count` of them. */
  mails(address: string, count: number): Promise<string[]>
  /** What Postfix logged so far. */
  log(): string
}

/**
 * A real Postfix with a mailbox for each of the addresses, in a folder of its own. In their domains
 * nobody else exists, and it sends nothing anywhere.
 */
export async function postfixReceiver(addresses: string[]): Promise<Receiver> {
  const domains = [...new Set(addresses.map((address) => address.split("@")[1] ?? ""))]
  const folder = mkdtempSync(join(tmpdir(), "belfry-postfix-"))
  chmodSync(folder, 0o755) // its daemons run under a user of their own
  const port = await freePort()
  const certificate = selfSigned(`mx.${domains[0]}`)
  const config = configure(folder, { port, addresses, domains, certificate })
  const dispose = () => {
    Bun.spawnSync({ cmd: [PROGRAM, "-c", config, "stop"], stdin: "ignore" })
    rmSync(folder, { recursive: true, force: true })
  }
  const log = () => {
    const path = join(folder, "mail.log")
    return existsSync(path) ? readFileSync(path, "utf8") : ""
  }
  try {
    run(PROGRAM, "-c", config, "start")
    await answers(port)
  } catch (error) {
    dispose()
    throw error
  }
  return {
    port,
    certificate: certificate.cert,
    log,
    async mails(address, count) {
      const [user = "", domain = ""] = address.split("@")
      const inbox = join(folder, "mail", domain, user, "new")
      const deadline = performance.now() + READY_MS
      const kept = () => (existsSync(inbox) ? readdirSync(inbox) : [])
      while (kept().length < count) {
        if (performance.now() > deadline) throw new Error(`no mail for ${address}:\n${log()}`)
        await Bun.sleep(20)
      }
      return kept().map((name) => readFileSync(join(inbox, name), "latin1"))
    },
    async [Symbol.asyncDispose]() {
      dispose()
    },
  }
}

interface Wanted {
  port: number
  addresses: string[]
  domains: string[]
  certificate: { key: string; cert: string }
}

function configure(folder: string, { port, addresses, domains, certificate }: Wanted): string {
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
  const [uid = 0, gid = 0] = ["-u", "-g"].map((flag) => Number(run("id", flag, "postfix")))
  for (const name of ["spool", "data", "mail"]) mkdirSync(join(folder, name))
  for (const name of ["data", "mail"]) chownSync(join(folder, name), uid, gid)
  writeFileSync(join(folder, "key.pem"), certificate.key, { mode: 0o600 })
  writeFileSync(join(folder, "cert.pem"), certificate.cert)
  const boxes = addresses.map((address) => {
    const [user, domain] = address.split("@")
    return `${address} ${domain}/${user}/\n`
  })
  writeFileSync(join(folder, "boxes"), boxes.join(""))
  const settings = {
    compatibility_level: "3.6",
    maillog_file: join(folder, "mail.log"),
    maillog_file_prefixes: folder,
    queue_directory: join(folder, "spool"),
    data_directory: join(folder, "data"),
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    myhostname: `mx.${domains[0]}`,
    mydestination: "",
    mynetworks: "192.0.2.0/24", // nobody: whoever sends here is a stranger
    alias_maps: "",
    smtpd_relay_restrictions: "reject_unauth_destination",
    smtpd_tls_security_level: "may",
    smtpd_tls_cert_file: join(folder, "cert.pem"),
    smtpd_tls_key_file: join(folder, "key.pem"),
    smtpd_tls_loglevel: "1",
    virtual_mailbox_domains: domains.join(", "),
    virtual_mailbox_base: join(folder, "mail"),
    virtual_mailbox_maps: `texthash:${join(folder, "boxes")}`,
    virtual_minimum_uid: "1",
    virtual_uid_maps: `static:${uid}`,
    virtual_gid_maps: `static:${gid}`,
    default_transport: "discard",
    local_header_rewrite_clients: "", // what it keeps are the bytes that came
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

function run(...command: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync({ cmd: command, stdin: "ignore" })
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stdout}${stderr}`)
  return stdout.toString().trim()
}
