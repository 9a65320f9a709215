import { afterAll, afterEach, expect, spyOn, test } from "bun:test"
import { execFileSync } from "node:child_process"
import { createPrivateKey, X509Certificate } from "node:crypto"
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { openCertificate, selfSignedPair } from "../../src/core/certificate"
import { log } from "../../src/core/log"
import { selfSigned } from "../fakes/smtp-certificate"
import { missing } from "../harness/peers"
import { cert, key } from "./certificate"

const told = {
  warn: spyOn(log, "warn").mockImplementation(() => {}),
  error: spyOn(log, "error").mockImplementation(() => {}),
}
const folders: string[] = []
afterEach(() => {
  for (const spy of Object.values(told)) spy.mockClear()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

afterAll(() => {
  for (const spy of Object.values(told)) spy.mockRestore()
})

function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "belfry-tls-"))
  folders.push(folder)
  const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") }
  const write = (pair: { cert: string; key: string }) => {
    for (const part of ["cert", "key"] as const) {
      writeFileSync(`${files[part]}.new`, pair[part])
      renameSync(`${files[part]}.new`, files[part])
    }
  }
  return { folder, files, write }
}

const open = async (
  data_dir: string,
  files: { cert: string | null; key: string | null } = { cert: null, key: null },
  host = "mail.test",
) => openCertificate({ files: () => files, data_dir, host, look_ms: 20 })

const commonName = (pair: { cert: string } | undefined) =>
  new X509Certificate(pair?.cert ?? "").subject

test("the first start makes a certificate of its own, and the next one finds it", async () => {
  const { folder } = scratch()
  const first = await open(folder)
  first.close()
  const certificate = new X509Certificate(first.current()?.cert ?? "")
  expect(certificate.subject).toBe("CN=mail.test")
  expect(certificate.checkHost("mail.test")).toBe("mail.test")
  expect(certificate.checkHost("localhost")).toBe("localhost")
  expect(certificate.checkIP("127.0.0.1")).toBe("127.0.0.1")
  expect(statSync(join(folder, "tls/key.pem")).mode & 0o777).toBe(0o600)
  const { fingerprint256: fingerprint } = certificate
  expect(first.self_signed).toEqual({ file: join(folder, "tls/cert.pem"), fingerprint })

  const again = await open(folder)
  again.close()
  expect(again.current()).toEqual(first.current())

  const renamed = await open(folder, undefined, "other.test")
  renamed.close()
  expect(commonName(renamed.current())).toBe("CN=other.test")
})

test("openssl reads what we made", async () => {
  const { folder } = scratch()
  const made = await open(folder)
  made.close()
  const file = join(folder, "tls/cert.pem")
  const verified = execFileSync("openssl", ["verify", "-CAfile", file, file]).toString()
  expect(verified).toContain(": OK")
  const checked = execFileSync("openssl", [
    "pkey",
    "-in",
    join(folder, "tls/key.pem"),
    "-noout",
    "-check",
  ])
  expect(checked.toString()).toContain("valid")
})

test("a certificate from files changes when they change, and wrong files change nothing", async () => {
  const { folder, files, write } = scratch()
  write({ cert, key })
  const it = await open(folder, files)
  let changes = 0
  it.onChange(() => {
    changes += 1
  })
  expect(it.self_signed).toBeUndefined()
  expect(commonName(it.current())).toBe("CN=hooks.test")

  writeFileSync(files.key, selfSigned("stranger.test").key)
  await until(() => told.error.mock.calls.length > 0)
  expect(JSON.stringify(told.error.mock.calls[0])).toContain("is not the key of the certificate")
  expect([commonName(it.current()), changes]).toEqual(["CN=hooks.test", 0])

  write(selfSigned("new.test"))
  await until(() => changes > 0)
  expect(commonName(it.current())).toBe("CN=new.test")

  it.close()
  write({ cert, key })
  it.reload()
  expect(commonName(it.current())).toBe("CN=hooks.test")
})

test("files that cannot be used are named at the start", async () => {
  const { folder, files, write } = scratch()
  const fault = async (given: { cert: string | null; key: string | null }) => {
    const error = await open(folder, given).then(
      () => undefined,
      (reason: Error) => reason,
    )
    expect(error?.name).toBe("ConfigError")
    return error?.message
  }
  expect(await fault(files)).toContain(`tls.cert: ${files.cert} cannot be read`)
  expect(await fault({ cert: files.cert, key: null })).toContain("tls.key is not set")
  write({ cert, key: selfSigned("other.test").key })
  expect(await fault(files)).toContain(`tls.key: ${files.key} is not the key of the certificate`)
  write({ cert: "no certificate", key })
  expect(await fault(files)).toContain(`tls.cert: ${files.cert} holds no certificate`)
  write({ cert, key: "no key" })
  expect(await fault(files)).toContain(`tls.key: ${files.key} holds no private key`)
})

test("an expired certificate is used at the start, with an error in the log, but never taken later", async () => {
  const { folder, files, write } = scratch()
  const expired = pastPair(folder)
  write(expired)
  const it = await open(folder, files)
  expect(it.current()?.cert).toBe(expired.cert)
  expect(told.error.mock.calls[0]?.[0]).toContain("has expired")
  write({ cert, key })
  await until(() => commonName(it.current()) === "CN=hooks.test")
  told.error.mockClear()
  write(expired)
  await until(() => told.error.mock.calls.length > 0)
  expect(commonName(it.current())).toBe("CN=hooks.test")
  it.close()
})

/** Valid for one day of the year 2020. */
function pastPair(folder: string) {
  const [key_file, cert_file] = [join(folder, "past-key.pem"), join(folder, "past.pem")]
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
  const request = join(folder, "past.csr")
  const run = (...words: string[]) => execFileSync("openssl", words, { stdio: "ignore" })
  run("req", ...kind, "-keyout", key_file, "-subj", "/CN=past.test", "-out", request)
  run("x509", "-req", "-in", request, "-signkey", key_file, "-days", "-1", "-out", cert_file)
  return { key: readFileSync(key_file, "utf8"), cert: readFileSync(cert_file, "utf8") }
}

async function until(isTrue: () => boolean) {
  const ends_at = Date.now() + 30_000
  while (!isTrue()) {
    if (Date.now() > ends_at) throw new Error("It never came true")
    await Bun.sleep(5)
  }
}

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
