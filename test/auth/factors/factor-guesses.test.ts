import { describe, expect, test } from "bun:test"
import { millis } from "../../../src/core/time"
import { refusal } from "../../harness/client"
import { movableClock } from "../../harness/clock"
import { locate, missing } from "../../harness/peers"
import { sharedService } from "../../harness/shared-service"
import { appCode, factorShop } from "./factor-shop"

const clock = movableClock()
const service = await sharedService()

const HOUR = 3600
const CODES = 100

describe.skipIf(missing("oathtool"))("codes of oathtool", () => {
  test(`${CODES} of them get in, one step early or late, and no further`, async () => {
    clock.freeze()
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, secret } = await withApp()
    for (let at = 0; at < CODES; at++) {
      clock.advance({ seconds: HOUR })
      const steps = [-1, 0, 1][at % 3] ?? 0
      const open = await challenge(id)
      for (const far of at % 10 === 0 ? [-2, 2] : []) {
        const answer = await mfa("verify", { ...open, totp_code: oathtool(secret, far) })
        expect(refusal(answer)).toEqual([401, "invalid_totp"])
      }
      const totp_code = oathtool(secret, steps)
      const answer = await mfa("verify", { ...open, totp_code })
      expect([at, answer.status]).toEqual([at, 200])
      const again = await mfa("verify", { ...(await challenge(id)), totp_code })
      expect(refusal(again)).toEqual([401, "invalid_totp"])
    }
  }, 120_000)
})

/** So many steps of 30 seconds away. */
function oathtool(secret: string, steps: number): string {
  const at = `@${Math.floor(millis() / 1000) + steps * 30}`
  const command = [locate("oathtool") ?? "", "--totp", "--base32", `--now=${at}`, secret]
  return Bun.spawnSync(command).stdout.toString().trim()
}

describe("guesses", () => {
  test("five at a challenge are looked at, then it takes nothing", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, secret } = await withApp()
    clock.advance({ seconds: HOUR })
    const open = await challenge(id)
    for (let at = 0; at < 5; at++) {
      const answer = await mfa("verify", { ...open, totp_code: "000000" })
      expect(refusal(answer)).toEqual([401, "invalid_totp"])
    }
    const right = await mfa("verify", { ...open, totp_code: await appCode(secret) })
    expect(refusal(right)).toEqual([401, "invalid_mfa"])
    const asked = await mfa("challenge/send", { ...open, method: "email" })
    expect(refusal(asked)).toEqual([401, "invalid_mfa"])
  })

  test("fifteen an hour are looked at, whatever they are for", async () => {
    const { withApp, challenge, mfa, otherSession } = await factorShop(service)
    const { id, secret } = await withApp()
    clock.advance({ seconds: HOUR })
    const person = await otherSession(id)
    const limited = [429, "otp_verify_rate_limit_exceeded"]
    for (let at = 0; at < 14; at++)
      await mfa("verify", { ...(await challenge(id)), totp_code: "000000" })
    const last = await person.post("/v1/auth/mfa/step-up", { totp_code: "000000" })
    expect(refusal(last)).toEqual([401, "invalid_verification"])
    const totp_code = await appCode(secret)
    expect(refusal(await mfa("verify", { ...(await challenge(id)), totp_code }))).toEqual(limited)
    const stepping = await person.post("/v1/auth/mfa/step-up", { totp_code })
    expect(refusal(stepping)).toEqual(limited)
    clock.advance({ seconds: HOUR })
    const later = { ...(await challenge(id)), totp_code: await appCode(secret) }
    expect((await mfa("verify", later)).status).toBe(200)
  })

  test("right answers do not count, whatever they are for", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, person, secret } = await withApp()
    for (let at = 0; at < 16; at++) {
      clock.advance({ seconds: 30 })
      const given = { totp_code: await appCode(secret) }
      const asked = { ...(await challenge(id)), ...given }
      const right = at % 2 ? person.post("/v1/auth/mfa/step-up", given) : mfa("verify", asked)
      expect([at, (await right).status]).toEqual([at, 200])
    }
  })

  test("of fifty answers at once with one right code, one gets in", async () => {
    const { withApp, challenge, mfa } = await factorShop(service)
    const { id, secret, backup_codes } = await withApp()
    const [backup_code] = backup_codes
    for (const by_backup of [false, true]) {
      clock.advance({ seconds: HOUR })
      const given = by_backup ? { backup_code } : { totp_code: await appCode(secret) }
      const asked = { ...(await challenge(id)), ...given }
      const answers = await Promise.all(Array.from({ length: 50 }, () => mfa("verify", asked)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    }
    clock.advance({ seconds: HOUR })
    const totp_code = await appCode(secret)
    const open = await Promise.all(Array.from({ length: 10 }, () => challenge(id)))
    const answers = await Promise.all(open.map((one) => mfa("verify", { ...one, totp_code })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})
