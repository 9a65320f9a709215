import { describe, expect, test } from "bun:test"
import { needsRehash, readHash } from "../../src/sign-in/foreign-hashes"
import { hash, verify } from "../../src/sign-in/passwords"
import { DEBIAN_PYTHON, locate, missing, missingModules } from "../harness/peers"
import { hashingFully } from "../harness/quick-passwords"

/** The last one is in the decomposed form, which our own hashes take for the composed one. */
const PASSWORDS = ["Quiet-River-42", "Grüße-東京-7!", "x".repeat(100), "Cafe\u0301-Blau-9"]

function printed(cmd: string[], input = ""): string {
  const { stdout, stderr, exitCode } = Bun.spawnSync(cmd, { stdin: Buffer.from(input) })
  if (exitCode !== 0) throw new Error(stderr.toString())
  return stdout.toString().trim()
}

async function provesOnly(hashed: string, password: string, kind: string) {
  expect(readHash(hashed)?.kind as string).toBe(kind)
  expect(needsRehash(hashed)).toBe(true)
  expect(await verify(password, hashed)).toBe(true)
  expect(await verify(`!${password}`, hashed)).toBe(false)
}

describe.skipIf(missing("htpasswd"))("of htpasswd, a hash of bcrypt", () => {
  test.each(PASSWORDS)("proves %p only", async (password) => {
    const line = printed([locate("htpasswd") ?? "", "-niBC", "5", "ann"], password)
    await provesOnly(line.slice("ann:".length), password, "bcrypt")
  })
})

describe.skipIf(missing("argon2"))("of Debian's argon2, a hash", () => {
  const forms = ["-i", "-d", "-id"].flatMap((form) => ["1", "4"].map((lanes) => [form, lanes]))
  test.each(forms)(
    "by %s with %s lanes proves its password only",
    async (form = "", lanes = "") => {
      for (const password of PASSWORDS) {
        const costs = ["-t", "2", "-m", "10", "-p", lanes, "-e"]
        const hashed = printed([locate("argon2") ?? "", "pinchofsalt", form, ...costs], password)
        await provesOnly(hashed, password, "argon2")
      }
    },
  )
})

const PBKDF2 = `
import base64, hashlib, json, os, sys
password = sys.stdin.buffer.read()
salt, rounds = os.urandom(16), 1000
plain = base64.b64encode
def key(digest, of): return hashlib.pbkdf2_hmac(digest, password, of, rounds)
def phc(raw): return plain(raw).rstrip(b"=").decode()
def passlib(raw): return phc(raw).replace("+", ".")
made = ["pbkdf2_sha256$%d$%s$%s" % (rounds, "saltOfDjango", plain(key("sha256", b"saltOfDjango")).decode())]
for digest in ("sha256", "sha512"):
    made.append("$pbkdf2-%s$%d$%s$%s" % (digest, rounds, passlib(salt), passlib(key(digest, salt))))
    made.append("$pbkdf2-%s$i=%d$%s$%s" % (digest, rounds, phc(salt), phc(key(digest, salt))))
    made.append("$pbkdf2-%s$i=%d,l=64$%s$%s" % (digest, rounds, phc(salt), phc(key(digest, salt))))
print(json.dumps(made))
`

describe.skipIf(missingModules())("of Python's hashlib, a hash of PBKDF2", () => {
  test.each(PASSWORDS)("proves %p only", async (password) => {
    const made: string[] = JSON.parse(printed([DEBIAN_PYTHON, "-c", PBKDF2], password))
    expect(made).toHaveLength(7)
    for (const hashed of made) await provesOnly(hashed, password, "pbkdf2")
  })
})

test("a hash of ours is renewed when its cost is another one, and proves any form of its password", async () => {
  using _ = hashingFully()
  const ours = await hash("Cafe\u0301-Blau-9")
  expect(needsRehash(ours)).toBe(false)
  expect(await verify("Caf\u00e9-Blau-9", ours)).toBe(true)
  const older = await Bun.password.hash("Caf\u00e9-Blau-9", { algorithm: "argon2id", timeCost: 1 })
  expect(needsRehash(older)).toBe(true)
  expect(await verify("Cafe\u0301-Blau-9", older)).toBe(true)
})

const SALTED = "c2FsdHNhbHRzYWx0$1dWNmzdF2o5RQnFtN+VWY9U+HpQ7XObYUWZmOHRi7co"
const BCRYPTED = "B0vVNxxicJTk60n0ZU2XG.GbG0h48XV4LklB5ivPISrPAMS/jhJte"

test.each([
  `$argon2id$v=19$m=4194304,t=1,p=1$${SALTED}`, // 4 GiB
  `$argon2id$v=19$m=262144,t=4,p=1$${SALTED}`,
  `$argon2id$v=19$m=8,t=99999,p=1$${SALTED}`,
  `$argon2id$v=19$m=1024,t=1,p=17$${SALTED}`,
  `$argon2id$v=19$m=8,t=1,p=2$${SALTED}`,
  `$argon2id$v=19$m=1024,t=0,p=1$${SALTED}`,
  `$argon2id$v=16$m=1024,t=1,p=1$${SALTED}`,
  `$argon2id$m=1024,t=1,p=1$${SALTED}`,
  `$2y$15$${BCRYPTED}`,
  `$2y$03$${BCRYPTED}`,
  `$2x$10$${BCRYPTED}`,
  `pbkdf2_sha256$2000001$salt$${"A".repeat(43)}=`,
  `pbkdf2_sha256$0$salt$${"A".repeat(43)}=`,
  `$pbkdf2-sha256$i=9999999$${SALTED}`,
  `$pbkdf2-md5$i=1000$${SALTED}`,
  ...["", "password", "{SSHA}x", "$1$salt$hash", `x$2y$10$${BCRYPTED}`, `$2y$10$${BCRYPTED}\n`],
])("%p is no hash to compare with: it is refused before any work", async (text) => {
  expect(readHash(text)).toBeUndefined()
  expect(await verify("Quiet-River-42", text)).toBe(false)
})
