import { describe, expect, test } from "bun:test"
import { createPrivateKey, generateKeyPairSync } from "node:crypto"
import {
  bodyHash,
  dataToSign,
  fieldsOf,
  relaxedBody,
  relaxedParts,
  sign,
  signable,
  signatureOf,
  simpleParts,
} from "../../src/lib/dkim"

const crlf = (text: string) => text.replaceAll("\n", "\r\n")

/** RFC 8463, A.1: the keys that sign A.3. */
const ED25519_SECRET = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
const RSA_SECRET = `-----BEGIN RSA PRIVATE KEY-----
MIICXQIBAAKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQi
Y/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqM
KrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB
AoGAH0cxOhFZDgzXWhDhnAJDw5s4roOXN4OhjiXa8W7Y3rhX3FJqmJSPuC8N9vQm
6SVbaLAE4SG5mLMueHlh4KXffEpuLEiNp9Ss3O4YfLiQpbRqE7Tm5SxKjvvQoZZe
zHorimOaChRL2it47iuWxzxSiRMv4c+j70GiWdxXnxe4UoECQQDzJB/0U58W7RZy
6enGVj2kWF732CoWFZWzi1FicudrBFoy63QwcowpoCazKtvZGMNlPWnC7x/6o8Gc
uSe0ga2xAkEA8C7PipPm1/1fTRQvj1o/dDmZp243044ZNyxjg+/OPN0oWCbXIGxy
WvmZbXriOWoSALJTjExEgraHEgnXssuk7QJBALl5ICsYMu6hMxO73gnfNayNgPxd
WFV6Z7ULnKyV7HSVYF0hgYOHjeYe9gaMtiJYoo0zGN+L3AAtNP9huqkWlzECQE1a
licIeVlo1e+qJ6Mgqr0Q7Aa7falZ448ccbSFYEPD6oFxiOl9Y9se9iYHZKKfIcst
o7DUw1/hz2Ck4N5JrgUCQQCyKveNvjzkkd8HjYs0SwM0fPjK16//5qDZ2UiDGnOe
uEzxBDAr518Z8VFbR41in3W4Y3yCDgQlLlcETrS+zYcL
-----END RSA PRIVATE KEY-----
`

/** An Ed25519 seed as PKCS #8, which is what the runtime reads. */
const ED25519_HEAD = Buffer.from("302e020100300506032b657004220420", "hex")
const ed25519 = createPrivateKey({
  key: Buffer.concat([ED25519_HEAD, Buffer.from(ED25519_SECRET, "base64")]),
  format: "der",
  type: "pkcs8",
})

const MESSAGE = crlf(`From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
`)

const NAMES = ["from", "to", "subject", "date", "message-id", "from", "subject", "date"]
const BODY_HASH = "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="

describe("RFC 8463, appendix A", () => {
  test("has our body hash", () => {
    expect(signable(Buffer.from(MESSAGE)).body_hash).toBe(BODY_HASH)
  })

  test("has our Ed25519 signature", () => {
    const unsigned = crlf(`DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=${BODY_HASH};
 b=`)
    const { fields } = signable(Buffer.from(MESSAGE))
    const found = signatureOf(dataToSign(fields, NAMES, unsigned), {
      algorithm: "ed25519",
      key: ed25519,
    })
    expect(found.toString("base64")).toBe(
      "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==",
    )
  })

  test("has our RSA signature", () => {
    const unsigned = crlf(`DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=${BODY_HASH};
 b=`)
    const { fields } = signable(Buffer.from(MESSAGE))
    const key = createPrivateKey(RSA_SECRET)
    const found = signatureOf(dataToSign(fields, NAMES, unsigned), { algorithm: "rsa", key })
    expect(found.toString("base64")).toBe(
      "F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2JzdA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=",
    )
  })
})

describe("relaxed canonicalization", () => {
  test("is that of RFC 6376, 3.4.5", () => {
    const fields = fieldsOf("A: X\r\nB : Y\t\r\n\tZ  \r\n")
    expect(fields.map(({ relaxed }) => relaxed)).toEqual(["a:X", "b:Y Z"])
    expect(relaxedBody(" C \r\nD \t E\r\n\r\n\r\n")).toBe(" C\r\nD E\r\n")
  })

  test.each([
    ["", ""],
    ["\r\n", ""],
    [" \r\n\t\r\n  ", ""],
    ["a", "a\r\n"],
    ["a \t ", "a\r\n"],
    ["a\t\r\n\r\nb\r\n", "a\r\n\r\nb\r\n"],
    ["\r\n\r\na", "\r\n\r\na\r\n"],
  ])("of the body %p is %p", (body, relaxed) => {
    expect(relaxedBody(body)).toBe(relaxed)
  })

  test("of an empty body hashes to what RFC 6376, 3.4.4 says", () => {
    expect(bodyHash("")).toBe("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
  })

  test("in parts is that of the whole, wherever the parts end", () => {
    const joined = (parts: Iterable<Buffer>) => Buffer.concat([...parts]).toString("latin1")
    const pieces = ["a", " ", "\t", "\r\n", "\r\n".repeat(20_000), "\xfc \r\n", " \t".repeat(9_000)]
    const filler = "0123456789 abcdefg\r\n"
    for (let number = 0; number < 100; number++) {
      // Around the end of a part: 256 KB, and twice that.
      const front = filler
        .repeat(13_000 * (1 + (number % 2)))
        .slice(0, 262_144 * (1 + (number % 2)))
      const length = front.length - (number % 7)
      const tail = [number, number >> 1, number >> 2, number >> 3].map((at) => pieces[at % 7])
      const body = front.slice(0, length) + tail.join("")
      expect(joined(relaxedParts(Buffer.from(body, "latin1"))) === relaxedBody(body)).toBe(true)
      let end = body.length
      while (end > 0 && body.startsWith("\r\n", end - 2)) end -= 2
      const simple = `${body.slice(0, end)}\r\n`
      expect(joined(simpleParts(Buffer.from(body, "latin1"))) === simple).toBe(true)
    }
    expect(joined(relaxedParts(Buffer.alloc(0)))).toBe("")
    expect(joined(relaxedParts(Buffer.from("\r\n".repeat(300_000))))).toBe("")
    expect(joined(simpleParts(Buffer.alloc(0)))).toBe("\r\n")
  })

  test("of a megabyte of spaces does not take the square of it", () => {
    expect(relaxedBody(`a${" ".repeat(1_000_000)}b`)).toBe("a b\r\n")
  })
})

describe("a signature", () => {
  const { privateKey } = generateKeyPairSync("ed25519")
  const signer = {
    domain: "example.test",
    selector: "svc1",
    algorithm: "ed25519" as const,
    key: privateKey,
    time: 1_770_000_000,
  }
  const signed = (head: string) => sign(signable(Buffer.from(crlf(`${head}\n\nbody\n`))), signer)
  const covered = (head: string) =>
    /h=([^;]*);/.exec(signed(head).replace(/\s/g, ""))?.[1]?.split(":")

  test("covers what is there, each time it is there, and From once more", () => {
    const head = "to: a\nFROM: b\nX-Own: c\nList-Unsubscribe: <d>\nTo: e"
    expect(covered(head)).toEqual(["from", "from", "to", "to", "list-unsubscribe"])
    expect(covered("X-Own: a")).toEqual(["from"])
  })

  test("is one folded field, the same every time", () => {
    const head = "From: a\nTo: b\nSubject: c\nDate: d\nMessage-ID: e\nMIME-Version: 1.0\nCc: f"
    const text = signed(head)
    expect(text).toBe(signed(head))
    expect(text.endsWith("\r\n")).toBe(true)
    const lines = text.slice(0, -2).split("\r\n")
    expect(lines.every((line) => line.length <= 78)).toBe(true)
    expect(lines.slice(1).every((line) => /^\s+\S/.test(line))).toBe(true)
  })

  test("takes a message without a body, and one without a header", () => {
    const hash = bodyHash("")
    expect(signable(Buffer.from("From: a\r\n"))).toMatchObject({ body_hash: hash })
    expect(signable(Buffer.from("From: a\r\n\r\n"))).toMatchObject({ body_hash: hash })
    expect(signable(Buffer.from("\r\nbody\r\n")).fields).toEqual([])
  })
})
