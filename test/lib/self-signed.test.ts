import { expect, test } from "bun:test"
import { execFileSync } from "node:child_process"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { selfSignedPair } from "../../src/lib/self-signed"
import { missing } from "../harness/peers"

const NAMES: [string, ...string[]] = ["mail.example.test", "localhost", "127.0.0.1", "::1"]
const days = {
  not_before: new Date("2026-11-21T10:00:00Z"),
  not_after: new Date("2036-11-18T10:00:00Z"),
}

test("the certificate is for these names, for this time, and for no other key", () => {
  const pair = selfSignedPair({ names: NAMES, ...days })
  const certificate = new X509Certificate(pair.cert)
  expect(certificate.subject).toBe("CN=mail.example.test")
  expect(certificate.issuer).toBe(certificate.subject)
  expect(certificate.checkHost("mail.example.test")).toBe("mail.example.test")
  expect(certificate.checkHost("other.example.test")).toBeUndefined()
  expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1")
  expect(certificate.checkIP("::1")).toBe("::1")
  expect(new Date(certificate.validFrom)).toEqual(days.not_before)
  expect(new Date(certificate.validTo)).toEqual(days.not_after)
  expect(certificate.ca).toBe(false)
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect(certificate.checkPrivateKey(createPrivateKey(pair.key))).toBe(true)
  const other = selfSignedPair({ names: NAMES, ...days })
  expect(certificate.checkPrivateKey(createPrivateKey(other.key))).toBe(false)
  expect(new X509Certificate(other.cert).serialNumber).not.toBe(certificate.serialNumber)
})

test("long names, addresses, and years from 2050 on have their own forms", () => {
  const long = `${"a".repeat(60)}.${"b".repeat(60)}.${"c".repeat(60)}.${"d".repeat(60)}.test`
  const not_after = new Date("2055-01-01T00:00:00Z")
  for (const names of [[long], ["192.0.2.7"], ["2001:db8::7"]] as [string][]) {
    const { cert } = selfSignedPair({ names, not_before: days.not_before, not_after })
    const certificate = new X509Certificate(cert)
    expect(new Date(certificate.validTo)).toEqual(not_after)
    const [name] = names
    expect(certificate.checkHost(name) ?? certificate.checkIP(name)).toBe(name)
  }
})

test.skipIf(missing("openssl"))("OpenSSL finds no fault, ten times", () => {
  for (let n = 0; n < 10; n += 1) {
    const { cert } = selfSignedPair({ names: NAMES, ...days })
    const words = ["x509", "-noout", "-text", "-certopt", "no_pubkey"]
    const text = execFileSync("openssl", words, { input: cert }).toString()
    expect(text).toContain("Version: 3")
    expect(text).toContain("DNS:mail.example.test, DNS:localhost, IP Address:127.0.0.1")
    expect(text).toContain("CA:FALSE")
    expect(text).not.toContain("Negative")
  }
})
