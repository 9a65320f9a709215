import { execFileSync } from "node:child_process"
import { sign } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { GameCenterAssertion } from "../../src/auth/social/game-center"
import { millis } from "../../src/core/time"

export const BUNDLE = "com.example.game"

const SIGNER = ["keyUsage=critical,digitalSignature", "extendedKeyUsage=codeSigning"]
const AUTHORITY = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"]

/** What one vector changes of a right assertion, before or after it is signed. */
export interface Vector {
  signed?: Partial<GameCenterAssertion>
  sent?: Partial<GameCenterAssertion>
  algorithm?: string
  key?: string
}

/** Game Center: a host with certificates of an authority of its own, and what it signs of players. */
export function gameCenter() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-game-center-"))
  const at = (name: string) => join(folder, name)
  const read = (name: string) => readFileSync(at(name))
  const openssl = (...args: string[]) =>
    execFileSync("openssl", args, { cwd: folder, stdio: ["ignore", "pipe", "ignore"] })
  const newKey = (name: string, ...kind: string[]) =>
    openssl("genpkey", "-out", `${name}.key`, "-algorithm", ...kind)
  for (const name of ["root", "forged", "between", "host"])
    newKey(name, "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
  for (const name of ["leaf", "other"]) newKey(name, "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
  for (const name of ["root", "forged"]) {
    const own = ["-x509", "-key", `${name}.key`, "-out", `${name}.pem`, "-days", "2"]
    openssl("req", ...own, "-subj", "/CN=Root of games")
  }
  /** A certificate `<name>.pem` of a key, by an issuer. */
  const issue = (
    name: string,
    key: string,
    issuer: string,
    extensions: string[],
    days = 1,
    by_key = issuer,
  ) => {
    writeFileSync(at("extensions"), extensions.join("\n"))
    openssl("req", "-new", "-key", `${key}.key`, "-subj", `/CN=${name}`, "-out", "request")
    const by = ["-CA", `${issuer}.pem`, "-CAkey", `${by_key}.key`]
    const rest = ["-extfile", "extensions", "-days", `${days}`, "-out", `${name}.pem`]
    openssl("x509", "-req", "-in", "request", ...by, "-CAcreateserial", ...rest)
  }
  const der = (name: string) => openssl("x509", "-in", `${name}.pem`, "-outform", "DER")
  issue("between", "between", "root", AUTHORITY)
  issue("host", "host", "root", ["subjectAltName=DNS:localhost"])

  const files = new Map<string, Uint8Array<ArrayBuffer>>()
  const asked: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: read("host.key"), cert: read("host.pem") },
    fetch(request) {
      const { pathname } = new URL(request.url)
      asked.push(pathname)
      const file = files.get(pathname)
      return file ? new Response(file) : new Response("nothing here", { status: 404 })
    },
  })
  const host = `localhost:${server.port}`
  const put = (path: string, file: Uint8Array | string) =>
    files.set(path, new Uint8Array(Buffer.from(file as Uint8Array)))

  const found = [...SIGNER, `authorityInfoAccess=caIssuers;URI:https://${host}/between.crt`]
  put("/between.crt", der("between"))
  issue("leaf", "leaf", "between", found)
  put("/gc-prod-1.cer", der("leaf"))
  issue("bundled", "leaf", "between", SIGNER)
  put("/bundled.pem", Buffer.concat([read("bundled.pem"), read("between.pem")]))
  put("/lonely.cer", der("bundled"))
  issue("forgery", "leaf", "forged", SIGNER)
  put("/forged.cer", der("forgery"))
  issue("expired", "leaf", "root", SIGNER, -1)
  put("/expired.cer", der("expired"))
  issue("page", "leaf", "root", [...SIGNER.slice(0, 1), "extendedKeyUsage=serverAuth"])
  put("/page.cer", der("page"))
  issue("reader", "leaf", "root", ["keyUsage=critical,keyEncipherment", ...SIGNER.slice(1)])
  put("/reader.cer", der("reader"))
  issue("authority", "leaf", "root", AUTHORITY)
  put("/authority.cer", der("authority"))
  put("/garbage.cer", "no certificate")
  put("/large.cer", Buffer.alloc(100_000, 48))
  issue("below", "other", "bundled", SIGNER, 1, "leaf")
  const line = ["below", "bundled", "between"].map((name) => read(`${name}.pem`))
  put("/below.pem", Buffer.concat(line))
  issue("curve", "host", "root", SIGNER)
  put("/curve.cer", der("curve"))
  const url = (name = "gc-prod-1.cer") => `https://${host}/${name}`

  /** A right assertion of a player, but for what the vector changes. */
  function assertion(player_id: string, vector: Vector = {}): GameCenterAssertion {
    const right = { player_id, bundle_id: BUNDLE, timestamp: millis(), salt: "Rug+0Q==" }
    const { signed, sent, algorithm = "sha256", key = "leaf" } = vector
    const fields = { ...right, public_key_url: url(), signature: "", ...signed }
    const signature = sign(algorithm, contentOf(fields), read(`${key}.key`)).toString("base64")
    return { ...fields, signature, ...sent }
  }

  return {
    url,
    asked,
    assertion,
    settings: { "auth.game_center.hosts": [host], "auth.game_center.root": at("root.pem") },
    async stop() {
      await server.stop(true)
      rmSync(folder, { recursive: true })
    },
  }
}

/** By the document of the platform, with a writer of numbers of its own. */
function contentOf({ player_id, bundle_id, timestamp, salt }: GameCenterAssertion): Buffer {
  const time = Buffer.from(timestamp.toString(16).padStart(16, "0"), "hex")
  return Buffer.concat([Buffer.from(player_id + bundle_id), time, Buffer.from(salt, "base64")])
}
