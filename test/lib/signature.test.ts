import { describe, expect, test } from "bun:test"
import { Resend } from "resend"
import { Webhook as Standard } from "standardwebhooks"
import { Webhook as Svix } from "svix"
import {
  isSecret,
  legacySignature,
  newSecret,
  type SignatureFormat,
  signedHeaders,
  standardSignature,
  verify,
} from "../../src/lib/signature"

const seconds = () => Math.floor(Date.now() / 1000)

/** From the specification and the reference libraries of Standard Webhooks. */
const published = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  timestamp: 1_614_265_330,
  body: '{"test": 2432232314}',
}

const body = JSON.stringify({
  id: "evt_1",
  type: "email.sent",
  data: { subject: "Grüße \u2028 ✓" },
})
const id = "evt_0199c0de-0000-7000-8000-000000000001"

function signed(
  secrets: [string, ...string[]],
  format: SignatureFormat = "standard",
  at = seconds(),
) {
  return signedHeaders({ id, timestamp: at, body, secrets, format })
}

/** What each official library says of a delivery. */
const libraries: Record<
  string,
  (secret: string, headers: Record<string, string>, text: string) => unknown
> = {
  standardwebhooks: (secret, headers, text) => new Standard(secret).verify(text, headers),
  svix: (secret, headers, text) => new Svix(secret).verify(text, headers),
  resend: (webhookSecret, headers, payload) =>
    new Resend("re_not_a_key").webhooks.verify({
      payload,
      webhookSecret,
      headers: {
        id: headers["webhook-id"] ?? "",
        timestamp: headers["webhook-timestamp"] ?? "",
        signature: headers["webhook-signature"] ?? "",
      },
    }),
}

describe("a signature", () => {
  test("is the one that Standard Webhooks published", () => {
    const signature = standardSignature(published)
    expect(signature).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  })

  test("in the legacy format is the hex of an HMAC whose key is the whole secret", () => {
    const { secret, timestamp } = published
    const mac = new Bun.CryptoHasher("sha256", secret).update(`${timestamp}.${published.body}`)
    expect(legacySignature(published)).toBe(`sha256=${mac.digest("hex")}`)
  })

  for (const [name, accepts] of Object.entries(libraries)) {
    test(`is accepted by ${name}, and while a secret rotates by both secrets`, () => {
      const [current, previous, other] = [newSecret(), newSecret(), newSecret()]
      expect(accepts(current, signed([current]), body)).toEqual(JSON.parse(body))
      const rotating = signed([current, previous], "both")
      expect(accepts(current, rotating, body)).toEqual(JSON.parse(body))
      expect(accepts(previous, rotating, body)).toEqual(JSON.parse(body))
      expect(() => accepts(other, rotating, body)).toThrow()
    })

    test(`of another body, another id or ten minutes ago is refused by ${name}`, () => {
      const secret = newSecret()
      const headers = signed([secret])
      expect(() => accepts(secret, headers, `${body} `)).toThrow()
      expect(() => accepts(secret, { ...headers, "webhook-id": "evt_other" }, body)).toThrow()
      expect(() => accepts(secret, signed([secret], "standard", seconds() - 600), body)).toThrow()
    })

    test(`with a secret of 24 or of 64 bytes is accepted by ${name}`, () => {
      for (const length of [24, 64]) {
        const secret = `whsec_${Buffer.alloc(length, 7).toString("base64")}`
        expect(isSecret(secret)).toBe(true)
        expect(accepts(secret, signed([secret]), body)).toEqual(JSON.parse(body))
      }
    })
  }
})

describe("the headers", () => {
  test("are those of the format, and only the standard one names the secret before", () => {
    const secrets: [string, string] = [newSecret(), newSecret()]
    const standard = ["webhook-id", "webhook-signature", "webhook-timestamp"]
    const legacy = ["X-Svc-Signature", "X-Svc-Timestamp"]
    expect(Object.keys(signed(secrets)).sort()).toEqual(standard)
    expect(Object.keys(signed(secrets, "legacy")).sort()).toEqual(legacy)
    expect(Object.keys(signed(secrets, "both")).sort()).toEqual([...legacy, ...standard])
    const both = signed(secrets, "both")
    expect(both["webhook-signature"]?.split(" ")).toHaveLength(2)
    expect(both["X-Svc-Signature"]).toMatch(/^sha256=[0-9a-f]{64}$/)
  })
})

describe("verify", () => {
  const secret = newSecret()
  const check = (headers: Record<string, string>, text = body, key = secret) =>
    verify({ secret: key, headers, body: text, now_seconds: seconds() })

  test("accepts what we sign, in every format, with names in any case", () => {
    for (const format of ["standard", "legacy", "both"] as const) {
      expect(check(signed([secret], format))).toBe("ok")
    }
    const shouted = Object.entries(signed([secret])).map(([name, value]) => [
      name.toUpperCase(),
      value,
    ])
    expect(check(Object.fromEntries(shouted))).toBe("ok")
    expect(check(signed([newSecret(), secret]))).toBe("ok")
  })

  test("tells a wrong signature from a stale one and from none at all", () => {
    for (const format of ["standard", "legacy"] as const) {
      expect(check(signed([secret], format), `${body}!`)).toBe("bad_signature")
      expect(check(signed([secret], format), body, newSecret())).toBe("bad_signature")
      expect(check(signed([secret], format, seconds() - 310))).toBe("stale")
      expect(check(signed([secret], format, seconds() + 310))).toBe("stale")
    }
    expect(check({})).toBe("missing")
    expect(check({ "webhook-signature": "v1,abc" })).toBe("missing")
    expect(check({ ...signed([secret]), "webhook-timestamp": "soon" })).toBe("bad_signature")
  })
})

describe("a secret", () => {
  test("is whsec_ and the base64 of 32 random bytes", () => {
    const secrets = Array.from({ length: 100 }, newSecret)
    expect(new Set(secrets).size).toBe(100)
    for (const secret of secrets) {
      expect(isSecret(secret)).toBe(true)
      expect(Buffer.from(secret.slice(6), "base64")).toHaveLength(32)
    }
  })

  test("of somebody else must hold 24 to 64 bytes", () => {
    const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString("base64")}`
    expect([23, 24, 64, 65].map((bytes) => isSecret(of(bytes)))).toEqual([false, true, true, false])
    const bad = [
      "",
      "whsec_",
      "secret",
      of(32).slice(6),
      `${of(32)}!`,
      ` ${of(32)}`,
      `${of(33)}====`,
    ]
    expect(bad.filter(isSecret)).toEqual([])
  })
})
