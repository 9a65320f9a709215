import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { claimFile, readSmallFile } from "../../src/core/small-file"
import { isSecret, newSecret } from "../../src/lib/signature"
import type { Context } from "../lib/context"
import { environment } from "../lib/environment"
import { usage } from "../lib/errors"
import { configFolder, originOf } from "../lib/profiles"

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

/** The one in the file of this server; made where there is none. */
function keptSecret(url: string): string {
  const folder = join(configFolder(environment), "listen")
  const path = join(folder, `${fileName(url)}.secret`)
  const read = () => readSmallFile(path, "Remove it: belfry makes it anew.")?.trim()
  const kept = read()
  if (kept !== undefined && isSecret(kept)) return kept
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (kept !== undefined) rmSync(path) // it held something else
  claimFile(path, `${newSecret()}\n`)
  return read() ?? newSecret()
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
