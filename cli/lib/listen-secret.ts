import { randomBytes } from "node:crypto"
import { linkSync, mkdirSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Context } from "./context"
import { environment } from "./environment"
import { usage } from "./errors"
import { readOwnFile } from "./folder-files"
import { configFolder, originOf } from "./profiles"

const SECRET = /^whsec_[A-Za-z0-9+/]{32,}={0,2}$/

/**
 * What deliveries to `belfry listen` are signed with. This machine makes it once for a server and
 * keeps it, so every sign-in and every key of that server has the same one. The server learns it
 * when the stream opens.
 */
export function listenSecret({ connection, output }: Context): string {
  try {
    return keptSecret(connection().url)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    void output.note(`The signing secret cannot be stored, so this run has a new one: ${reason}`)
    return newSecret()
  }
}

const newSecret = () => `whsec_${randomBytes(32).toString("base64")}`

/** The one in the file of this server; made where there is none. */
function keptSecret(url: string): string {
  const folder = join(configFolder(environment), "listen")
  const path = join(folder, `${fileName(url)}.secret`)
  const kept = readSecret(path)
  if (kept) return kept

  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.new`
  writeFileSync(draft, `${newSecret()}\n`, { mode: 0o600 })
  try {
    if (kept === "") unlinkSync(path) // it held something else
    linkSync(draft, path) // fails where another command was quicker: then theirs counts
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
  } finally {
    unlinkSync(draft)
  }
  return readSecret(path) || newSecret()
}

/** Undefined where there is no file; "" where it does not hold a secret. */
function readSecret(path: string): string | undefined {
  const text = readOwnFile(path)?.trim()
  return text === undefined || SECRET.test(text) ? text : ""
}

/** `http-loopback-8080`, `https-mail.example.test`: safe as the name of a file. */
const fileName = (url: string) =>
  originOf(url)
    .replace("://", "-")
    .replace(/:$/, "")
    .replaceAll(/[^\w.-]/g, "-")

/** As people write it: `localhost:3000/hooks`, `:3000`, or a whole URL. */
export function receiverAddress(text: string): string {
  const whole = text.includes("://") ? text : `http://${text.replace(/^(?=:)/, "localhost")}`
  const is_web = /^https?:\/\//i.test(whole)
  if (!is_web || !URL.canParse(whole) || new URL(whole).hostname === "") {
    throw usage(`"${text}" is not the address of a receiver`, "write localhost:3000/hooks")
  }
  return new URL(whole).href
}
