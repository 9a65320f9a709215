import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { selfSigned } from "../fakes/smtp-certificate"
import { note } from "./peers"
import { noPostfix, type PostfixSettings, run, startPostfix } from "./scratch-postfix"
import { NEVER_MS } from "./waits"

/** For `describe.skipIf(withoutReceiver())`; told in the runner's summary. */
export function withoutReceiver(): boolean {
  const reason = noPostfix()
  if (reason) note(reason)
  return reason !== undefined
}

export interface Receiver extends AsyncDisposable {
  /** Of 127.0.0.1, with STARTTLS. */
  port: number
  /** Of its certificate, which is good for `mx.<the first domain>`. */
  certificate: string
  /** The folder of an address, a Maildir. */
  mailbox(address: string): string
  /** The mails that lie in the mailbox of an address, as they were stored. Waits for `count` of them. */
  mails(address: string, count: number): Promise<string[]>
  /** What Postfix logged so far. */
  log(): string
}

/**
 * A real Postfix with a mailbox for each of the addresses, in a folder of its own. In their domains
 * nobody else exists, and it sends nothing anywhere, as far as `own` settings say nothing else.
 */
export async function postfixReceiver(
  addresses: string[],
  own: PostfixSettings = {},
): Promise<Receiver> {
  const domains = [...new Set(addresses.map((address) => address.split("@")[1] ?? ""))]
  const folder = mkdtempSync(join(tmpdir(), "belfry-postfix-"))
  chmodSync(folder, 0o755) // its daemons run under a user of their own
  const certificate = selfSigned(`mx.${domains[0]}`)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  const log = () => {
    const path = join(folder, "mail.log")
    return existsSync(path) ? readFileSync(path, "utf8") : ""
  }
  const boxes = mailboxes(folder, addresses, domains)
  const settings = { ...boxes, ...withTls(folder, certificate), ...own }
  const mailbox = (address: string) => {
    const [user = "", domain = ""] = address.split("@")
    return join(folder, "mail", domain, user)
  }
  const postfix = await startPostfix(folder, settings).catch((error) => {
    remove()
    throw error
  })
  return {
    port: postfix.port,
    certificate: certificate.cert,
    log,
    mailbox,
    async mails(address, count) {
      const inbox = join(mailbox(address), "new")
      const deadline = performance.now() + NEVER_MS
      const kept = () => (existsSync(inbox) ? readdirSync(inbox) : [])
      while (kept().length < count) {
        if (performance.now() > deadline) throw new Error(`no mail for ${address}:\n${log()}`)
        await Bun.sleep(20)
      }
      return kept().map((name) => readFileSync(join(inbox, name), "latin1"))
    },
    async [Symbol.asyncDispose]() {
      try {
        await postfix[Symbol.asyncDispose]()
      } finally {
        remove()
      }
    },
  }
}

/** A mailbox an address, and the way of each mail in a log of its own. */
function mailboxes(folder: string, addresses: string[], domains: string[]): PostfixSettings {
  const [uid = 0, gid = 0] = ["-u", "-g"].map((flag) => Number(run("id", flag, "postfix")))
  mkdirSync(join(folder, "mail"))
  chownSync(join(folder, "mail"), uid, gid)
  const boxes = addresses.map((address) => {
    const [user, domain] = address.split("@")
    return `${address} ${domain}/${user}/\n`
  })
  writeFileSync(join(folder, "boxes"), boxes.join(""))
  return {
    maillog_file: join(folder, "mail.log"),
    maillog_file_prefixes: folder,
    myhostname: `mx.${domains[0]}`,
    virtual_mailbox_domains: domains.join(", "),
    virtual_mailbox_base: join(folder, "mail"),
    virtual_mailbox_maps: `texthash:${join(folder, "boxes")}`,
    virtual_minimum_uid: "1",
    virtual_uid_maps: `static:${uid}`,
    virtual_gid_maps: `static:${gid}`,
    default_transport: "discard",
    local_header_rewrite_clients: "", // what it keeps are the bytes that came
  }
}

function withTls(folder: string, { key, cert }: { key: string; cert: string }): PostfixSettings {
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 })
  writeFileSync(join(folder, "cert.pem"), cert)
  return {
    smtpd_tls_security_level: "may",
    smtpd_tls_cert_file: join(folder, "cert.pem"),
    smtpd_tls_key_file: join(folder, "key.pem"),
    smtpd_tls_loglevel: "1",
  }
}
