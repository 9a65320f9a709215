import { copyFileSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { selfSigned } from "../fakes/smtp-certificate"
import { readLines } from "../harness/lines"
import { freePort } from "../harness/ports"
import { noPostfix, startPostfix } from "../harness/scratch-postfix"
import { type Scratch, scratchFolder } from "./scratch"

/** As released at the time of writing; its own newest dependencies may not resolve everywhere. */
const HARAKA = "Haraka@3.3.4"
const NOT_NEWER = "--before=2026-03-01"
const READY_MS = 30_000

export const PASSWORD = "secret"

/** A server that takes mail in a process of ours or of a peer. */
export interface MailTaker extends AsyncDisposable {
  port: number
  /** Undefined where it is many processes. */
  pid: number | undefined
}

/** A certificate as files of a folder, the same for every peer. */
export function certificateIn(folder: string): { cert: string; key: string } {
  const { cert, key } = selfSigned("bench.test")
  const files = { cert: join(folder, "tls_cert.pem"), key: join(folder, "tls_key.pem") }
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
  return files
}

/** smtp-server on our runtime, with handlers that do nothing. */
export async function emptySubmission(folder: string, password = PASSWORD): Promise<MailTaker> {
  const { cert, key } = certificateIn(folder)
  const script = join(import.meta.dir, "empty-submission.ts")
  const child = Bun.spawn({
    cmd: [process.execPath, script, cert, key, password],
    stdout: "pipe",
    stderr: "inherit",
  })
  const port = Number(await readLines(child.stdout).first(() => true, READY_MS))
  return { port, pid: child.pid, [Symbol.asyncDispose]: () => end(child) }
}

/** Haraka in a scratch folder. It is gone with its scope. */
export function installHaraka(): Scratch {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  const flags = ["--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"]
  const install = (...more: string[]) =>
    Bun.spawnSync({
      cmd: ["npm", "install", ...flags, "--loglevel=error", ...more],
      cwd: scratch.path,
      stdio: ["ignore", "ignore", "pipe"],
    })
  const first = install(HARAKA)
  const made = first.exitCode === 0 ? first : install("Haraka@3", NOT_NEWER)
  if (made.exitCode === 0) return scratch
  scratch[Symbol.dispose]()
  throw new Error(`Haraka cannot be installed: ${made.stderr.toString()}`)
}

/** One process of Haraka whose queue writes a file for each mail, with an fsync, in `folder`. */
export async function startHaraka(installed: string, folder: string): Promise<MailTaker> {
  const port = await freePort()
  const package_folder = join(installed, "node_modules/Haraka")
  for (const name of ["config", "plugins", "queue"]) mkdirSync(join(folder, name))
  certificateIn(join(folder, "config"))
  copyFileSync(join(package_folder, "config/connection.ini"), join(folder, "config/connection.ini"))
  copyFileSync(
    join(import.meta.dir, "haraka-fsync-queue.cjs"),
    join(folder, "plugins/fsync_queue.js"),
  )
  const files = {
    "smtp.ini": `listen=127.0.0.1:${port}\nnodes=0\n`,
    plugins: "tls\nauth/flat_file\nfsync_queue\n",
    "auth_flat_file.ini": `[core]\nmethods=PLAIN,LOGIN\n[users]\nsvc=${PASSWORD}\n`,
    me: "haraka.bench.test\n",
    loglevel: "ERROR\n",
  }
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, "config", name), text)
  const child = Bun.spawn({
    cmd: ["node", join(package_folder, "bin/haraka"), "-c", folder],
    env: { PATH: process.env.PATH ?? "", HARAKA: folder },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  })
  try {
    await listens(port)
  } catch (error) {
    await end(child)
    throw error
  }
  return { port, pid: child.pid, [Symbol.asyncDispose]: () => end(child) }
}

/** Resolves when something takes connections on the port. */
export async function listens(port: number) {
  const deadline = performance.now() + READY_MS
  while (performance.now() < deadline) {
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: { data() {} },
    }).catch(() => undefined)
    if (socket) return void socket.end()
    await Bun.sleep(50)
  }
  throw new Error(`nothing listens on port ${port}`)
}

/** A scratch Postfix that accepts by TLS and holds. It has no AUTH: that needs a SASL server beside it. */
export async function holdingPostfix(folder: string): Promise<MailTaker> {
  const absent = noPostfix()
  if (absent) throw new Error(absent)
  const { cert, key } = certificateIn(folder)
  const postfix = await startPostfix(folder, {
    myhostname: "postfix.bench.test",
    mynetworks: "127.0.0.0/8",
    smtpd_relay_restrictions: "permit_mynetworks, reject",
    smtpd_end_of_data_restrictions: "check_client_access static:HOLD",
    smtpd_tls_security_level: "may",
    smtpd_tls_cert_file: cert,
    smtpd_tls_key_file: key,
    in_flow_delay: "0",
  })
  return { port: postfix.port, pid: undefined, [Symbol.asyncDispose]: postfix[Symbol.asyncDispose] }
}

async function end(child: { kill(): void; exited: Promise<number> }) {
  child.kill()
  await child.exited
}
