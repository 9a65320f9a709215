import { execFileSync } from "node:child_process"
import { sign } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { now } from "../../src/core/time"
import { type SnsEnvelope, signedText } from "../../src/emails/providers/ses/sns"

export const HOST = "sns.eu-west-1.amazonaws.com"

export interface Issued {
  key: string
  cert: string
}

interface Wanted {
  name?: string
  is_ca?: boolean
  /** Signed by nobody but itself. */
  alone?: boolean
}

/** An authority, and certificates it issues; the files go at once. */
export function authority() {
  const root = issue({ name: "Belfry test authority", is_ca: true, alone: true })
  return { ca: root.cert, issue: (wanted: Wanted = {}) => issue(wanted, root) }
}

function issue({ name = HOST, is_ca, alone }: Wanted, issuer?: Issued): Issued {
  const folder = mkdtempSync(join(tmpdir(), "belfry-sns-"))
  const at = (file: string) => join(folder, file)
  try {
    const extensions = is_ca
      ? ["basicConstraints=critical,CA:TRUE", "keyUsage=keyCertSign"]
      : ["basicConstraints=CA:FALSE", `subjectAltName=DNS:${name.replaceAll(" ", "")}`]
    const signer = issuer && !alone ? ["-CA", at("ca.pem"), "-CAkey", at("ca.key")] : []
    if (issuer) {
      writeFileSync(at("ca.pem"), issuer.cert)
      writeFileSync(at("ca.key"), issuer.key)
    }
    const added = extensions.flatMap((one) => ["-addext", one])
    const made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", `/CN=${name}`, "-days", "1"]
    const files = ["-keyout", at("key.pem"), "-out", at("cert.pem")]
    execFileSync("openssl", ["req", ...made, ...added, ...signer, ...files], { stdio: "ignore" })
    return { key: readFileSync(at("key.pem"), "utf8"), cert: readFileSync(at("cert.pem"), "utf8") }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What stands at the address of SNS: certificates by path, and a count of confirmations. */
export function snsServer(tls: Issued, certificates: Record<string, string>) {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key: tls.key, cert: tls.cert },
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      asked.push(pathname + search)
      if (pathname === "/") return new Response("<ConfirmSubscriptionResponse/>")
      const certificate = certificates[pathname]
      return new Response(certificate ?? "", { status: certificate ? 200 : 404 })
    },
  })
  return {
    port: Number(server.port),
    asked,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** As SNS would post it, signed with the key. */
export function signedBy(
  { key }: Issued,
  fields: Partial<SnsEnvelope>,
  version: "1" | "2" = "2",
): SnsEnvelope {
  const envelope: SnsEnvelope = {
    Type: "Notification",
    MessageId: "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
    TopicArn: "arn:aws:sns:eu-west-1:123456789012:belfry",
    Message: "{}",
    Timestamp: now(),
    SignatureVersion: version,
    Signature: "",
    SigningCertURL: `https://${HOST}/signer.pem`,
    ...fields,
  }
  const digest = version === "1" ? "sha1" : "sha256"
  const signature = sign(digest, Buffer.from(signedText(envelope)), key).toString("base64")
  return { ...envelope, Signature: signature }
}
