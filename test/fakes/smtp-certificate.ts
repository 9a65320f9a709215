import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** A certificate signed by itself, good for one name and one address, valid for a day. */
export function selfSigned(name: string, address = "127.0.0.1"): { key: string; cert: string } {
  const folder = mkdtempSync(join(tmpdir(), "belfry-certificate-"))
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")]
  try {
    const names = `subjectAltName=DNS:${name},IP:${address}`
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    const rest = ["-days", "1", "-subj", `/CN=${name}`, "-addext", names]
    const files = ["-keyout", key, "-out", cert]
    execFileSync("openssl", ["req", ...kind, ...rest, ...files], { stdio: "ignore" })
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
